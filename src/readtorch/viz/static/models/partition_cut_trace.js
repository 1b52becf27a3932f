// A short program, read and traced with its backward as AOTAutograd does: the joint graph, as figures/partition_cut.py has it.
const CUT_INPUTS = ["x", "w", "v", "b"];
const CUT_FUNCTIONS = "relu gelu silu sigmoid tanh exp sin cos softmax layer_norm sum dropout t view".split(" ");
const MOST_OPERATORS = 16;
const CUT_ALLOWED =
  "Allowed: name = …, with x, w, v, b, your names, numbers, + - * / @, parentheses, relu(…), gelu(…), silu(…), sigmoid(…), " +
  "tanh(…), exp(…), sin(…), cos(…), softmax(…), layer_norm(…), sum(…), dropout(…), t(…), view(…, 8, -1), where B and W are " +
  "the sizes. The last line is what is returned.";
const ALIASES = ["t", "view", "expand", "detach", "_unsafe_view"];

const CUT_LANGUAGE = {
  functions: Object.fromEntries(CUT_FUNCTIONS.map((name) => [name, name === "view" ? 2 : 0])),
  reserved: [...CUT_INPUTS, "B", "W"], mostOperators: MOST_OPERATORS, allowed: CUT_ALLOWED,
}; // prettier-ignore

// ---- sizes and strides

const product = (numbers) => numbers.reduce((whole, n) => whole * n, 1);
const rowMajor = (shape) => shape.map((_, d) => product(shape.slice(d + 1)));
const isRowMajor = ({ shape, strides }) => rowMajor(shape).every((stride, d) => shape[d] === 1 || strides[d] === stride);
const isColumnMajor = ({ shape, strides }) => strides[1] === strides[0] * shape[0] && strides[0] < strides[1];
const dense = (shape) => ({ shape, strides: rowMajor(shape) });
const turnedLayout = ({ shape, strides }) => ({ shape: [...shape].reverse(), strides: [...strides].reverse() });

const fits = (a, b) =>
  [...a].reverse().every((n, d) => d >= b.length || n === b.at(-1 - d) || n === 1 || b.at(-1 - d) === 1);
function broadcastOf(shapes) {
  const rank = Math.max(...shapes.map((shape) => shape.length));
  return Array.from({ length: rank }, (_, d) => Math.max(...shapes.map((shape) => shape.at(d - rank) ?? 1)));
}

// Of a pointwise operator: the result lies as the first operand that says how. In PyTorch: reorder_dimensions.
function pointwise(...operands) {
  const shape = broadcastOf(operands.map((one) => one.shape));
  if (shape.length < 2 || operands.every(isRowMajor)) return dense(shape);
  for (const one of operands) {
    if (one.shape.length < 2) continue;
    const [down, across] = one.strides.map((stride, d) => (one.shape[d] === shape[d] ? stride : 0));
    if (!down || !across || (down === across && shape[1] <= shape[0])) continue;
    if (across < down) break;
    return { shape, strides: [1, shape[0]] };
  }
  return dense(shape);
}

// The strides with which the elements have that shape, or null. In PyTorch: computeStride.
function stridesOfView({ shape, strides }, sizes) {
  const result = Array(sizes.length).fill(0);
  let d = sizes.length - 1,
    step = strides.at(-1),
    chunk = 1,
    filled = 1;
  for (let i = shape.length - 1; i >= 0; i--) {
    chunk *= shape[i];
    if (i && (shape[i - 1] === 1 || strides[i - 1] === chunk * step)) continue;
    while (d >= 0 && (filled < chunk || sizes[d] === 1)) {
      result[d] = filled * step;
      filled *= sizes[d--];
    }
    if (filled !== chunk) return null;
    if (i) [step, chunk, filled] = [strides[i - 1], 1, 1];
  }
  return d === -1 ? result : null;
}

// ---- the trace

const FLOAT = 4; // bytes
const BUILTINS = ["sum"]; // names that Python has already: the first node is sum_1

// The nodes, in the order in which they are traced: { name, target, args: nodes and texts, shape, strides, bytes, storage, half }.
class CutTrace {
  constructor() {
    this.nodes = [];
    this.counts = {};
    this.half = "forward";
    this.sequence = 0;
  }
  nameOf(base) {
    const count = this.counts[base] ?? (BUILTINS.includes(base) ? 1 : 0);
    this.counts[base] = count + 1;
    return count ? `${base}_${count}` : base;
  }
  node(target, args, layout, more = {}) {
    const inputs = [...new Set(args.filter((one) => one.name))];
    const bytes = layout ? product(layout.shape) * (more.item ?? FLOAT) : 0;
    const storage = ALIASES.includes(target) && target !== "_unsafe_view" ? args[0].storage : layout && {};
    const own = { name: this.nameOf(target), op: "call_function", target, args, inputs, half: this.half };
    this.nodes.push({ ...own, shape: null, bytes, storage, ...layout, ...more });
    return this.nodes.at(-1);
  }
  input(name, label, layout) {
    const kind = { name, op: "placeholder", target: label, args: [], inputs: [], bytes: product(layout.shape) * FLOAT, storage: {} };
    this.nodes.push({ ...kind, half: this.half, ...layout });
    return this.nodes.at(-1);
  }
  // Parts of a tuple: [node of the tuple, node of each part].
  tuple(target, args, parts) {
    const bytes = parts.reduce((sum, { layout, item = FLOAT }) => sum + (layout ? product(layout.shape) * item : 0), 0);
    const whole = this.node(target, args, null, { bytes });
    return [whole, ...parts.map(({ layout, item }, i) => this.node("getitem", [whole, String(i)], layout, item ? { item } : {}))];
  }
  // Operators that several derivatives use.
  t = (a) => this.node("t", [a], turnedLayout(a));
  mm = (a, b) => this.node("mm", [a, b], dense([a.shape[0], b.shape[1]]));
  each = (target, ...args) => this.node(target, args, pointwise(...args.filter((one) => one.name)));
  detach = (a) => this.node("detach", [a], { shape: a.shape, strides: a.strides });
  sum(a, dims) {
    const at = dims.map((d) => (d < 0 ? d + a.shape.length : d));
    return this.node("sum", [a, shapeText(dims), "True"], dense(a.shape.map((n, d) => (at.includes(d) ? 1 : n))));
  }
  view = (a, sizes, shape = sizes) => this.node("view", [a, shapeText(sizes)], { shape, strides: stridesOfView(a, shape) });
  reshape(a, shape) {
    if (stridesOfView(a, shape)) return this.view(a, shape);
    const copy = this.node("clone", [a], dense(a.shape));
    return this.node("_unsafe_view", [copy, shapeText(shape)], dense(shape));
  }
  expand = (a, shape) =>
    this.node("expand", [a, shapeText(shape)], { shape, strides: shape.map((n, d) => (a.shape[d] === n ? a.strides[d] : 0)) });

  // A result with its node in autograd's graph. derivative: from a gradient to those of the operands.
  result(node, operands, derivative) {
    return { node, operands, derivative, number: this.sequence++ };
  }
  // Of an operator whose derivative needs its result: the result is detached when it is saved, and again when it is taken out.
  resultSaved(node, operand, derivative) {
    const saved = this.detach(node);
    return this.result(node, [operand], (g) => [derivative(g, this.detach(saved))]);
  }
}

// ---- the operators of a program: what is traced forward, and what backward

const BINARY_NODES = {
  "+": (T, a, b) => T.result(T.each("add", a.node, b.node), [a, b], (g) => [g, g]),
  "-": (T, a, b) => T.result(T.each("sub", a.node, b.node), [a, b], (g) => [g, T.each("neg", g)]),
  "*": (T, a, b) =>
    T.result(T.each("mul", a.node, b.node), [a, b], (g) => {
      const right = T.each("mul", g, a.node);
      return [T.each("mul", g, b.node), right];
    }),
  "/": (T, a, b) =>
    T.result(T.each("div", a.node, b.node), [a, b], (g) => {
      const slope = T.each("div", T.each("div", a.node, b.node), b.node),
        right = T.each("mul", T.each("neg", g), slope);
      return [T.each("div", g, b.node), right];
    }),
  "@": (T, a, b) =>
    T.result(T.mm(a.node, b.node), [a, b], (g) => {
      const right = isColumnMajor(b.node) ? T.t(T.mm(T.t(g), a.node)) : T.mm(T.t(a.node), g);
      const left = isColumnMajor(a.node) ? T.t(T.mm(b.node, T.t(g))) : T.mm(g, T.t(b.node));
      return [left, right];
    }),
};

// Of a tensor and a number.
const SCALED = { "*": "mul", "/": "div" };
function withNumber(T, sign, a, number, numberFirst) {
  if (sign === "-" && numberFirst) return T.result(T.each("rsub", a.node, number), [a], (g) => [T.each("neg", g)]);
  if (sign === "+" || sign === "-") return T.result(T.each(sign === "+" ? "add" : "sub", a.node, number), [a], (g) => [g]);
  return T.result(T.each(SCALED[sign], a.node, number), [a], (g) => [T.each(SCALED[sign], g, number)]);
}

const UNARY_NODES = {
  neg: (T, x) => T.result(T.each("neg", x.node), [x], (g) => [T.each("neg", g)]),
  relu: (T, x) => T.resultSaved(T.each("relu", x.node), x, (g, y) => T.each("threshold_backward", g, y, "0")),
  gelu: (T, x) => T.result(T.each("gelu", x.node), [x], (g) => [T.each("gelu_backward", g, x.node)]),
  silu: (T, x) => T.result(T.each("silu", x.node), [x], (g) => [T.each("silu_backward", g, x.node)]),
  sigmoid: (T, x) => T.resultSaved(T.each("sigmoid", x.node), x, (g, y) => T.each("sigmoid_backward", g, y)),
  tanh: (T, x) => T.resultSaved(T.each("tanh", x.node), x, (g, y) => T.each("tanh_backward", g, y)),
  exp: (T, x) => T.resultSaved(T.each("exp", x.node), x, (g, y) => T.each("mul", g, y)),
  sin: (T, x) => T.result(T.each("sin", x.node), [x], (g) => [T.each("mul", g, T.each("cos", x.node))]),
  cos: (T, x) => T.result(T.each("cos", x.node), [x], (g) => [T.each("mul", g, T.each("neg", T.each("sin", x.node)))]),
  softmax(T, x) {
    const { shape } = x.node;
    const back = (g, y) => T.node("_softmax_backward_data", [g, y, "-1", "torch.float32"], dense(shape));
    return T.resultSaved(T.node("_softmax", [x.node, "-1", "False"], dense(shape)), x, back);
  },
  layer_norm(T, x) {
    const { shape } = x.node,
      sizes = shapeText(shape.slice(-1)),
      layout = dense(shape),
      row = { layout: dense([...shape.slice(0, -1), 1]) };
    const [, y, mean, rstd] = T.tuple("native_layer_norm", [x.node, sizes, "None", "None", "1e-05"], [{ layout }, row, row]);
    return T.result(y, [x], (g) => {
      const args = [g, x.node, sizes, mean, rstd, "None", "None", "[True, False, False]"];
      const none = { layout: null }; // of a weight and a bias, which this one has not
      return [T.tuple("native_layer_norm_backward", args, [{ layout }, none, none])[1]];
    });
  },
  sum: (T, x) => T.result(T.sum(x.node, [-1]), [x], (g) => [T.expand(g, x.node.shape)]),
  dropout(T, x) {
    const layout = pointwise(x.node);
    const [, y, mask] = T.tuple("native_dropout", [x.node, "0.5", "True"], [{ layout }, { layout, item: 1 }]);
    return T.result(y, [x], (g) => [T.each("native_dropout_backward", g, mask, "2.0")]);
  },
  t: (T, x) => T.result(T.t(x.node), [x], (g) => [T.t(g)]),
};

// ---- running a program

class CutRun {
  constructor(T, sizes) {
    this.T = T;
    this.sizes = sizes;
  }
  run(lines, known) {
    let result, made;
    for (const [name, tree] of lines) {
      known[name] = result = this.value(tree, known);
      made = Array.isArray(tree) && tree[0] !== "t" && tree[0] !== "view";
    }
    if (isNumber(result) && !result.node) refuse("The last line is a number: there is nothing to compute a gradient of.");
    if (!made) refuse("The last line returns an input or a view: AOTAutograd makes these outside the graph. End with an operator.");
    return result;
  }
  value(tree, known) {
    if (typeof tree === "string") return Object.hasOwn(known, tree) ? known[tree] : notKnown(CUT_LANGUAGE, tree);
    if (!Array.isArray(tree)) return tree;
    const [kind, ...parts] = tree;
    if (kind === "view") {
      const x = this.tensor(parts[0], known);
      return this.view(x, parts.slice(1).map((part) => this.size(part))); // prettier-ignore
    }
    if (kind in BINARY_NODES) {
      const [a, b] = parts.map((part) => this.value(part, known));
      return this.binary(kind, a, b);
    }
    const x = this.tensor(parts[0], known);
    if (kind === "t" && x.node.shape.length !== 2) refuse(`t(${shapeText(x.node.shape)}): this figure turns matrices alone.`);
    return UNARY_NODES[kind](this.T, x);
  }
  tensor(tree, known) {
    const found = this.value(tree, known);
    return found.node ? found : refuse(`${found.number} is a number, and a tensor is wanted.`);
  }
  size(tree) {
    const size = typeof tree === "string" ? this.sizes[tree] : /^-?[0-9]+$/.test(tree.number) ? Number(tree.number) : undefined;
    if (size === undefined || (size < 2 && size !== -1)) refuse("view(…, n, m): a size is B, W, -1, or a whole number from 2.");
    return size;
  }
  view(x, sizes) {
    const { shape } = x.node,
      count = product(shape),
      wanted = product(sizes.filter((size) => size !== -1)),
      left = count / wanted;
    const open = sizes.filter((size) => size === -1).length;
    if (open === 1 ? !Number.isInteger(left) || left < 2 : count !== wanted || open)
      refuse(`${shapeText(shape)} has ${commas(count)} elements: no view of it has the sizes ${shapeText(sizes)}.`);
    const whole = sizes.map((size) => (size === -1 ? left : size));
    if (!stridesOfView(x.node, whole))
      refuse(
        "RuntimeError: view size is not compatible with input tensor's size and stride (at least one dimension spans across two " +
          "contiguous subspaces). Use .reshape(...) instead.",
      );
    return this.T.result(this.T.view(x.node, sizes, whole), [x], (g) => [this.T.reshape(g, shape)]);
  }
  binary(sign, a, b) {
    const words = [a, b].map((one) => (one.node ? shapeText(one.node.shape) : one.number));
    const numbers = [a, b].filter((one) => !one.node).length;
    const said = `${words[0]} ${sign} ${words[1]}`;
    if (numbers === 2) refuse(`${said}: Python computes this before any tensor sees it.`);
    if ((!a.node && sign === "/") || (sign === "@" && numbers)) refuse(`${said}: write a tensor on both sides of ${sign}.`);
    if (numbers) return withNumber(this.T, sign, a.node ? a : b, (a.node ? b : a).number, !a.node);
    const [left, right] = [a.node.shape, b.node.shape];
    if (sign === "@") {
      if (left.length !== 2 || right.length !== 2 || [...left, ...right].includes(1))
        refuse(`${said}: this figure multiplies matrices whose sizes are 2 or more.`);
      if (left[1] !== right[0]) refuse(`${said}: the columns of the one are not the rows of the other.`);
    } else if (!fits(left, right)) refuse(`${said}: these sizes do not broadcast.`);
    return BINARY_NODES[sign](this.T, a, b);
  }
}

// ---- backward: the node that was made last runs first, of those that have all their gradients

function runBackward(T, root, gradient) {
  const waits = new Map(),
    buffers = new Map([[root, gradient]]);
  const pending = [root];
  while (pending.length) {
    for (const operand of pending.pop().operands) {
      if (!waits.has(operand) && operand.operands) pending.push(operand);
      waits.set(operand, (waits.get(operand) ?? 0) + 1);
    }
  }
  const ready = [root];
  while (ready.length) {
    ready.sort((a, b) => a.number - b.number);
    const now = ready.pop();
    const gradients = now.derivative(buffers.get(now)).map((g, i) => summedToShape(T, g, now.operands[i].node.shape)); // prettier-ignore
    now.operands.forEach((operand, i) => {
      const before = buffers.get(operand);
      buffers.set(operand, before ? T.each("add", before, gradients[i]) : gradients[i]);
      waits.set(operand, waits.get(operand) - 1);
      if (!waits.get(operand) && operand.operands) ready.push(operand);
    });
  }
  return buffers;
}

// The sum over what was broadcast. In PyTorch: sum_to.
function summedToShape(T, g, shape) {
  const lead = g.shape.length - shape.length;
  const dims = g.shape.map((_, d) => d).filter((d) => d < lead || (shape[d - lead] === 1 && g.shape[d] !== 1));
  const summed = dims.length ? T.sum(g, dims) : g;
  return lead ? T.view(summed, shape) : summed;
}

// ---- { nodes, result, gradients (null where there is none), primals }

function traceJoint(program, sizes) {
  const lines = readProgram(program, CUT_LANGUAGE);
  const used = new Set(lines.flatMap(([, tree]) => namesIn(tree)));
  const { B, W } = sizes;
  const shapes = { x: [B, W], w: [W, W], v: [W, W], b: [W] };
  const T = new CutTrace();
  const names = CUT_INPUTS.filter((name) => used.has(name));
  const leaves = names.map((name, i) => [name, { node: T.input(`primals_${i + 1}`, name, dense(shapes[name])) }]);
  const run = new CutRun(T, sizes);
  const root = run.run(lines, Object.fromEntries(leaves));
  T.half = "backward";
  const { shape, strides } = root.node;
  const tangent = T.input("tangents_1", "gradient", { shape, strides });
  T.nodes.splice(leaves.length, 0, T.nodes.pop()); // inputs stand first
  const buffers = runBackward(T, root, tangent);
  const gradients = leaves.map(([, leaf]) => buffers.get(leaf) ?? null);
  const live = reachedFrom([root.node, ...gradients.filter(Boolean), ...T.nodes.filter(isRandom)]);
  const nodes = T.nodes.filter((node) => node.op === "placeholder" || live.has(node));
  return { nodes, result: root.node, gradients, primals: leaves.map(([, { node }]) => node) };
}

// FX takes these away nowhere, used or not.
const isRandom = ({ target }) => target === "native_dropout";

// What these are computed from, and they themselves; not beyond `given`.
function reachedFrom(outputs, given = new Set()) {
  const found = new Set(),
    pending = [...outputs];
  while (pending.length) {
    const node = pending.pop();
    if (found.has(node)) continue;
    found.add(node);
    if (!given.has(node)) pending.push(...node.inputs);
  }
  return found;
}
