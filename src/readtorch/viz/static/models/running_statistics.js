// What a batch norm remembers, and four variances of one batch: as figures/running_statistics.py.
const BATCHES = 40;
const DECADES = 10;
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

// Mean and sum of squares of deviations. round: to float32, or not at all
function twoPasses(x, round) {
  let sum = 0,
    squares = 0;
  for (const v of x) sum = round(sum + v);
  const mean = fround(sum / x.length);
  for (const v of x) {
    const d = fround(v - mean);
    squares = round(squares + fround(d * d));
  }
  return [mean, fround(squares)];
}

function remembered(passes, count, factors) {
  let mean = 0,
    variance = 1;
  return passes.map(([batchMean, squares], i) => {
    const old = fround(1 - factors[i]);
    mean = fround(fround(factors[i] * batchMean) + fround(old * mean));
    variance = fround(factors[i] * fround(squares / (count - 1)) + fround(old * variance));
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

function model({ values: count, momentum, cumulative, offset }) {
  if (count === 1) refuse("Expected more than 1 value per channel when training, got input size torch.Size([1, 1, 1])");
  const numbers = noise(BATCHES * count);
  const batch = (i, at) => numbers.slice(i * count, (i + 1) * count).map((z) => fround(at + z));
  const passes = Array.from({ length: BATCHES }, (_, i) => twoPasses(batch(i, offset), exactly));
  const factors = passes.map((_, i) => fround(cumulative ? 1 / (i + 1) : momentum));
  const running = remembered(passes, count, factors);
  const offsets = [offset, ...Array.from({ length: DECADES }, (_, k) => 10 ** k)];
  const all = offsets.map((at) => {
    const x = batch(0, at);
    const four = [textbook(x), fround(twoPasses(x, fround)[1] / count), fround(twoPasses(x, exactly)[1] / count), welford(x)];
    return [four, exactVariance(x)];
  });
  const [variances, exact] = all[0],
    [mean, variance] = running.at(-1);
  return {
    means: passes.map(([one]) => one),
    unbiased: passes.map(([, squares]) => fround(squares / (count - 1))),
    running,
    variances,
    exact,
    errors: all.map(([four, right]) => four.map((one) => Math.abs(one - right))),
    say:
      `After ${BATCHES} batches of ${count} the running mean is ${shown(mean)}, the running variance ` +
      `${shown(variance)}. Of the first batch E[x²] − E[x]² makes ${shown(variances[0])}, Welford ${shown(variances[3])}.`,
  };
}
