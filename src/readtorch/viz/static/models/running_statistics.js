// What a batch norm remembers, and four variances of one batch: as figures/running_statistics.py.
const BATCHES = 40;
const DECADES = 10;
const EPS = 1e-5;
const { fround } = Math;

function mixed(x) {
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  x = Math.imul(x ^ (x >>> 16), 0x45d9f3b);
  return x ^ (x >>> 16);
}
const bytesSum = (x) => (x & 255) + ((x >>> 8) & 255) + ((x >>> 16) & 255) + (x >>> 24);
const noise = (count) =>
  Array.from({ length: count }, (_, i) => (bytesSum(mixed(3 * i + 1)) + bytesSum(mixed(3 * i + 2)) + bytesSum(mixed(3 * i + 3)) - 1530) / 256);

const exactly = (x) => x;

// Mean and sum of squares of deviations, three ways. Wide sums of what is float32:
function ofImage(x) {
  let sum = 0,
    squares = 0;
  for (const v of x) sum += v;
  const mean = fround(sum / x.length);
  for (const v of x) squares += fround(fround(v - mean) ** 2);
  return [mean, fround(squares)];
}

// Float32 sums of each thread's rows, and one rounding for the square and its sum.
function ofRows(x, threads) {
  const share = x.length > threads ? Math.ceil(x.length / threads) : x.length;
  const shared = (add) => {
    let all = 0;
    for (let low = 0; low < x.length; low += share) all += x.slice(low, low + share).reduce(add, 0);
    return all;
  };
  const mean = fround(shared((sum, v) => fround(sum + v)) / x.length);
  return [mean, fround(shared((sum, v) => fround(fround(v - mean) ** 2 + sum)))];
}

// A float32 sum in four lanes, each of which puts 16 numbers aside at a time.
function cascade(x) {
  const quarter = Math.floor(x.length / 4);
  const lanes = [0, 1, 2, 3].map((lane) => {
    let aside = 0,
      sum = 0;
    for (let i = 0; i < quarter; i++) {
      sum = fround(sum + x[4 * i + lane]);
      if (i % 16 === 15) [aside, sum] = [fround(aside + sum), 0];
    }
    return fround(sum + aside);
  });
  return [...x.slice(4 * quarter), ...lanes.slice(1)].reduce((sum, v) => fround(sum + v), lanes[0]);
}

// The mean is float32, all else double.
function ofSlice(x) {
  const mean = fround(cascade(x) / x.length);
  return [mean, x.reduce((sum, v) => sum + (v - mean) ** 2, 0)];
}

const statistics = (x, layout, threads) => (layout === "rows" ? ofRows(x, threads) : layout === "image" ? ofImage(x) : ofSlice(x));

// round: to float32, or not at all
function remembered(means, unbiased, factors, round) {
  let mean = 0,
    variance = 1;
  return means.map((batchMean, i) => {
    const factor = round(factors[i]),
      old = round(1 - factor);
    mean = fround(round(factor * batchMean) + round(old * mean));
    variance = fround(factor * unbiased[i] + round(old * variance));
    return [mean, variance];
  });
}

function textbook(x) {
  let sum = 0,
    squares = 0;
  for (const v of x) {
    sum = fround(sum + v);
    squares = fround(squares + fround(v * v));
  }
  const mean = fround(sum / x.length);
  return fround(fround(squares / x.length) - fround(mean * mean));
}

function welford(x) {
  let mean = 0,
    squares = 0;
  x.forEach((v, i) => {
    const delta = fround(v - mean);
    mean = fround(mean + fround(delta / (i + 1)));
    squares = fround(squares + fround(delta * fround(v - mean)));
  });
  return fround(squares / x.length);
}

function exactVariance(x) {
  let sum = 0,
    squares = 0;
  for (const v of x) sum += v;
  for (const v of x) squares += (v - sum / x.length) ** 2;
  return squares / x.length;
}

function shown(x) {
  return Math.abs(x) >= 1000 ? commas(Math.floor(x + 0.5)) : (Math.floor(x * 1000 + 0.5) / 1000).toFixed(3);
}

function model({ values: count, layout, threads, momentum, cumulative, offset }) {
  if (count === 1) refuse("Expected more than 1 value per channel when training, got input size torch.Size([1, 1, 1])");
  const numbers = noise(BATCHES * count);
  const batch = (i, at) => numbers.slice(i * count, (i + 1) * count).map((z) => fround(at + z));
  const passes = Array.from({ length: BATCHES }, (_, i) => statistics(batch(i, offset), layout, threads));
  const round = layout === "slice" ? exactly : fround;
  const means = passes.map(([one]) => one),
    unbiased = passes.map(([, squares]) => round(squares / (count - 1)));
  const factors = passes.map((_, i) => (cumulative ? 1 / (i + 1) : momentum));
  const running = remembered(means, unbiased, factors, round);
  const offsets = [offset, ...Array.from({ length: DECADES }, (_, k) => 10 ** k)];
  const all = offsets.map((at) => {
    const x = batch(0, at);
    const four = [textbook(x), fround(ofRows(x, threads)[1] / count), fround(ofImage(x)[1] / count), welford(x)];
    return [four, exactVariance(x)];
  });
  const [variances, exact] = all[0],
    [mean, variance] = running.at(-1);
  return {
    means,
    unbiased,
    running,
    variances,
    outputs: variances.map((one) => Math.sqrt(exact / (Math.max(one, 0) + EPS))),
    exact,
    errors: all.map(([four, right]) => four.map((one) => Math.abs(one - right))),
    say:
      `After ${BATCHES} batches of ${count} the running mean is ${shown(mean)}, the running variance ` +
      `${shown(variance)}. Of the first batch E[x²] − E[x]² makes ${shown(variances[0])}, Welford ${shown(variances[3])}.`,
  };
}
