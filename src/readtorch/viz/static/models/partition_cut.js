// A short program, its joint graph, and the minimum cut through it: as figures/partition_cut.py and _functorch/partitioners.py.
const FAR = 1e9; // steps from the backward: no way leads there
const SHOWN_FAR = 999;
const VIEWS = ["t", "view", "expand"];
const NOT_CHEAP = "mm native_dropout _softmax native_layer_norm detach _softmax_backward_data native_layer_norm_backward".split(" ");

const isView = ({ target }) => VIEWS.includes(target);
const isCheap = ({ op, target }) => op === "call_function" && !NOT_CHEAP.includes(target);
const mayFuse = (node) => isCheap(node) || isRandom(node);
const isFusible = (a, b) => mayFuse(a) && mayFuse(b);

// ---- the graph

// Nodes that compute the same are one; random numbers stay apart, and what shares memory with an output.
function mergeEqual({ nodes, result, gradients, primals }) {
  const outputs = [result, ...gradients.filter(Boolean)];
  const apart = new Set(outputs.map(({ storage }) => storage));
  const now = new Map(),
    known = new Map();
  const at = (one) => (one?.name ? now.get(one) : one);
  const kept = [];
  for (const node of nodes) {
    const copy = { ...node, args: node.args.map(at), inputs: [...new Set(node.inputs.map(at))] };
    const merges = node.op === "call_function" && !isRandom(node) && !(node.shape && apart.has(node.storage));
    const key = merges && JSON.stringify([node.target, ...copy.args.map((arg) => (arg.name ? [arg.name] : arg))]);
    if (merges && known.has(key)) now.set(node, known.get(key));
    else {
      kept.push(copy);
      now.set(node, copy);
      if (merges) known.set(key, copy);
    }
  }
  return { nodes: kept, result: at(result), gradients: gradients.map(at), primals: primals.map(at) };
}

// With the users of each node, and the output as the last node.
function linked(joint) {
  const outputs = [joint.result, ...joint.gradients.filter(Boolean)];
  const output = { name: "output", op: "output", target: "output", inputs: [...new Set(outputs)], users: [] };
  const all = [...joint.nodes, output];
  all.forEach((node) => (node.users = []));
  for (const node of all) for (const input of node.inputs) input.users.push(node);
  return { ...joint, output, all, outputs };
}

const isTangent = ({ name }) => name.startsWith("tangents");

function classifyNodes(joint) {
  const { nodes, all, primals } = joint;
  const closure = new Set();
  for (const node of nodes) if (isTangent(node) || closure.has(node)) [node, ...node.users].forEach((one) => closure.add(one));
  const forward = reachedFrom([joint.result, ...nodes.filter(isRandom)]);
  const order = new Map(nodes.filter((node) => forward.has(node) || primals.includes(node)).map((node, i) => [node, i]));
  const distance = new Map();
  for (const node of [...all].reverse()) {
    const nearest = Math.min(FAR, ...node.users.map((user) => distance.get(user) + 1));
    distance.set(node, node.op === "output" ? FAR : order.has(node) ? nearest : 0);
  }
  const parameters = new Set(primals.filter(({ target }) => target !== "x"));
  const backward = new Set([...closure, ...joint.gradients.filter(Boolean)]);
  return { closure, order, distance, parameters, backward };
}

// ---- the cut

const isMaterialized = (node) => node.op === "placeholder" || !node.users.every((user) => isFusible(node, user));

class CutProblem {
  constructor(info, options, allowed) {
    Object.assign(this, { info, options, allowed });
    this.banned = new Map(); // node -> why
    this.flow = new CutFlow();
  }
  add(node) {
    const { closure, backward, order } = this.info;
    const [inward, outward] = [`${node.name}_in`, `${node.name}_out`];
    if (closure.has(node)) return this.flow.edge(inward, SINK, Infinity);
    if (backward.has(node)) this.flow.edge(outward, SINK, Infinity);
    const why = order.has(node) && this.whyNotAgain(node);
    if (node.op === "placeholder" || why) this.ban(node, why || "");
    this.flow.edge(inward, outward, this.cost(node));
    for (const user of node.users) this.flow.edge(outward, `${user.name}_in`, Infinity);
  }
  ban(node, why) {
    if (isView(node) || this.allowed.has(node)) return;
    this.banned.set(node, why);
    this.flow.edge(SOURCE, `${node.name}_in`, Infinity);
  }
  cost(node) {
    if (!node.shape) return Infinity; // a tuple: its parts are saved
    if (this.info.parameters.has(node)) return 0;
    const size = Math.trunc(node.bytes * 1.1 ** Math.max(Math.min(this.info.distance.get(node), 100), 1));
    return isMaterialized(node) ? size : 2 * size;
  }
  whyNotAgain(node) {
    const { options, info } = this;
    if (node.op !== "call_function" || node.target === "getitem") return "";
    if (options.allowlist && !isCheap(node)) return "not in recomputable allowlist";
    if (!options.allowlist && (isRandom(node) || node.target === "mm")) return "random or compute intensive op";
    if (options.materialized && this.isMaterializedBackwards(node)) return "materialized in backward";
    const operands = node.args.filter((arg) => arg.name).reduce((sum, { bytes }) => sum + bytes, 0);
    return options.reductions && node.bytes * 4 < operands ? "reduction op" : "";
  }
  isMaterializedBackwards(node) {
    if (isView(node)) return false;
    const pending = [node];
    while (pending.length) {
      const current = pending.pop();
      for (const user of current.users) {
        if (!this.info.order.has(user) && !isFusible(current, user)) return true;
        if (isView(user)) pending.push(user);
      }
    }
    return false;
  }
  // Of a result that is used early and late, with something between that does not fuse: the late use.
  banUsedFarApart() {
    const { order } = this.info;
    for (const used of order.keys()) {
      const users = used.users.filter((user) => order.has(user));
      if (!users.length) continue;
      const first = this.firstUnfusible(users, Math.max(...users.map((user) => order.get(user))));
      for (const user of users)
        if (order.get(user) > first && isFusible(used, user) && !this.banned.has(user)) this.ban(user, "used far apart");
    }
  }
  firstUnfusible(start, end) {
    const { order } = this.info;
    const queue = start.map((node) => [node, true]);
    const seen = new Set(start.map(({ name }) => `${name} true`));
    while (queue.length) {
      queue.sort(([a], [b]) => order.get(b) - order.get(a)); // those of one node lead to the same
      const [node, fuses] = queue.pop();
      if (!fuses) return order.get(node);
      for (const user of node.users) {
        const next = [user, isFusible(node, user)],
          key = `${user.name} ${next[1]}`;
        if (!order.has(user) || order.get(user) > end || seen.has(key)) continue;
        seen.add(key);
        queue.push(next);
      }
    }
    return end;
  }
}

function solveCut(joint, info, options, allowed = new Set()) {
  const problem = new CutProblem(info, options, allowed);
  joint.nodes.forEach((node) => problem.add(node));
  if (options.apart) problem.banUsedFarApart();
  const cut = problem.flow.minimumCut();
  return { problem, saved: joint.nodes.filter(({ name }) => cut.has(`${name}_in`)) };
}

// ---- the minimum cut, by Dinic's algorithm: as _functorch/min_cut.py

const SOURCE = "source",
  SINK = "sink";

class CutFlow {
  constructor() {
    this.room = new Map([[SOURCE, new Map()], [SINK, new Map()]]); // prettier-ignore
    this.edges = [];
  }
  edge(u, v, capacity) {
    for (const one of [u, v]) if (!this.room.has(one)) this.room.set(one, new Map());
    this.edges.push([u, v]);
    this.room.get(u).set(v, capacity);
    if (!this.room.get(v).has(u)) this.room.get(v).set(u, 0);
  }
  // Where the edges begin that are cut: of several cheapest cuts that nearest to the sink.
  minimumCut() {
    for (let levels = this.levels(); levels.has(SINK); levels = this.levels()) this.augment(levels);
    const below = new Set([SINK]),
      pending = [SINK];
    while (pending.length) {
      const v = pending.pop();
      for (const u of this.room.get(v).keys())
        if (!below.has(u) && this.room.get(u).get(v) > 0) {
          below.add(u);
          pending.push(u);
        }
    }
    return new Set(this.edges.filter(([u, v]) => !below.has(u) && below.has(v)).map(([u]) => u));
  }
  levels() {
    const distance = new Map([[SOURCE, 0]]);
    for (const [u, at] of distance)
      for (const [v, room] of this.room.get(u)) if (room > 0 && !distance.has(v)) distance.set(v, at + 1);
    return distance;
  }
  augment(levels) {
    const below = (u, at) => [...this.room.get(u).keys()].filter((v) => levels.get(v) === at + 1);
    const onward = new Map([...levels].map(([u, at]) => [u, below(u, at)]));
    let path = [SOURCE];
    while (path.length) {
      const u = path.at(-1);
      if (u === SINK) {
        this.fill(path);
        path = [SOURCE];
        continue;
      }
      const ways = onward.get(u);
      while (ways.length && !this.room.get(u).get(ways.at(-1))) ways.pop();
      if (ways.length) path.push(ways.at(-1));
      else {
        path.pop();
        if (path.length) onward.get(path.at(-1)).pop();
      }
    }
  }
  fill(path) {
    const steps = path.slice(1).map((v, i) => [path[i], v]);
    const flow = Math.min(...steps.map(([u, v]) => this.room.get(u).get(v)));
    if (flow === Infinity) refuse("The partitioner finds no cut of this graph.");
    for (const [u, v] of steps) {
      this.room.get(u).set(v, this.room.get(u).get(v) - flow);
      this.room.get(v).set(u, this.room.get(v).get(u) + flow);
    }
  }
}

// ---- within a budget

const totalSize = (nodes) => nodes.reduce((sum, { bytes }) => sum + bytes, 0) / 1e9;

// The nodes to save, and the problem that was solved last.
function chooseSaved(joint, info, inputs) {
  const { budget, apart, materialized, allowlist, reductions } = inputs;
  const options = { apart, materialized, allowlist, reductions };
  if (budget === 0) return { saved: joint.primals, problem: new CutProblem(info, options, new Set()) };
  const fastest = solveCut(joint, info, options);
  const least = totalSize(joint.primals),
    most = totalSize(fastest.saved);
  if (budget === 1 || most <= least) return fastest;
  let now;
  for (const allowlist of [options.allowlist, false]) {
    now = solveCut(joint, info, { apart: false, materialized: false, allowlist, reductions });
    if ((totalSize(now.saved) - least) / (most - least) < budget) return now;
  }
  const storages = new Set(joint.primals.map(({ storage }) => storage));
  const candidates = [...now.problem.banned.keys()]
    .filter((node) => info.distance.get(node) < FAR && !(node.shape && storages.has(node.storage)))
    .sort((a, b) => b.bytes - a.bytes);
  if (!candidates.length) return { saved: joint.primals, problem: now.problem };
  const memory = candidates.map(({ bytes }) => bytes / 1e9 / (most - least));
  const again = knapsack(memory, candidates.map(operationsOf), budget);
  return solveCut(joint, info, now.problem.options, new Set(again.map((i) => candidates[i])));
}

const operationsOf = ({ target, args }) => (target === "mm" ? 2 * args[0].shape[0] * args[0].shape[1] * args[1].shape[1] : 1);

const UNITS_OF_ROOM = 10000;
function roundToEven(x) {
  const low = Math.floor(x),
    rest = x - low;
  return rest < 0.5 || (rest === 0.5 && low % 2 === 0) ? low : low + 1;
}

// The numbers of what is computed again. best[i][m]: the most operations that the first i results save in m units.
function knapsack(memory, operations, budget) {
  const sizes = memory.map((share) => roundToEven(share * UNITS_OF_ROOM)),
    room = roundToEven(budget * UNITS_OF_ROOM);
  const best = [new Float32Array(room + 1)];
  sizes.forEach((size, i) => {
    const before = best[i],
      now = before.slice(),
      gain = Math.fround(operations[i]);
    for (let m = size; m <= room; m++) now[m] = Math.max(before[m], Math.fround(before[m - size] + gain));
    best.push(now);
  });
  const again = [];
  let left = room;
  for (let i = sizes.length; i > 0; i--)
    if (best[i][left] !== best[i - 1][left]) left -= sizes[i - 1];
    else again.push(i - 1);
  return again;
}

// ---- the two parts: { saved, forward, backward: nodes computed there, outputs of each }

function partsOf(joint, candidates) {
  const gradients = joint.gradients.filter(Boolean),
    given = new Set(candidates);
  const possible = new Set([...candidates, ...joint.nodes.filter(isTangent)]);
  for (const node of joint.nodes) if (node.op === "call_function" && node.inputs.every((one) => possible.has(one))) possible.add(node);
  const random = joint.nodes.filter((node) => isRandom(node) && possible.has(node));
  const asked = reachedFrom([...gradients, ...random], given);
  const saved = candidates.filter((node) => asked.has(node));
  const made = (outputs, stop) => {
    const found = reachedFrom(outputs, stop);
    return { outputs, nodes: joint.nodes.filter((node) => node.op === "call_function" && found.has(node) && !stop.has(node)) };
  };
  return { saved, forward: made([joint.result, ...saved], new Set()), backward: made(gradients, given) };
}

// What eager keeps: all that the backward asks for.
function defaultParts(joint) {
  const isTuple = ({ users }) => users.length > 0 && users.every(({ target }) => target === "getitem");
  const forward = joint.nodes.filter((node) => node.half === "forward" && !isTuple(node));
  return partsOf(joint, forward.filter(({ users }) => users.some(({ half }) => half !== "forward"))); // prettier-ignore
}

// Each storage counts once, and parameters, which are there anyway, do not.
function keptBy({ saved }, parameters) {
  const sizes = new Map();
  for (const { storage, bytes } of saved) if (!parameters.has(storage)) sizes.set(storage, Math.max(sizes.get(storage) ?? 0, bytes));
  return [sizes.size, [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)];
}

const makerOf = (node) => (node.target === "getitem" ? node.args[0] : node);

// Bytes that the kernels of a part read and write. fused: operators that the partitioner calls fusible share a kernel.
function trafficOf({ nodes, outputs }, fused) {
  const computed = new Set(nodes);
  const sourceOf = (node) => (computed.has(node) && ALIASES.includes(node.target) ? sourceOf(node.args[0]) : node);
  const body = nodes.filter(({ target }) => target !== "getitem" && !ALIASES.includes(target));
  const kernels = new Map(body.map((node) => [node, new Set([node])]));
  const kernelOf = (node) => (computed.has(node) ? kernels.get(makerOf(node)) : undefined);
  const uses = body.flatMap((node) => [...new Set(node.inputs.map(sourceOf))].map((operand) => [node, operand]));
  for (const [node, operand] of uses) {
    if (!fused || !kernelOf(operand) || !isFusible(makerOf(operand), node)) continue;
    const together = new Set([...kernelOf(operand), ...kernels.get(node)]);
    for (const one of together) kernels.set(one, together);
  }
  const across = uses.filter(([node, operand]) => kernelOf(operand) !== kernels.get(node));
  const reads = new Map();
  for (const [node, operand] of across) reads.set(kernels.get(node), (reads.get(kernels.get(node)) ?? new Set()).add(operand));
  const written = new Set([...outputs.map(sourceOf), ...across.map(([, operand]) => operand)].filter(kernelOf));
  return [...reads.values(), written].reduce((sum, some) => sum + [...some].reduce((all, { bytes }) => all + bytes, 0), 0);
}

function rowOf(title, parts, parameters, fused) {
  const [count, kept] = keptBy(parts, parameters);
  return { title, count, kept, forward: trafficOf(parts.forward, fused), backward: trafficOf(parts.backward, fused) };
}

// ---- what there is to see

function toldOfCut(rows, nodes, merged, budget) {
  const eager = rows[0],
    cut = rows.at(-1);
  const again = nodes.filter(({ state, target }) => state === "again" && target !== "getitem" && !ALIASES.includes(target)).length;
  return (
    `Eager keeps ${plural(eager.count, "value")} for the backward, ${sizeInTenths(eager.kept)}. ` +
    `The cut keeps ${plural(cut.count, "value")}, ${sizeInTenths(cut.kept)}, and the backward computes ${plural(again, "operator")} again.` +
    (merged ? ` ${plural(merged, "node")} computed what another computes, and ${merged === 1 ? "is" : "are"} merged with it.` : "") +
    (budget === 0 ? " With a budget of 0 only inputs are kept." : "") +
    (nodes.some((node) => isRandom(node) && node.state === "again")
      ? " A dropout that is computed again draws another mask: these gradients are not those of the result."
      : "")
  );
}

const model = (inputs) => {
  const traced = linked(traceJoint(inputs.program, { B: inputs.batch, W: inputs.width }));
  const parameters = new Set(traced.primals.filter(({ target }) => target !== "x").map(({ storage }) => storage));
  const eager = defaultParts(traced),
    joint = linked(mergeEqual(traced)),
    info = classifyNodes(joint);
  const { saved, problem } = chooseSaved(joint, info, inputs);
  const cut = partsOf(joint, saved);
  const [kept, first, second] = [cut.saved, cut.forward.nodes, cut.backward.nodes].map((some) => new Set(some));
  const stateOf = (node) => {
    if (kept.has(node)) return "saved";
    if (node.op === "placeholder") return isTangent(node) ? "tangent" : "input";
    if (first.has(node)) return second.has(node) ? "again" : "forward";
    return second.has(node) ? "backward" : "unused";
  };
  const keptByEager = new Set(eager.saved.map(({ name }) => name));
  const nodes = joint.nodes.map((node) => ({
    name: node.name, target: node.target, args: node.args.map((arg) => arg.name ?? arg), inputs: node.inputs.map(({ name }) => name),
    shape: node.shape, bytes: node.bytes, half: node.half, state: stateOf(node), eager: keptByEager.has(node.name),
    parameter: node.shape !== null && parameters.has(node.storage),
    cost: Number.isFinite(problem.cost(node)) ? problem.cost(node) : null,
    distance: Math.min(info.distance.get(node), SHOWN_FAR), ban: problem.banned.get(node) ?? "",
  })); // prettier-ignore
  const rows = [
    rowOf("eager", eager, parameters, false),
    rowOf("what eager keeps, fused", eager, parameters, true),
    rowOf("the cut, fused", cut, parameters, true),
  ];
  const merged = traced.nodes.length - nodes.length;
  return { nodes, rows, say: toldOfCut(rows, nodes, merged, inputs.budget) };
};
