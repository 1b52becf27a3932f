// A scripted program with a loop, and what the compiler's passes make of its graph: as figures/script_passes.py.
const SCRIPT_PASSES = {
  "": "nothing", inline: "inlining", dead: "dead code", peephole: "peephole", unroll: "unrolling", fold: "constants",
  cse: "common parts", careless: "careless",
}; // prettier-ignore
const SLOTS = ["p1", "p2", "p3", "p4", "p5", "p6"];
const [EXAMPLE_X, EXAMPLE_N] = [[0.5, -1, 2, 0], 10];
const [UNROLLED, SMALL_BODY] = [8, 32];
const INT_OPS = {
  "aten::add": (a, b) => a + b,
  "aten::sub": (a, b) => a - b,
  "aten::mul": (a, b) => a * b,
  "aten::__round_to_zero_floordiv": (a, b) => Math.floor(a / b),
};

const isValue = (arg) => typeof arg === "object";
const isConstantInt = (arg) => typeof arg === "number";
const hintOf = ({ name, type }) => [name.slice(0, Math.max(0, name.lastIndexOf("."))), type];

// Values: { name, type, node }. Nodes: { kind, args, key, outs, block }; constants in args are numbers and true.
class ScriptGraph {
  keys = 0;
  counts = {};
  block = { ins: [{ name: "x", type: "Tensor", node: null }, { name: "n", type: "int", node: null }], nodes: [], outs: [] }; // prettier-ignore
  // Named as its hint, with a number behind it.
  value(hint, type = "Tensor", node = null) {
    this.counts[hint] = (this.counts[hint] ?? 0) + 1;
    return { name: hint ? `${hint}.${this.counts[hint]}` : `${this.counts[hint]}`, type, node };
  }
  make(kind, args, ...outs) {
    const node = { kind, args: [...args], key: ++this.keys, outs: [], block: null };
    node.outs = outs.map(([hint, type]) => this.value(hint, type, node));
    return node;
  }
  blocks() {
    const found = [this.block];
    for (const block of found) found.push(...block.nodes.map((node) => node.block).filter(Boolean)); // grows meanwhile
    return found;
  }
  nodes() {
    return this.blocks().flatMap(({ nodes }) => nodes);
  }
  lists() {
    return [...this.nodes().map(({ args }) => args), ...this.blocks().map(({ outs }) => outs)];
  }
  // What used `old` uses `made`.
  replace(old, made) {
    for (const list of this.lists()) list.forEach((one, i) => one === old && (list[i] = made));
  }
  used() {
    return new Set(this.lists().flat().filter(isValue));
  }
}

const TENSOR = ["", "Tensor"];
const INT = ["", "int"];

// The graph of the program as torch.jit.script makes it.
function scriptedGraph({ count, a, b, write }) {
  const graph = new ScriptGraph(),
    [x, n] = graph.block.ins;
  function add(block, kind, args, out) {
    block.nodes.push(graph.make(kind, args, out));
    return block.nodes.at(-1).outs[0];
  }
  add(graph.block, "prim::CallFunction", [x], ["unused", "Tensor"]);
  const once = add(graph.block, "aten::t", [x], TENSOR),
    twice = add(graph.block, "aten::t", [once], TENSOR),
    start = add(graph.block, "aten::exp", [twice], ["y", "Tensor"]);
  const result = add(graph.block, "prim::Loop", [count === "n" ? n : Number(count), true, start], ["y", "Tensor"]);
  const body = (result.node.block = { ins: [graph.value("i", "int"), graph.value("y")], nodes: [], outs: [] });
  const power = add(body, "aten::exp", [x], TENSOR),
    product = add(body, "aten::mul", [body.ins[0], a], INT),
    factor = add(body, "aten::add", [product, b], INT),
    scaled = add(body, "aten::mul", [power, factor], TENSOR);
  body.outs = [true, add(body, "aten::add", [body.ins[1], scaled], ["y", "Tensor"])];
  if (write) add(body, "aten::neg_", [x], TENSOR);
  graph.block.outs = [result];
  return graph;
}

// ---- passes

function inlineCalls(graph) {
  for (const node of graph.nodes().filter(({ kind }) => kind === "prim::CallFunction"))
    graph.block.nodes[graph.block.nodes.indexOf(node)] = graph.make("aten::sin", node.args, ["unused", "Tensor"]);
}

const writesTo = ({ kind }) => kind === "aten::neg_" || kind === "prim::CallFunction";

function removeDeadCode(graph) {
  for (;;) {
    const used = graph.used();
    const dead = graph.nodes().filter((node) => !(writesTo(node) || node.block || node.outs.some((out) => used.has(out))));
    if (!dead.length) return;
    for (const block of graph.blocks()) block.nodes = block.nodes.filter((node) => !dead.includes(node));
  }
}

const isInt = (arg) => isConstantInt(arg) || (isValue(arg) && arg.type === "int");

// The constant operand of arithmetic with ints, or null; it becomes the second one.
function constantOf({ kind, args }) {
  if (args.length !== 2 || !args.every(isInt)) return null;
  if ((kind === "aten::mul" || kind === "aten::add") && isConstantInt(args[0])) {
    args.reverse();
    return args[1];
  }
  return isConstantInt(args[1]) ? args[1] : null;
}

function simplifySum(graph, node) {
  const constant = constantOf(node);
  if (constant === null) return false;
  if (constant === 0) {
    graph.replace(node.outs[0], node.args[0]);
    return true;
  }
  const inner = isValue(node.args[0]) ? node.args[0].node : null;
  if (inner?.kind !== "aten::add" && inner?.kind !== "aten::sub") return false;
  const other = constantOf(inner);
  if (other === null) return false;
  const merged = inner.kind === node.kind ? constant + other : constant - other;
  if (merged === 0) graph.replace(node.outs[0], inner.args[0]);
  else node.args.splice(0, 2, inner.args[0], merged);
  return true;
}

// Looks at a node and those that make its operands.
function simplify(graph, node) {
  if (node.kind !== "aten::mul") return (node.kind === "aten::add" || node.kind === "aten::sub") && simplifySum(graph, node);
  if (constantOf(node) !== 1) return false;
  graph.replace(node.outs[0], node.args[0]);
  return true;
}

function transposedTwice(graph, node) {
  const inner = node.kind === "aten::t" ? node.args[0].node : null;
  if (inner?.kind !== "aten::t") return false;
  graph.replace(node.outs[0], inner.args[0]);
  return true;
}

// Its first operand is the result of exp, which nothing writes to.
function tensorTimesOne(graph, node) {
  if (node.kind !== "aten::mul" || node.outs[0].type === "int" || node.args[1] !== 1) return false;
  graph.replace(node.outs[0], node.args[0]);
  return true;
}

// Its nodes, those of a node's block before the node.
const insideFirst = (block) => block.nodes.flatMap((node) => (node.block ? [...insideFirst(node.block), node] : [node]));

function peephole(graph) {
  const changed = [transposedTwice, tensorTimesOne, simplify].map((rule) =>
    insideFirst(graph.block).map((node) => rule(graph, node)),
  );
  if (changed.flat().some(Boolean)) removeDeadCode(graph);
}

// Append a copy of a body to a list of nodes; the values of its outputs.
function appendCopy(graph, body, inputs, target) {
  const own = new Map(body.ins.map((value, i) => [value, inputs[i]]));
  const get = (arg) => (own.has(arg) ? own.get(arg) : arg);
  for (const node of body.nodes) {
    const copy = graph.make(node.kind, node.args.map(get), ...node.outs.map(hintOf));
    node.outs.forEach((out, i) => own.set(out, copy.outs[i]));
    target.push(copy);
  }
  return body.outs.map(get);
}

// The number of the iteration becomes a carried value, which the body increases.
function countExplicitly(graph, loop) {
  const body = loop.block,
    counter = graph.value("c", "int");
  graph.replace(body.ins[0], counter);
  loop.args.splice(2, 0, 0);
  loop.outs.unshift(graph.value("c", "int", loop));
  body.ins.splice(1, 0, counter);
  const following = graph.make("aten::add", [counter, 1], ["c", "int"]);
  body.nodes.push(following);
  body.outs.splice(1, 0, following.outs[0]);
}

function repeated(graph, loop, times, first, carried, target) {
  for (let i = 0; i < times; i++) carried = appendCopy(graph, loop.block, [first, ...carried], target).slice(1);
  return carried;
}

function unrollCompletely(graph, block, loop) {
  const made = [],
    results = repeated(graph, loop, loop.args[0], 0, loop.args.slice(2), made);
  block.nodes.splice(block.nodes.indexOf(loop), 1, ...made);
  loop.outs.forEach((old, i) => graph.replace(old, results[i]));
}

const likeInputs = (graph, { ins }) => ({ ins: ins.map((value) => graph.value(...hintOf(value))), nodes: [], outs: [] });

// A second loop behind this one, which goes on where it ends.
function restOf(graph, loop) {
  const rest = graph.make("prim::Loop", loop.args, ...loop.outs.map(hintOf));
  rest.block = likeInputs(graph, loop.block);
  rest.block.outs = appendCopy(graph, loop.block, rest.block.ins, rest.block.nodes);
  loop.outs.forEach((old, i) => graph.replace(old, rest.outs[i]));
  rest.args.splice(2, Infinity, ...loop.outs);
  return rest;
}

function unrollByEight(graph, block, loop) {
  const rest = restOf(graph, loop),
    longer = likeInputs(graph, loop.block),
    [first, ...carried] = longer.ins;
  longer.outs = [true, ...repeated(graph, loop, UNROLLED, first, carried, longer.nodes)];
  loop.block = longer;
  const eighths = graph.make("aten::__round_to_zero_floordiv", [loop.args[0], UNROLLED], INT),
    done = graph.make("aten::mul", [eighths.outs[0], UNROLLED], INT),
    left = graph.make("aten::sub", [loop.args[0], done.outs[0]], INT);
  block.nodes.splice(block.nodes.indexOf(loop), 1, eighths, done, left, loop, rest);
  loop.args[0] = eighths.outs[0];
  rest.args[0] = left.outs[0];
}

function unrollLoops(graph) {
  let changed = false;
  for (const block of graph.blocks())
    for (const loop of block.nodes.filter(({ kind }) => kind === "prim::Loop")) {
      if (loop.block.nodes.length > SMALL_BODY) continue;
      if (graph.used().has(loop.block.ins[0])) countExplicitly(graph, loop);
      (isConstantInt(loop.args[0]) ? unrollCompletely : unrollByEight)(graph, block, loop);
      changed = true;
    }
  if (changed) removeDeadCode(graph);
}

function foldConstants(graph) {
  let changed = false;
  for (const node of insideFirst(graph.block))
    if (Object.hasOwn(INT_OPS, node.kind) && node.args.every(isConstantInt)) {
      graph.replace(node.outs[0], INT_OPS[node.kind](...node.args));
      changed = true;
    }
  if (changed) removeDeadCode(graph);
}

// The values that may share memory with what something writes to: x and its views, if there is a write.
function touchedValues(graph) {
  if (!graph.nodes().some(writesTo)) return new Set();
  const views = graph.nodes().filter((node) => writesTo(node) || node.kind === "aten::t");
  return new Set([graph.block.ins[0], ...views.flatMap(({ outs }) => outs)]);
}

const scriptWord = (arg) => (isValue(arg) ? `%${arg.name}` : arg === true ? "True" : String(arg));

function mergeEqual(graph, block, before, written) {
  const known = new Map(before);
  for (const node of [...block.nodes]) {
    if (node.block) mergeEqual(graph, node.block, known, written);
    if (node.block || node.kind === "prim::CallFunction" || [...node.args, ...node.outs].some((one) => written.has(one))) continue;
    const key = [node.kind, ...node.args.map(scriptWord)].join(" ");
    if (!known.has(key)) known.set(key, node);
    else {
      graph.replace(node.outs[0], known.get(key).outs[0]);
      block.nodes.splice(block.nodes.indexOf(node), 1);
    }
  }
}

const RUN_PASS = {
  inline: inlineCalls,
  dead: removeDeadCode,
  peephole,
  unroll: unrollLoops,
  fold: foldConstants,
  cse: (graph) => mergeEqual(graph, graph.block, new Map(), touchedValues(graph)),
  careless: (graph) => mergeEqual(graph, graph.block, new Map(), new Set()),
};

// ---- what it computes

const transposedOf = (values) => [0, 2, 1, 3].map((i) => values[i]);
const readArray = ([memory, turned]) => (turned ? transposedOf(memory) : memory);

// An array is [memory, is it seen transposed]: x and its views share the memory.
function tensorResult({ kind }, args) {
  if (kind === "aten::t") return [args[0][0], !args[0][1]];
  if (kind === "aten::neg_") {
    args[0][0].forEach((v, i, memory) => (memory[i] = -v));
    return args[0];
  }
  const [first, second] = args.map((a) => (Array.isArray(a) ? readArray(a) : [a, a, a, a]));
  if (!second) return [first.map(kind === "aten::exp" ? Math.exp : Math.sin), false];
  return [first.map((v, i) => INT_OPS[kind](v, second[i])), false];
}

// One call with the example: how many operators it executes, what it returns, and what is in x afterwards.
function runScript(graph) {
  const [x, n] = graph.block.ins,
    values = new Map([[x, [[...EXAMPLE_X], false]], [n, EXAMPLE_N]]); // prettier-ignore
  const get = (arg) => (isValue(arg) ? values.get(arg) : arg);
  let executed = 0;
  function runBlock(block) {
    for (const node of block.nodes) {
      const args = node.args.map(get);
      if (node.block) {
        runLoop(node, args);
        continue;
      }
      executed += 1;
      values.set(node.outs[0], args.every(isConstantInt) ? INT_OPS[node.kind](...args) : tensorResult(node, args));
    }
  }
  function runLoop(node, [times, , ...carried]) {
    for (let i = 0; i < times; i++) {
      node.block.ins.forEach((value, at) => values.set(value, [i, ...carried][at]));
      runBlock(node.block);
      carried = node.block.outs.slice(1).map(get);
    }
    node.outs.forEach((out, at) => values.set(out, carried[at]));
  }
  runBlock(graph.block);
  return { executed, outcome: [readArray(get(graph.block.outs[0])), values.get(x)[0]] };
}

// ---- what there is to see

const typedWords = (values) => values.map((value) => `${scriptWord(value)} : ${value.type}`).join(", ");
const allWords = (args) => args.map(scriptWord).join(", ");

// [key, depth, text] of each line.
function rowsOf(block, depth = 1) {
  return block.nodes.flatMap((node) => {
    const called = (node.kind === "prim::CallFunction" ? "sine, " : "") + allWords(node.args);
    const row = [`${node.key}`, depth, `${typedWords(node.outs)} = ${node.kind}(${called})`];
    if (!node.block) return [row];
    const first = [`${node.key} in`, depth + 1, `block0(${typedWords(node.block.ins)}):`];
    return [row, first, ...rowsOf(node.block, depth + 2), [`${node.key} out`, depth + 2, `-> (${allWords(node.block.outs)})`]];
  });
}
const linesOf = ({ block }) => [
  ["in", 0, `graph(${typedWords(block.ins)}):`],
  ...rowsOf(block),
  ["out", 1, `return (${allWords(block.outs)})`],
];

// The lines before and after a pass in one list, by what they are lines of; what has gone stays behind its predecessor.
function mergedLines(before, after) {
  const old = new Map(before.map(([key, , text]) => [key, text])),
    kept = new Set(after.map(([key]) => key));
  const stateOf = (key, text) => (!old.has(key) ? "new" : old.get(key) === text ? "" : "changed");
  const rows = after.map(([key, depth, text]) => ({ key, depth, text, state: stateOf(key, text) }));
  let last = null;
  for (const [key, depth, text] of before) {
    if (!kept.has(key)) rows.splice(rows.findIndex((row) => row.key === last) + 1, 0, { key, depth, text, state: "gone" });
    last = key;
  }
  return rows;
}

const near = (a, b) => a.every((p, i) => Math.abs(p - b[i]) < 1e-6 * Math.max(1, Math.abs(p), Math.abs(b[i])));
const verdictOf = (now, wanted) => (!near(now[0], wanted[0]) ? "wrong" : near(now[1], wanted[1]) ? "right" : "inputs");
const shownArray = (values) => arrayText({ shape: [2, 2], values });

const ENDINGS = {
  right: () => "The result is the same.",
  inputs: () => "The result is the same, but x afterwards is not: a caller would see that.",
  wrong: (value, wanted) => `It returns ${value} instead of ${wanted}: this graph is wrong.`,
};
const DID = {
  inline: "Inlining puts the body of sine where it was called.",
  dead: "Dead code: what nothing uses goes, unless it writes, or is a call.",
  peephole: "Peephole: t of t, times 1, plus 0.",
  unroll: "Unrolling writes a known number of iterations out; of an unknown one, eight become one.",
  fold: "Constants: what follows from constants alone is computed now.",
  cse: "Common parts: equal nodes become one, unless something writes to what they touch.",
  careless: "Careless: equal nodes become one, and nobody asks who writes.",
};
const callText = (graph, { executed }) =>
  `${plural(graph.nodes().length, "node")}; a call executes ${plural(executed, "operator")}`;

const model = (inputs) => {
  const graph = scriptedGraph(inputs),
    first = runScript(graph),
    wanted = first.outcome;
  let before = linesOf(graph);
  const steps = [{ title: "scripted", lines: mergedLines(before, before), verdict: "right" }];
  const say = [`As scripted: ${callText(graph, first)} and returns ${shownArray(wanted[0])}.`];
  for (const kind of SLOTS.map((slot) => inputs[slot]).filter(Boolean)) {
    RUN_PASS[kind](graph);
    const run = runScript(graph),
      after = linesOf(graph),
      verdict = verdictOf(run.outcome, wanted);
    steps.push({ title: SCRIPT_PASSES[kind], lines: mergedLines(before, after), verdict });
    const ending = ENDINGS[verdict](shownArray(run.outcome[0]), shownArray(wanted[0]));
    say.push(`${DID[kind]} ${callText(graph, run)}. ${ending}`);
    before = after;
  }
  return { steps, say };
};
