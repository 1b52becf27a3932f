// What one rank holds over a training step: as figures/shard_memory.py.
const WORDS = { ddp: "DDP with bucket views", zero1: "DDP with bucket views and ZeRO-1", zero2: "fully_shard, whole after forward", zero3: "fully_shard" };
const BANDS = {
  kept: "parameters kept",
  state: "optimizer's moments",
  temp: "optimizer's temporary",
  grads: "gradients kept",
  whole: "parameters while needed",
  sent: "gradients on their way",
  acts: "activations",
};

const isCopy = ({ strategy }) => strategy === "ddp" || strategy === "zero1";
const total = (point) => Object.keys(BANDS).reduce((sum, band) => sum + point[band], 0);
const numbersOf = ({ width }) => 8 * width * width + 5 * width;

// Whole tensors, the largest first, each to the rank that has the fewest numbers.
function firstPart({ width, ranks, blocks }) {
  const loads = Array(Number(ranks)).fill(0);
  for (const [numbers, each] of [
    [4 * width * width, 2],
    [4 * width, 1],
    [Number(width), 1],
  ])
    for (let i = 0; i < each * blocks; i++) loads[loads.indexOf(Math.min(...loads))] += numbers;
  return loads[0];
}

function held(inputs) {
  const { strategy, precision, blocks, ranks } = inputs,
    size = precision === "bfloat16" ? 2 : 4,
    every = numbersOf(inputs) * blocks * size;
  if (isCopy(inputs)) return [every, 2 * (strategy === "ddp" ? every : size * firstPart(inputs)), every];
  return [every / ranks, (2 * every) / ranks, every / ranks];
}

function sizes({ precision, tokens, width }) {
  const kept = precision === "bfloat16" ? 2 : 4,
    computed = precision === "float32" ? 4 : 2;
  return [computed, kept, tokens * width, computed < kept ? 1 : 0];
}

function forward(inputs, i) {
  const [computed, kept, one, mixed] = sizes(inputs),
    acts = one * kept + one * computed * mixed + 5 * one * computed * (i + 1),
    block = numbersOf(inputs) * computed;
  if (isCopy(inputs)) return { acts, whole: block * (i + 1) * mixed };
  return { acts, whole: block * (inputs.strategy === "zero3" ? 2 : i + 2) };
}

function between(inputs) {
  const { blocks, strategy, width } = inputs,
    [computed, , , mixed] = sizes(inputs),
    last = forward(inputs, blocks - 1);
  const kept = { ddp: last.whole, zero1: last.whole, zero2: numbersOf(inputs) * computed * blocks, zero3: 0 };
  return { ...last, whole: kept[strategy] - (isCopy(inputs) ? 5 * width * computed * blocks * mixed : 0) };
}

function backward(inputs, i) {
  const { blocks, strategy, width } = inputs,
    [computed, kept, one, mixed] = sizes(inputs),
    block = numbersOf(inputs) * computed,
    saved = one * kept + (i ? one * computed * (mixed + 5 * i - 1) : 0),
    atInput = one * (isCopy(inputs) && i === 0 ? kept : computed),
    acts = saved + one * computed + atInput + 2 * computed;
  if (isCopy(inputs)) return { acts, whole: 8 * width * width * computed * i * mixed, sent: 0 };
  return { acts, whole: block * (1 + (strategy === "zero2" ? i : i > 0 ? 1 : 0)), sent: block * (1 + (i < blocks - 1 ? 1 : 0)) };
}

function pointsOf(inputs) {
  const [kept, state, grads] = held(inputs),
    { blocks } = inputs,
    shards = !isCopy(inputs),
    rest = { kept, state, temp: 0, whole: 0, sent: 0, acts: 0, grads: shards ? 0 : grads },
    moments = [{ ...rest, name: "between steps" }];
  for (let i = 0; i < blocks; i++) moments.push({ ...rest, ...forward(inputs, i), name: `forward, block ${i + 1}` });
  moments.push({ ...rest, ...between(inputs), name: "the loss" });
  for (let i = blocks - 1; i >= 0; i--)
    moments.push({ ...rest, ...backward(inputs, i), grads: shards ? (grads * (blocks - 1 - i)) / blocks : grads, name: `backward, block ${i + 1}` });
  const temp = inputs.optimizer === "foreach" ? state / 2 : 0;
  return [...moments, { ...rest, grads, temp, name: "the optimizer's step" }];
}

function summed(points) {
  const totals = points.map(total),
    most = totals.reduce((a, b) => Math.max(a, b));
  return [most, points[totals.indexOf(most)].name];
}

function traffic(inputs) {
  const [computed, kept] = sizes(inputs),
    times = { ddp: 2 * kept, zero1: 3 * kept, zero2: 2 * computed, zero3: 3 * computed };
  return (times[inputs.strategy] * numbersOf(inputs) * inputs.blocks * (inputs.ranks - 1)) / inputs.ranks;
}

function rounded(x) {
  const hundredths = Math.floor(x * 100 + 0.5);
  return `${Math.floor(hundredths / 100)}.${String(hundredths % 100).padStart(2, "0")}`;
}

function amount(size) {
  for (const [unit, name] of [
    [1e12, "TB"],
    [1e9, "GB"],
    [1e6, "MB"],
  ])
    if (size >= unit) return `${rounded(size / unit)} ${name}`;
  return `${rounded(size / 1e3)} kB`;
}

function model(inputs) {
  const peaks = Object.keys(WORDS).map((strategy) => [strategy, ...summed(pointsOf({ ...inputs, strategy }))]),
    points = pointsOf(inputs),
    [, most, where] = peaks.find(([name]) => name === inputs.strategy),
    limit = inputs.device * 1e9,
    fits = most <= limit ? "fits" : "does not fit";
  const say =
    `With ${WORDS[inputs.strategy]} a rank holds ${amount(total(points[0]))} between steps and ${amount(most)} at most ` +
    `(${where}); that ${fits} in ${inputs.device} GB. In a step it sends ${amount(traffic(inputs))}.`;
  return { points, peaks, numbers: numbersOf(inputs) * inputs.blocks, limit, say };
}
