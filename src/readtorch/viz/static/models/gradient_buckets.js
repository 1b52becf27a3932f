// One step of DistributedDataParallel, its buckets and their all-reduces: as figures/gradient_buckets.py.
const KIB = 2 ** 10,
  MIB = 2 ** 20,
  DEFAULT_CAP = 25;

const sumOf = (numbers) => numbers.reduce((one, other) => one + other, 0);
const countTo = (n) => Array.from({ length: n }, (_, i) => i);

function model(inputs) {
  const sizes = inputs.layers.map((size) => KIB * size),
    n = sizes.length,
    one = inputs.backward;
  const buckets = bucketsOf(sizes, inputs.iteration, inputs.cap),
    step = timed(sizes, buckets, inputs);
  const singles = countTo(n).map((i) => [n - 1 - i]),
    computing = 1.5 * n * one;
  const result = {
    buckets,
    bytes: buckets.map((bucket) => sumOf(bucket.map((i) => sizes[i]))),
    computes: delaysOf(inputs).map((begin) => [begin, begin + 1.5 * n * one]),
    end: step.end,
    forward: 0.5 * n * one,
    hidden: step.hidden,
    sums: step.sums,
    waits: step.waits,
    whole: timed(sizes, [countTo(n)], inputs).end,
    single: timed(sizes, singles, inputs).end,
  };
  return { ...result, say: bucketSentence(result, inputs, computing) };
}

// ---- which gradients share a bucket

function bucketsOf(sizes, step, cap) {
  const limit = cap * MIB,
    limits = [cap === DEFAULT_CAP ? MIB : limit, limit],
    forwards = countTo(sizes.length),
    backwards = forwards.toReversed();
  if (step === "first") return [backwards];
  return step === "unused" ? divided(sizes, forwards, limits).reverse() : divided(sizes, backwards, limits);
}

function divided(sizes, order, limits) {
  const buckets = [[]];
  let filled = 0;
  for (const i of order) {
    if (filled >= limits[Math.min(buckets.length - 1, 1)]) {
      buckets.push([]);
      filled = 0;
    }
    buckets.at(-1).push(i);
    filled += sizes[i];
  }
  return buckets;
}

// ---- when they travel

const delaysOf = ({ late, ranks }) => (late && ranks > 1 ? [0, late] : [0]);

function timed(sizes, buckets, inputs) {
  const late = delaysOf(inputs),
    n = sizes.length,
    one = inputs.backward,
    sums = [],
    waits = late.map(() => []);
  let [free, ready] = [0, 0];
  for (const bucket of buckets) {
    ready = Math.max(ready, 0.5 * n * one + (n - Math.min(...bucket)) * one); // in order, so never before the last one
    const begin = Math.max(free, ready + late.at(-1));
    late.forEach((delay, rank) => waits[rank].push([Math.max(free, ready + delay), begin]));
    free = begin + millisecondsOf(sumOf(bucket.map((i) => sizes[i])), inputs);
    sums.push([begin, free]);
  }
  const backward = 1.5 * n * one + late.at(-1),
    moving = sumOf(sums.map(([begin, end]) => end - begin)),
    behind = sumOf(sums.map(([begin, end]) => Math.max(0, Math.min(end, backward) - begin)));
  return { sums, waits, end: Math.max(free, backward), hidden: moving ? behind / moving : 1 };
}

function millisecondsOf(size, { ranks: n, ...inputs }) {
  if (n === 1) return 0;
  const latency = inputs.latency / 1000,
    byte = 1e-6 / inputs.bandwidth,
    rounds = Math.floor(Math.log2(n)),
    power = 2 ** rounds,
    message = latency + byte * size,
    fold = power === n ? 0 : 2 * message;
  return Math.min(
    2 * (n - 1) * (latency + (byte * size) / n),
    rounds * message + fold,
    2 * (rounds * latency + (byte * size * (power - 1)) / power) + fold,
  );
}

// ---- words

function bucketSentence(result, inputs, computing) {
  const count = result.buckets.length,
    drawn = `${count} bucket${count === 1 ? "" : "s"} of ${volumesText(result.bytes)}. `;
  if (inputs.ranks === 1) return `${drawn}A single rank has nothing to sum: ${msText(computing)}.`;
  return (
    `${drawn}${shareText(result.hidden)} of the communication is hidden behind backward. The step takes ${msText(result.end)}; ` +
    `it would take ${msText(computing + delaysOf(inputs).at(-1))} without communication, ${msText(result.whole)} with one bucket for all, ` +
    `and ${msText(result.single)} with one for each layer.`
  );
}

function volumesText(sizes) {
  const [low, high] = [volumeText(Math.min(...sizes)), volumeText(Math.max(...sizes))];
  return low === high ? low : `${low} to ${high}`;
}

const volumeText = (count) => (count >= MIB ? `${digitsText(count / MIB)} MiB` : `${digitsText(count / KIB)} KiB`);

function digitsText(x) {
  const unit = x >= 100 ? 1 : x >= 10 ? 10 : 100,
    parts = Math.floor(unit * x + 0.5 + 1e-9),
    rest = parts % unit;
  const fraction = rest ? `.${String(rest).padStart(String(unit).length - 1, "0")}`.replace(/0+$/, "") : "";
  return commas(Math.floor(parts / unit)) + fraction;
}

const msText = (ms) => `${digitsText(ms)} ms`;
const shareText = (share) => `${Math.floor(100 * share + 0.5 + 1e-9)} %`;
