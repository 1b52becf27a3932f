// The streams of one rank over a training step with fully_shard: as figures/shard_time.py.
const MEMORY = 3.35e6, // bytes a microsecond
  SIZE = 2; // bytes of a bfloat16

function shardStep(inputs) {
  const { rows, blocks, each, latency, link, own } = inputs,
    width = Number(inputs.width),
    ranks = Number(inputs.ranks),
    speed = inputs.speed * 1e6,
    groups = [];
  for (let start = 0; start < blocks; start += each) groups.push(Math.min(each, blocks - start));
  const lanes = { compute: [], copy_in: [], gather: [], reduce: [] },
    free = { compute: 0, copy_in: 0, gather: 0, reduce: 0 },
    arrives = new Map(),
    whole = new Set();
  let communicator = 0,
    kept = null,
    scattered = null;

  const take = (lane, duration, kind, group, ready = 0) => {
    const start = Math.max(free[lane], ready);
    free[lane] = start + duration;
    if (duration > 0) lanes[lane].push([start, start + duration, kind, group]);
    return start + duration;
  };
  const wait = (event, kind, group) => {
    if (event > free.compute) {
      lanes.compute.push([free.compute, event, kind, group]);
      free.compute = event;
    }
  };
  const gathersWait = (event) => {
    for (const lane of ["copy_in", "gather"]) free[lane] = Math.max(free[lane], event);
  };
  const bytes = (group) => SIZE * groups[group] * (8 * width ** 2 + 5 * width);
  const collective = (lane, group, ready, alone = false) => {
    const sent = (bytes(group) * (ranks - 1)) / ranks,
      end = take(lane, latency + sent / (link * 1e3), lane, group, Math.max(ready, alone ? 0 : communicator));
    if (!alone) communicator = end;
    return end;
  };

  const product = (biases = 0) =>
    Math.max((SIZE * (4 * width ** 2 + (5 * rows + biases) * width)) / MEMORY, (8 * rows * width ** 2) / speed);
  const pointwise = (tensors) => (SIZE * tensors * rows * width) / MEMORY;
  const copy = (size) => (2 * size) / MEMORY;
  const forward = (group) => take("compute", groups[group] * (product(4) + pointwise(8) + product(1)), "forward", group);
  const backward = (group) => {
    const one = (SIZE * 5 * (rows + 1) * width) / MEMORY + pointwise(12),
      products = 4 * groups[group] - (group === 0 ? 1 : 0);
    take("compute", groups[group] * one + products * product(), "backward", group);
  };

  const unshard = (group) => {
    if (arrives.has(group) || whole.has(group)) return;
    const copied = take("copy_in", copy(bytes(group) / ranks), "copy", group);
    arrives.set(group, collective("gather", group, copied));
  };
  const waitForUnshard = (group, isForward) => {
    if (!arrives.has(group)) return;
    if (isForward && kept !== null) {
      gathersWait(kept);
      kept = null;
    }
    wait(arrives.get(group), isForward ? "late_forward" : "late_backward", group);
    arrives.delete(group);
    const event = take("compute", copy(bytes(group)), "copy", group);
    whole.add(group);
    if (isForward) kept = event;
    else gathersWait(event);
  };
  const reduce = (group) => {
    if (scattered !== null) wait(scattered, "late_reduce", group + 1);
    const copied = take("compute", copy(bytes(group)), "copy", group);
    scattered = collective("reduce", group, copied, own);
  };

  for (let group = 0; group < groups.length; group++) {
    unshard(group);
    waitForUnshard(group, true);
    forward(group);
    if (inputs.reshard) whole.delete(group);
  }
  gathersWait(kept);
  take("compute", (SIZE * (rows * width + 1)) / MEMORY, "forward", groups.length);
  for (let group = groups.length - 1; group >= 0; group--) {
    unshard(group);
    waitForUnshard(group, false);
    if (inputs.prefetch && group > 0) unshard(group - 1);
    backward(group);
    whole.delete(group);
    reduce(group);
  }
  wait(scattered, "late_reduce", 0);
  return { lanes, groups: groups.length, total: free.compute };
}

const spent = (blocks, ...kinds) => blocks.reduce((sum, [start, end, kind]) => sum + (kinds.includes(kind) ? end - start : 0), 0);

function amount(time) {
  time *= 1 + 1e-12;
  const digits = time >= 1000 ? 2 : 0;
  const number = (digits ? time / 1000 : time).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return `${number} ${digits ? "ms" : "µs"}`;
}

function model(inputs) {
  const { lanes, groups, total } = shardStep(inputs),
    sent = spent(lanes.gather, "gather") + spent(lanes.reduce, "reduce"),
    late = Object.fromEntries(["late_forward", "late_backward", "late_reduce"].map((kind) => [kind, spent(lanes.compute, kind)])),
    waits = late.late_forward + late.late_backward + late.late_reduce,
    hidden = Math.max(0, 1 - waits / sent);
  const parts = [["all-gathers in forward", late.late_forward], ["all-gathers in backward", late.late_backward], ["reduce-scatters", late.late_reduce]]; // prettier-ignore
  const named = parts.filter(([, time]) => time > 0).map(([what, time]) => `${amount(time)} for ${what}`).join(", "); // prettier-ignore
  const say =
    `A step takes ${amount(total)}: ${amount(spent(lanes.compute, "forward", "backward"))} of computing, ${amount(spent(lanes.compute, "copy"))} of ` +
    `copies, and ${amount(waits)} in which this stream waits (${named}). Collectives take ${amount(sent)}; ` +
    `${Math.round(100 * hidden * (1 + 1e-12))} % of that is hidden.`;
  return { lanes, groups, total, late, hidden, say };
}
