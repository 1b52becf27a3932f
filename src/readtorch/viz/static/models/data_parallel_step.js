// One training step on several devices, in virtual time: as figures/data_parallel_step.py.

const BUFFER = 10 * 2 ** 20, // bytes
  BUCKETS = [2 ** 20, 25 * 2 ** 20],
  HOST_LINK = 25e3, // bytes a microsecond
  MEMORY = 3e6,
  LEAST = 3, // microseconds
  COMPUTING = ["forward", "backward", "update"],
  MOVING = ["copy", "sum"];

const whole = (us) => Math.round(us * (1 + 1e-12)).toLocaleString("en-US");
const times = (ratio) => (ratio * (1 + 1e-12)).toFixed(ratio >= 1 ? 1 : 2);
const percent = (share) => `${Math.round(100 * share * (1 + 1e-12))} %`;
const most = (numbers) => numbers.reduce((one, other) => Math.max(one, other), 0);

function lane() {
  const one = { blocks: [], free: 0 };
  one.take = (phase, ready, duration) => {
    const start = Math.max(one.free, ready),
      last = one.blocks.at(-1);
    one.free = start + duration;
    if (last && last[2] === phase && start <= last[1]) last[1] = one.free;
    else if (duration > 0) one.blocks.push([start, one.free, phase]);
    return one.free;
  };
  one.timeIn = (phases) => one.blocks.reduce((sum, [start, end, phase]) => sum + (phases.includes(phase) ? end - start : 0), 0);
  return one;
}

function newStep(inputs, devices = inputs.devices) {
  const { launch, layers, width, samples } = inputs,
    link = inputs.link * 1e3,
    flops = inputs.speed * 1e6,
    layerBytes = 4 * width * (width + 1);
  return {
    devices, launch, layers, samples, link, layerBytes, bytes: layers * layerBytes, host: lane(), rings: lane(), lanes: Array.from({ length: devices }, lane),
    rowsBytes: (rows) => 4 * rows * width,
    product: (rows) => Math.max(LEAST, (2 * rows * width * width) / flops),
  }; // prettier-ignore
}

const update = (step, one, host) => one.take("update", host + 4 * step.launch, Math.max(LEAST, (3 * step.bytes) / MEMORY));
const totalOf = ({ lanes }) => most(lanes.map(({ free }) => free));

/** Bytes of each buffer: weights and biases end to end until the limit is reached. */
function buffersOf({ layers, width }) {
  const full = [];
  let filling = 0;
  for (let i = 0; i < 2 * layers; i++) {
    filling += i % 2 ? 4 * width : 4 * width * width;
    if (filling >= BUFFER || i === 2 * layers - 1) {
      if (filling > 0) full.push(filling);
      filling = 0;
    }
  }
  return full;
}

function oneProcess(inputs, devices) {
  const step = newStep(inputs, devices),
    { host, lanes, link, layers, samples } = step,
    size = Math.ceil(samples / step.devices),
    rows = lanes.map((_, i) => Math.max(0, Math.min(size, samples - i * size))).filter((n) => n),
    working = lanes.slice(0, rows.length),
    launched = () => host.take("launch", 0, step.launch);
  const both = (one, ready, amount, phase) => {
    const start = Math.max(ready, one.free, lanes[0].free);
    lanes[0].take(phase, start, amount / link);
    one.take(phase, start, amount / link);
  };
  const move = (amount, phase, adding = 0) => {
    if (inputs.nccl && working.length > 1) {
      const reached = most(working.map(launched)),
        start = Math.max(reached, most(working.map(({ free }) => free)));
      for (const one of working) one.take(phase, start, amount / link);
    } else
      for (const one of working.slice(1)) {
        both(one, launched(), amount, phase);
        lanes[0].take(phase, 0, adding);
      }
  };
  const exchange = () => rows.forEach((n, i) => i && both(working[i], launched(), step.rowsBytes(n), "copy"));

  const ready = rows.map((n) => launched() + step.rowsBytes(n) / HOST_LINK);
  const sizes = buffersOf(inputs);
  for (const size of sizes) move(size, "copy");
  for (let layer = 0; layer < layers; layer++) rows.forEach((n, i) => working[i].take("forward", Math.max(ready[i], launched()), step.product(n)));
  exchange();
  for (let i = 0; i < 2; i++) lanes[0].take("forward", launched(), LEAST);
  exchange();
  rows.forEach((n, i) => {
    let thread = host.free;
    for (let k = 0; k < 2 * layers; k++) working[i].take("backward", (thread += step.launch), step.product(n));
  });
  const done = most(working.map(({ free }) => free));
  host.take("launch", done, 0);
  for (const size of sizes) move(size, "sum", (3 * size) / MEMORY);
  update(step, lanes[0], host.free);
  return step;
}

function manyProcesses(inputs) {
  const step = newStep(inputs),
    { host, rings, lanes, launch, layers, devices } = step,
    rows = Math.ceil(step.samples / devices),
    launched = () => host.take("launch", 0, launch);
  const all = (phase, ready, duration) => lanes.forEach((one) => one.take(phase, ready, duration));
  const ring = (size) => devices > 1 && rings.take("sum", lanes[0].free, (2 * (devices - 1) * size) / (devices * step.link));

  const there = launched() + step.rowsBytes(rows) / HOST_LINK;
  for (let layer = 0; layer < layers; layer++) all("forward", Math.max(there, launched()), step.product(rows));
  for (let i = 0; i < 2; i++) all("forward", Math.max(there, launched()), LEAST);
  let waiting = 0,
    limit = BUCKETS[0];
  for (let layer = 0; layer < layers; layer++) {
    for (let i = 0; i < 2; i++) all("backward", launched(), step.product(rows));
    waiting += step.layerBytes;
    if (waiting >= limit || layer === layers - 1) {
      ring(waiting);
      [waiting, limit] = [0, BUCKETS[1]];
    }
  }
  host.take("launch", 0, 4 * launch);
  for (const one of lanes) update(step, one, Math.max(rings.free, host.free - 4 * launch));
  return step;
}

const stepOf = (inputs) => (inputs.strategy === "DataParallel" ? oneProcess(inputs) : manyProcesses(inputs));
const faster = (inputs) => totalOf(oneProcess(inputs, 1)) / totalOf(stepOf(inputs));

function sentenceOf(inputs, total, computes, moves) {
  const n = inputs.devices;
  if (n === 1) return `One device takes ${whole(total)} µs and computes for ${percent(computes[0])} of them.`;
  const alone = totalOf(oneProcess(inputs, 1)),
    [others, moved] = [computes, moves].map((shares) => shares.slice(1).reduce((sum, share) => sum + share, 0) / (n - 1));
  return (
    `${n} devices take ${whole(total)} µs, one takes ${whole(alone)}: ${times(alone / total)} times as fast. Device 0 computes for ` +
    `${percent(computes[0])} of the step and copies or adds gradients for ${percent(moves[0])}; the others for ` +
    `${percent(others)} and ${percent(moved)}. With launches that cost nothing: ` +
    `${times(faster({ ...inputs, launch: 0 }))} times; with links that cost nothing: ${times(faster({ ...inputs, link: Infinity }))} times.`
  );
}

const model = (inputs) => {
  const step = stepOf(inputs),
    total = totalOf(step),
    computes = step.lanes.map((one) => one.timeIn(COMPUTING) / total),
    moves = step.lanes.map((one) => (one.timeIn(MOVING) + step.rings.timeIn(MOVING)) / total);
  return {
    host: step.host.blocks, lanes: step.lanes.map(({ blocks }) => blocks), rings: step.rings.blocks, total, computes, moves, bytes: step.bytes,
    say: sentenceOf(inputs, total, computes, moves),
  }; // prettier-ignore
};
