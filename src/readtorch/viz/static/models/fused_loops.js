// A short program, the values that get a place in memory, and the kernels that compute them: as figures/fused_loops.py.
const LOOP_INPUTS = ["x", "z", "w", "b"];
const HEAVY = ["exp", "tanh"];
const WORK = { exp: 20, tanh: 20, sin: 20, sqrt: 5 };
const TOTALS = ["sum", "amax"],
  LOOP_VIEWS = ["t", "flip"];
const LOOP_FUNCTIONS = ["exp", "tanh", "sin", "sqrt", "relu", ...TOTALS, ...LOOP_VIEWS];
const SIGN_NAMES = { "+": "add", "-": "sub", "*": "mul", "/": "div", "@": "mm" };
const LOOP_LANGUAGE = {
  functions: Object.fromEntries(LOOP_FUNCTIONS.map((name) => [name, 0])),
  reserved: [...LOOP_INPUTS, "R", "C"],
  mostOperators: 16,
  allowed:
    "Allowed: name = …, with x and z of R rows and C columns, w of C and C, b of C, your names, numbers, + - * / @, parentheses, " +
    "exp(…), tanh(…), sin(…), sqrt(…), relu(…), sum(…) and amax(…) of each row, flip(…) of the rows, t(…). The last line is what " +
    "is returned.",
};
const ELEMENT_BYTES = 4;
const countOf = (shape) => shape.reduce((whole, n) => whole * n, 1);

// ---- a value is a function of its index: a place is [row, column], each a·i + b·j + c as [a, b, c]

const HERE = [[1, 0, 0], [0, 1, 0]]; // prettier-ignore
const NOWHERE = [0, 0, 0];
const combined = ([a, b, c], [row, column]) => {
  const each = row.map((r, k) => a * r + b * column[k]);
  return [each[0], each[1], each[2] + c];
};
const placeWithin = (place, outer) => place.map((part) => combined(part, outer));

const keyOf = (entry) => JSON.stringify(entry);
const distinct = (entries) => [...new Map(entries.map((entry) => [keyOf(entry), entry])).values()];

// reads, steps: [name, place] of memory and of operators.
const makeValue = (shape, reads = [], steps = [], total = false) =>
  ({ shape, reads: distinct(reads), steps: distinct(steps), total, ranges: shape, buffer: null }); // prettier-ignore

function elementAt(value, place) {
  if (value.buffer !== null) return [[[value.buffer, place]], []];
  const moved = ([name, inner]) => [name, placeWithin(inner, place)];
  return [value.reads.map(moved), value.steps.map(moved)];
}

const broadcastPlace = (shape, wider) => HERE.map((part, d) => (shape[d] < wider[d] ? NOWHERE : part));
const sizesText = ([rows, columns]) => `${rows} × ${columns}`;
const isNode = (operand) => typeof operand === "string";

class Lowering {
  constructor(lines, [rows, columns]) {
    this.buffers = new Map();
    this.operators = new Map();
    this.places = new Map();
    this.inputs = { x: [rows, columns], z: [rows, columns], w: [columns, columns], b: [1, columns] };
    for (const [name, shape] of Object.entries(this.inputs)) this.places.set(name, { ...makeValue(shape), buffer: name });
    this.users = this.countUsers(lines);
    const known = new Map(LOOP_INPUTS.map((name) => [name, name]));
    for (const [name, tree] of lines) known.set(name, this.node(tree, known));
    this.output = this.places.get(known.get(lines.at(-1)[0]));
    if (LOOP_INPUTS.includes(this.output.buffer)) refuse("The last line computes nothing: end with an operator.");
    this.realize(this.output);
    this.dropDead();
  }
  countUsers(lines) {
    const counts = new Map(),
      names = new Map(LOOP_INPUTS.map((name) => [name, name]));
    const add = (part) => counts.set(part, (counts.get(part) ?? 0) + 1);
    let made = 0;
    const visit = (tree) => {
      if (isNumber(tree)) return null;
      if (typeof tree === "string") return names.has(tree) ? names.get(tree) : notKnown(LOOP_LANGUAGE, tree);
      const parts = new Set(tree.slice(1).map(visit));
      parts.delete(null);
      made += 1;
      const number = made;
      parts.forEach(add);
      return number;
    };
    for (const [name, tree] of lines) {
      names.set(name, visit(tree));
      if (names.get(name) === null) refuse(`${name} is a number: write it where it is used.`);
    }
    add(names.get(lines.at(-1)[0]));
    return counts;
  }
  // The name of the operator, or input, that a tree is the result of; a number as it is.
  node(tree, known) {
    if (isNumber(tree)) return tree;
    if (typeof tree === "string") return known.get(tree);
    const operands = tree.slice(1).map((part) => this.node(part, known));
    const kind = SIGN_NAMES[tree[0]] ?? tree[0],
      name = this.freeName(kind);
    this.operators.set(name, null);
    const [value, worked] = this.value(kind, name, operands);
    this.operators.set(name, { kind, worked, shape: value.shape, operands: operands.filter(isNode) });
    this.places.set(name, value);
    if (value.buffer === null && (value.total || this.isWorthIt(value))) this.realize(value);
    return name;
  }
  freeName(kind) {
    const taken = [...this.operators.keys()].filter((name) => name === kind || name.startsWith(`${kind}_`)).length;
    return taken ? `${kind}_${taken}` : kind;
  }
  isWorthIt(value) {
    const heavy = value.steps.some(([name]) => HEAVY.includes(this.operators.get(name).kind));
    return (this.users.get(this.operators.size) ?? 0) > 1 && heavy;
  }
  value(kind, name, operands) {
    if (!operands.every(isNode) && ["mm", ...LOOP_FUNCTIONS].includes(kind)) refuse(`${kind} of a number: a tensor is wanted.`);
    if (!operands.some(isNode)) refuse("Python computes numbers among themselves before any tensor sees them.");
    const values = operands.filter(isNode).map((one) => this.places.get(one));
    if (kind === "mm") return this.product(name, ...values);
    if (LOOP_VIEWS.includes(kind)) return this.view(kind, name, values[0]);
    if (TOTALS.includes(kind)) return this.total(name, values[0]);
    const shape = [0, 1].map((d) => Math.max(...values.map((v) => v.shape[d])));
    if (values.some((v) => v.shape.some((n, d) => n !== 1 && n !== shape[d])))
      refuse(`${values.map((v) => sizesText(v.shape)).join(" and ")}: these sizes do not broadcast.`);
    return [this.computed(name, shape, values.map((v) => [v, broadcastPlace(v.shape, shape)])), shape]; // prettier-ignore
  }
  computed(name, shape, operands, total = false) {
    const parts = operands.map(([value, place]) => elementAt(value, place));
    return makeValue(shape, parts.flatMap(([reads]) => reads), [...parts.flatMap(([, steps]) => steps), [name, HERE]], total); // prettier-ignore
  }
  view(kind, name, x) {
    const [rows, columns] = x.shape;
    if (kind === "t") return [makeValue([columns, rows], ...elementAt(x, [[0, 1, 0], [1, 0, 0]])), [columns, rows]]; // prettier-ignore
    const [reads, steps] = elementAt(x, [[-1, 0, rows - 1], HERE[1]]);
    return [makeValue(x.shape, reads, [...steps, [name, HERE]]), x.shape];
  }
  total(name, x) {
    if (x.shape[1] === 1) refuse("A row of one element is its own sum: this figure adds up longer ones.");
    return [{ ...this.computed(name, [x.shape[0], 1], [[x, HERE]], true), ranges: x.shape }, x.shape];
  }
  product(name, a, b) {
    if ([...a.shape, ...b.shape].includes(1) || a.shape[1] !== b.shape[0])
      refuse(`${sizesText(a.shape)} @ ${sizesText(b.shape)}: the columns of the one are not the rows of the other.`);
    const reads = [a, b].map((operand) => [this.inMemory(operand), null]);
    const value = makeValue([a.shape[0], b.shape[1]], reads, [[name, HERE]]);
    this.store(value);
    return [value, [...a.shape, b.shape[1]]];
  }
  // The buffer that a product reads; a transposed one will do as it is.
  inMemory(value) {
    if (value.buffer === null && !value.steps.length) {
      const [[name, place]] = value.reads;
      if (equal(place, [[0, 1, 0], [1, 0, 0]])) return name; // prettier-ignore
    }
    return this.realize(value).buffer;
  }
  realize(value) {
    if (value.buffer === null) this.store(value);
    return value;
  }
  store(value) {
    value.buffer = `buf${this.buffers.size}`;
    this.buffers.set(value.buffer, value);
  }
  dropDead() {
    const needed = new Set([this.output.buffer]);
    for (const name of [...this.buffers.keys()].reverse())
      if (needed.has(name)) this.buffers.get(name).reads.forEach(([n]) => needed.add(n));
    this.buffers = new Map([...this.buffers].filter(([name]) => needed.has(name)));
  }
  bytesOf(name) {
    return ELEMENT_BYTES * countOf(this.inputs[name] ?? this.buffers.get(name).shape);
  }
}

// ---- which values one kernel computes

// A kernel, or as text why there is none.
function makeKernel(lowering, names) {
  const values = new Map(names.map((name) => [name, lowering.buffers.get(name)]));
  const all = [...values.values()];
  const read = [...new Set(all.flatMap((value) => value.reads.map(([n]) => n)))];
  const isCall = all.some((value) => value.reads.some(([, place]) => place === null));
  const kernel = { lowering, names, values, read, isCall, levels: new Map(), ranges: commonRanges(all) };
  if (kernel.ranges === null) return "their loops are of different sizes";
  return isCall ? kernel : (findLevels(kernel) ?? kernel);
}

function commonRanges(values) {
  const totals = values.filter(({ total }) => total);
  const { ranges, shape } = totals[0] ?? values[0];
  if (!totals.length) return values.every((value) => equal(value.shape, shape)) ? shape : null;
  if (totals.some((value) => !equal(value.ranges, ranges))) return null;
  return values.every((value) => equal(value.shape, ranges) || equal(value.shape, shape)) ? ranges : null;
}

function findLevels(kernel) {
  for (const [name, value] of kernel.values) {
    let level = 0;
    for (const [source, place] of value.reads) {
      const made = kernel.values.get(source);
      if (!made) continue;
      if (!sameElement(place, made.shape, value.total ? value.ranges : value.shape)) return `it reads ${source} at another index than the one just written`;
      const oneARow = !equal(made.shape, kernel.ranges),
        nowOneARow = !equal(value.shape, kernel.ranges) && !value.total;
      if (nowOneARow && !oneARow) return `it needs one element of each row of ${source}`;
      level = Math.max(level, kernel.levels.get(source) + Number(oneARow && !nowOneARow));
    }
    kernel.levels.set(name, level);
  }
  return null;
}

const sameElement = (place, made, ranges) =>
  place.every((part, d) => !(made[d] === ranges[d] && made[d] > 1 && !equal(part, HERE[d])) && !(made[d] === 1 && part[2] !== 0)) &&
  made.every((size, d) => size === 1 || size === ranges[d]);

const needs = (kernel, other) => kernel.read.some((name) => other.values.has(name));
const leadsTo = (target, start, kernels) =>
  kernels.some((k) => k !== target && k !== start && needs(start, k) && (needs(k, target) || leadsTo(target, k, kernels)));

function fuse(first, second, kernels) {
  if (first.isCall || second.isCall) return "a product is a call, not a loop";
  const both = makeKernel(first.lowering, [...first.names, ...second.names]);
  if (typeof both === "string") return both;
  const between = leadsTo(first, second, kernels) || leadsTo(second, first, kernels);
  return between ? "another kernel has to run between them" : both;
}

function savedBytes(first, second) {
  const common = new Set([...first.read, ...first.names].filter((name) => second.read.includes(name)));
  return [...common].reduce((sum, name) => sum + first.lowering.bytesOf(name), 0);
}

function scheduled(lowering, together) {
  let kernels = [...lowering.buffers.keys()].map((name) => makeKernel(lowering, [name]));
  for (let best = together && bestPair(kernels); best; best = bestPair(kernels)) {
    const [a, b, both] = best;
    kernels = ordered(kernels.filter((k) => k !== b).map((k) => (k === a ? both : k)));
  }
  return kernels;
}

function bestPair(kernels) {
  let best = null,
    most = 0;
  kernels.forEach((first, k) => {
    for (const second of kernels.slice(k + 1)) {
      const saves = savedBytes(first, second);
      if (saves <= most) continue;
      const both = fuse(first, second, kernels);
      if (typeof both !== "string") [best, most] = [[first, second, both], saves];
    }
  });
  return best;
}

function ordered(kernels) {
  const done = [];
  let left = kernels;
  while (left.length) {
    const ready = left.find((k) => !left.some((other) => other !== k && needs(k, other)));
    done.push(ready);
    left = left.filter((k) => k !== ready);
  }
  return done;
}

// ---- bytes, operations, time

function workOf(kind, worked) {
  if (kind === "mm") return 2 * countOf(worked);
  return LOOP_VIEWS.includes(kind) ? 0 : (WORK[kind] ?? 1) * countOf(worked);
}

function costOf(reads, writes, operations, { launch, bandwidth, peak }) {
  const bytes = reads + writes;
  return { bytes, operations, time: launch + Math.max(bytes / (bandwidth * 1000), operations / (peak * 1000)) };
}

const sumOf = (numbers) => numbers.reduce((sum, n) => sum + n, 0);

// [operator, sizes of its loops] for whatever is computed: in one pass over a row an equal line is written once.
function stepsOf(kernel) {
  const seen = new Map();
  for (const [name, value] of kernel.values) {
    const ranges = value.total ? value.ranges : value.shape;
    for (const step of value.steps) seen.set(JSON.stringify([kernel.levels.get(name) ?? 0, ranges, step]), [step[0], ranges]);
  }
  return seen.values();
}

function described(kernel, kernels, inputs) {
  const { lowering } = kernel;
  const elsewhere = new Set(kernels.filter((other) => other !== kernel).flatMap(({ read }) => read));
  elsewhere.add(lowering.output.buffer);
  const reads = kernel.read.filter((name) => !kernel.values.has(name)),
    writes = kernel.names.filter((name) => elsewhere.has(name));
  let operations = 0;
  const computed = new Map();
  for (const [operator, ranges] of stepsOf(kernel)) {
    const { kind, worked } = lowering.operators.get(operator);
    operations += workOf(kind, kind === "mm" ? worked : ranges);
    computed.set(operator, (computed.get(operator) ?? 0) + Number(!LOOP_VIEWS.includes(kind)));
  }
  const values = [...kernel.values].map(([name, value]) => {
    const times = new Map();
    for (const [operator] of value.steps) {
      const isView = LOOP_VIEWS.includes(lowering.operators.get(operator).kind);
      times.set(operator, isView ? 1 : (times.get(operator) ?? 0) + 1);
    }
    const users = [...kernel.values].filter(([, v]) => v.reads.some(([n]) => n === name)).map(([other]) => other);
    const later = users.some((other) => kernel.levels.get(other) > kernel.levels.get(name));
    const inRow = later && !value.total && equal(value.shape, kernel.ranges);
    return { name, steps: [...times], where: elsewhere.has(name) ? "memory" : inRow ? "row" : "register", pass: (kernel.levels.get(name) ?? 0) + 1 };
  });
  const cost = costOf(sumOf(reads.map((n) => lowering.bytesOf(n))), sumOf(writes.map((n) => lowering.bytesOf(n))), operations, inputs); // prettier-ignore
  const apart = kernels.flatMap((other, k) => {
    if (other === kernel || !needs(kernel, other)) return [];
    const why = fuse(other, kernel, kernels);
    return [[k + 1, typeof why === "string" ? why : ""]];
  });
  return { call: kernel.isCall, ranges: kernel.ranges, reads, writes, values, computed: [...computed], apart, ...cost };
}

function eagerCosts(lowering, inputs) {
  const run = [...lowering.operators.values()].filter(({ kind }) => kind !== "t");
  const bytes = (shape) => ELEMENT_BYTES * countOf(shape);
  return run.map(({ kind, worked, shape, operands }) => {
    const reads = [...new Set(operands)].map((name) => bytes(lowering.places.get(name).shape));
    return costOf(sumOf(reads), bytes(shape), workOf(kind, worked), inputs);
  });
}

const costRow = (title, costs) => ({
  title, kernels: costs.length, bytes: sumOf(costs.map((c) => c.bytes)), operations: sumOf(costs.map((c) => c.operations)),
  time: sumOf(costs.map((c) => c.time)),
}); // prettier-ignore

const model = (inputs) => {
  const lowering = new Lowering(readProgram(inputs.program, LOOP_LANGUAGE), [inputs.rows, inputs.columns]);
  const found = scheduled(lowering, inputs.together);
  const kernels = found.map((kernel) => described(kernel, found, inputs));
  const rows = [
    costRow("one by one", eagerCosts(lowering, inputs)),
    costRow(inputs.together ? "fused" : "not fused", kernels),
  ];
  return { kernels, rows, output: lowering.output.buffer, say: toldLoops(rows, kernels) };
};

// ---- words

function digitsText(x) {
  if (x >= 100) return commas(Math.floor(x + 0.5));
  const tenths = Math.floor(10 * x + 0.5);
  return `${Math.floor(tenths / 10)}.${tenths % 10}`;
}
function toldLoops([eager, ours], kernels) {
  const timesOf = new Map();
  for (const [name, times] of kernels.flatMap((k) => k.computed)) timesOf.set(name, (timesOf.get(name) ?? 0) + times);
  const again = [...timesOf].filter(([, times]) => times > 1).map(([name]) => name);
  const said =
    `${plural(eager.kernels, "operator")}, ${plural(kernels.length, "kernel")}: ${sizeInTenths(ours.bytes)} moved instead of ` +
    `${sizeInTenths(eager.bytes)}, ${digitsText(ours.time)} µs instead of ${digitsText(eager.time)} by this estimate.`;
  return again.length ? `${said} Computed more than once for an element: ${again.join(", ")}.` : said;
}
