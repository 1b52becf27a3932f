// What grad, jvp and vmap, nested, do with every operator call of a function: as figures/transform_levels.py.
const SLOTS = ["outer", "middle", "inner"];
const MOST_EVENTS = 300;
const LARGEST = 1e9;

// ---- values: an array, or a box of a level around another value

class Plain {
  constructor(shape, values, zero = false) {
    Object.assign(this, { shape, values, zero, level: 0 });
  }
}
class Batched {
  constructor(level, value) {
    Object.assign(this, { level, value });
  }
}
class Tracked {
  constructor(level, value, node = null, tangent = null) {
    Object.assign(this, { level, value, node, tangent });
  }
}
const isTensor = (x) => x instanceof Plain || x instanceof Batched || x instanceof Tracked;
const isNumber = (x) => typeof x === "number";
const isOperand = (x) => isTensor(x) || isNumber(x);

function shapeOf(value) {
  if (value instanceof Plain) return value.shape;
  const inner = shapeOf(value.value);
  return value instanceof Batched ? inner.slice(1) : inner;
}
const shortNumber = (x) => String(Number(x.toPrecision(6)));

// A value in a few letters: G2[B1[3, 2]].
function short(value) {
  if (isNumber(value)) return shortNumber(value);
  if (value instanceof Plain) return shapeText(value.shape);
  const inner = short(value.value);
  return `${value instanceof Batched ? "B" : "G"}${value.level}${inner.startsWith("[") ? inner : `[${inner}]`}`;
}
// A value as PyTorch prints it.
function written(value) {
  if (isNumber(value)) return shortNumber(value);
  if (value instanceof Plain) return printedTensor(value.shape, value.values);
  const name = value instanceof Batched ? "BatchedTensor" : "GradTrackingTensor";
  const where = value instanceof Batched ? `lvl=${value.level}, bdim=0` : `lvl=${value.level}`;
  const inside = written(value.value).split("\n").map((line) => (line ? `    ${line}` : line)).join("\n"); // prettier-ignore
  return `${name}(${where}, value=\n${inside}\n)`;
}

// The tangent of a box of jvp, which printing the box does not show.
function tangentText(value) {
  const tangent = value instanceof Tracked ? value.tangent : null;
  if (!tangent) return "";
  return tangent instanceof Plain && tangent.zero ? `zeros${shapeText(tangent.shape)}` : written(tangent);
}

// ---- the kernels: what is done when no layer is left

const upTo = (count) => Array.from({ length: count }, (_, i) => i);

function makePlain(shape, values) {
  if (!values.every((value) => Math.abs(value) < LARGEST))
    refuse("A number grows beyond 1,000,000,000: this figure takes smaller ones.");
  return new Plain([...shape], values.map(Math.fround));
}
const elementwise = (operate) => (a) => makePlain(a.shape, a.values.map(operate));
const circular = (operate) => (a) => {
  if (a.values.some((x) => Math.abs(x) > 100))
    refuse("A sine or cosine of more than 100 depends on digits that float32 does not have: this figure takes smaller numbers.");
  return makePlain(a.shape, a.values.map(operate));
};
const pairwise = (operate) => (a, b) => {
  const shape = broadcast(a.shape, b.shape);
  const left = partners(a.shape, shape),
    right = partners(b.shape, shape);
  return makePlain(shape, left.map((place, i) => operate(a.values[place], b.values[right[i]])));
};
const KERNELS = {
  sin: circular(Math.sin),
  cos: circular(Math.cos),
  exp: elementwise((x) => Math.exp(Math.min(x, 50))),
  neg: elementwise((x) => -x),
  ones_like: elementwise(() => 1),
  zeros_like: elementwise(() => 0),
  mul: pairwise((x, y) => x * y),
  add: pairwise((x, y) => x + y),
  sub: pairwise((x, y) => x - y),
  sum(a, dims, keep) {
    const kept = a.shape.map((size, dim) => (dims.includes(dim) ? 1 : size));
    const values = Array(countOf(kept)).fill(0);
    partners(kept, a.shape).forEach((place, i) => (values[place] += a.values[i]));
    return makePlain(keep ? kept : kept.filter((_, dim) => !dims.includes(dim)), values);
  },
  dot(a, b) {
    if (a.shape.length !== 1 || b.shape.length !== 1)
      raise(`1D tensors expected, but got ${a.shape.length}D and ${b.shape.length}D tensors`);
    if (!equal(a.shape, b.shape))
      raise(
        `inconsistent tensor size, expected tensor ${shapeText(a.shape)} and src ${shapeText(b.shape)} to have the same ` +
          `number of elements, but got ${a.shape[0]} and ${b.shape[0]} elements respectively`,
      );
    return makePlain([], [a.values.reduce((sum, x, i) => sum + x * b.values[i], 0)]);
  },
  bmm(a, b) {
    const [n, p, q] = a.shape,
      r = b.shape[2];
    const one = (i, j, m) => upTo(q).reduce((sum, k) => sum + a.values[(i * p + j) * q + k] * b.values[(i * q + k) * r + m], 0);
    return makePlain([n, p, r], upTo(n).flatMap((i) => upTo(p).flatMap((j) => upTo(r).map((m) => one(i, j, m)))));
  },
  transpose(a) {
    const rest = a.shape.slice(0, -2),
      [p, q] = a.shape.slice(-2);
    const values = upTo(countOf(rest)).flatMap((i) => upTo(q).flatMap((j) => upTo(p).map((k) => a.values[(i * p + k) * q + j])));
    return new Plain([...rest, q, p], values);
  },
  expand: (a, shape) => new Plain([...shape], partners(a.shape, shape).map((place) => a.values[place])),
  view: (a, shape) => new Plain([...shape], a.values, a.zero),
  alias: (a) => new Plain(a.shape, a.values, a.zero),
}; // prettier-ignore
const SILENT = ["view", "transpose", "expand", "alias"];

// ---- rules: of a node, of a tangent

const mulBack = (call, g, y, a, b) => [() => call("mul", g, b), () => call("mul", g, a)];
const BACK = {
  sin: (call, g, y, a) => [() => call("mul", g, call("cos", a))],
  cos: (call, g, y, a) => [() => call("mul", g, call("neg", call("sin", a)))],
  exp: (call, g, y) => [() => call("mul", g, y)],
  neg: (call, g) => [() => call("neg", g)],
  add: (call, g) => [() => g, () => g],
  sub: (call, g) => [() => g, () => call("neg", g)],
  mul: mulBack,
  dot: mulBack,
  sum: (call, g, y, a, dims, keep) => [() => spread(call, g, shapeOf(a), dims, keep)],
  bmm: (call, g, y, a, b) => [
    () => call("bmm", g, call("transpose", b)),
    () => call("bmm", call("transpose", a), g),
  ],
  transpose: (call, g) => [() => call("transpose", g)],
  view: (call, g, y, a) => [() => call("view", g, shapeOf(a))],
  expand: (call, g, y, a) => [() => sumTo(call, g, shapeOf(a))],
  alias: (call, g) => [() => g],
};
const nodeName = (name, args) =>
  name === "sum" ? `SumBackward${isWhole(args) ? 0 : 1}` : `${name[0].toUpperCase()}${name.slice(1)}Backward0`;

// The gradient of a sum.
function spread(call, g, shape, dims, keep) {
  const part =
    !keep && dims.length < shape.length
      ? call("view", g, shape.map((size, dim) => (dims.includes(dim) ? 1 : size)))
      : g; // prettier-ignore
  return call("expand", part, shape);
}
// The sum over what was broadcast.
function sumTo(call, g, shape) {
  const own = shapeOf(g);
  if (equal(own, shape)) return g;
  if (!shape.length) return call("sum", g, upTo(own.length), false);
  const lead = own.length - shape.length;
  const dims = [...upTo(lead), ...upTo(shape.length).filter((dim) => shape[dim] === 1 && own[lead + dim] !== 1).map((dim) => lead + dim)]; // prettier-ignore
  const summed = call("sum", g, dims, true);
  return lead ? call("view", summed, shape) : summed;
}
// The tangent of a result, from those of the operands. Of two products the one at the right is computed first.
function tangentOf(call, name, [a, b, ...rest], [at, bt], y) {
  if (name === "sin") return call("mul", at, call("cos", a));
  if (name === "cos") return call("mul", at, call("neg", call("sin", a)));
  if (name === "exp") return call("mul", at, y);
  if (name === "add" || name === "sub") return call(name, at, bt);
  if (name === "mul") {
    const right = call("mul", at, b);
    return call("add", call("mul", bt, a), right);
  }
  if (name === "dot" || name === "bmm") {
    const right = call(name, a, bt);
    return call("add", call(name, at, b), right);
  }
  return call(name, at, ...[b, ...rest].filter((one) => one !== undefined));
}

const isZero = (value) => (value instanceof Plain ? value.zero : isZero(value.value));
// A tensor of zeros gets its elements when it becomes the tangent of one that has several.
function solid(value) {
  if (value instanceof Plain) return new Plain(value.shape, value.values);
  if (value instanceof Batched) return new Batched(value.level, solid(value.value));
  return new Tracked(value.level, solid(value.value), value.node, value.tangent);
}
const isWhole = ([a, dims, keep]) => equal(dims, upTo(shapeOf(a).length)) && !keep;
const callTitle = (name, args) =>
  name === "sum" && !isWhole(args) ? `sum(${shapeText(args[1])}${args[2] ? ", keepdim" : ""})` : name;

// The layers, and what each does with every call.
class TransformMachine {
  constructor() {
    this.stack = [];
    this.depth = 0;
    this.numbers = 0;
    this.events = [];
    this.indent = 0;
    this.call = this.call.bind(this);
  }
  event(type, level, what, given) {
    if (this.events.length >= MOST_EVENTS) refuse(`More than ${MOST_EVENTS} events: please a shorter function.`);
    const event = {
      type, level, kind: level ? this.stack[level - 1].kind : "kernel", what, given: given.map(short),
      values: given.map(written), tangents: given.map(tangentText), tangent: "", rule: "", indent: this.indent, layers: this.stack.length, result: "", value: "",
    }; // prettier-ignore
    this.events.push(event);
    return event;
  }
  gives(event, value) {
    event.result = short(value);
    event.value = written(value);
    event.tangent = tangentText(value);
    return value;
  }
  // An operator, called where `depth` layers are left.
  call(name, ...args) {
    if (!this.depth) return this.kernel(name, args);
    const layer = this.stack[this.depth - 1];
    return layer.kind === "vmap" ? this.batch(layer, name, args) : this.track(layer, name, args);
  }
  // The same with one layer less.
  below(name, ...args) {
    this.depth -= 1;
    try {
      return this.call(name, ...args);
    } finally {
      this.depth += 1;
    }
  }

  // ---- no layer

  kernel(name, args) {
    const tensors = args.map((arg) => (isNumber(arg) ? new Plain([], [arg]) : arg));
    const zero = tensors.map((one) => one instanceof Plain && one.zero);
    if (name === "mul" && zero.includes(true)) {
      const shape = broadcast(tensors[0].shape, tensors[1].shape);
      return new Plain(shape, Array(countOf(shape)).fill(0), true);
    }
    if (["add", "sub"].includes(name) && zero.includes(true)) {
      const shape = broadcast(tensors[0].shape, tensors[1].shape);
      let other = zero[0] ? tensors[1] : tensors[0];
      if (name === "sub" && zero[0] && !zero[1]) other = this.kernel("mul", [other, -1]);
      return new Plain(shape, KERNELS.expand(other, shape).values, zero[0] && zero[1]);
    }
    if (SILENT.includes(name)) return KERNELS[name](...tensors);
    const event = this.event("call", 0, callTitle(name, args), args.filter(isOperand));
    const result = KERNELS[name](...tensors);
    result.zero = name === "dot" && zero.includes(true);
    return this.gives(event, result);
  }

  // ---- grad and jvp

  track({ level }, name, args) {
    const event = SILENT.includes(name) ? null : this.event("call", level, callTitle(name, args), args.filter(isOperand));
    const own = args.map((arg) =>
      isTensor(arg) && !(arg instanceof Tracked && arg.level === level) ? new Tracked(level, arg) : arg,
    );
    const tensors = own.filter((one) => one instanceof Tracked);
    let node = null;
    if (tensors.some((one) => one.node) && name in BACK) {
      node = { name: nodeName(name, args), number: this.numbers++, shape: [], next: [], back: null };
      node.next = own.filter(isOperand).map((one) => (one instanceof Tracked ? one.node : null));
    }
    this.indent += 1;
    const inner = this.below(name, ...own.map((one) => (one instanceof Tracked ? one.value : one)));
    const result = new Tracked(level, inner, node);
    if (node) {
      node.shape = shapeOf(result);
      const plain = new Tracked(level, inner, node);
      node.back = (g) => BACK[name](this.call, g, plain, ...own);
    }
    const moving = tensors.some((one) => one.tangent !== null) && name in BACK;
    if (moving) {
      const moved = this.tangent(level, name, own, result);
      result.tangent = isZero(result) || countOf(shapeOf(result)) === 1 ? moved : solid(moved);
    }
    this.indent -= 1;
    if (event) {
      event.rule = node ? node.name : moving ? "tangent" : "";
      this.gives(event, result);
    }
    return result;
  }
  tangent(level, name, own, result) {
    const uses = ["sin", "cos", "mul", "dot", "bmm"].includes(name); // the operands themselves, without their tangents
    const operands = own.map((one) =>
      one instanceof Tracked ? new Tracked(level, uses ? this.below("alias", one.value) : one.value) : one,
    );
    const tangents = own.filter(isOperand).map((one) => {
      if (one instanceof Tracked && one.tangent !== null) return one.tangent;
      const shape = one instanceof Tracked ? shapeOf(one) : [];
      return new Plain([...shape], Array(countOf(shape)).fill(0), true);
    });
    return tangentOf(this.call, name, operands, tangents, new Tracked(level, result.value));
  }

  // ---- vmap

  batch(layer, name, args) {
    const { level } = layer;
    const event = SILENT.includes(name) ? null : this.event("call", level, callTitle(name, args), args.filter(isOperand));
    const own = args.map((arg) => arg instanceof Batched && arg.level === level);
    this.indent += 1;
    let rule = "",
      result;
    if (own.includes(true)) {
      let value;
      [rule, value] = this.batchingRule(layer, name, args.map((arg, i) => (own[i] ? arg.value : arg)), own); // prettier-ignore
      result = new Batched(level, value);
    } else result = this.below(name, ...args);
    this.indent -= 1;
    if (event) {
      event.rule = rule;
      this.gives(event, result);
    }
    return result;
  }
  batchingRule(layer, name, args, own) {
    const [a, ...rest] = args;
    if (["add", "sub", "mul"].includes(name))
      return ["batch first, ranks made equal", this.below(name, ...this.padded(args, own))];
    if (name === "sum") {
      const [dims, keep] = rest;
      return ["dimensions move up by one", this.below("sum", a, dims.map((dim) => dim + 1), keep)]; // prettier-ignore
    }
    if (name === "dot") return this.batchDot(args, own);
    if (name === "bmm") return ["the two batches become one", this.batchBmm(layer, args, own)];
    if (name === "view") return ["", this.below("view", a, [layer.size, ...rest[0]])];
    if (name === "expand") {
      const inner = shapeOf(a),
        [shape] = rest;
      const ones = Array(Math.max(0, shape.length - inner.length + 1)).fill(1);
      const whole = ones.length ? this.below("view", a, [layer.size, ...ones, ...inner.slice(1)]) : a;
      return ["", this.below("expand", whole, [layer.size, ...shape])];
    }
    return ["the same on the whole batch", this.below(name, a)];
  }
  // Operands whose logical ranks are made equal, for broadcasting.
  padded(args, own) {
    const ranks = args.map((arg, i) => (isNumber(arg) ? 0 : shapeOf(arg).length - (own[i] ? 1 : 0)));
    const most = Math.max(...ranks);
    return args.map((arg, i) => {
      if (!own[i] || ranks[i] === most) return arg;
      const [size, ...shape] = shapeOf(arg);
      return this.below("view", arg, [size, ...Array(most - ranks[i]).fill(1), ...shape]);
    });
  }
  batchDot(args, own) {
    if (args.some((arg, i) => shapeOf(arg).length - (own[i] ? 1 : 0) !== 1)) raise("Got wrong shapes for dot");
    if (own.includes(false)) refuse("A dot of which one operand has no batch is more than this figure follows.");
    const [a, b] = args,
      [size, n] = shapeOf(a),
      m = shapeOf(b)[1];
    if (n !== m)
      raise(`Expected size for first two dimensions of batch2 tensor to be: [${size}, ${n}] but got: [${size}, ${m}].`);
    const product = this.below("bmm", this.below("view", a, [size, 1, n]), this.below("view", b, [size, n, 1]));
    return ["dot becomes bmm", this.below("view", product, [size])];
  }
  batchBmm(layer, args, own) {
    const flat = args.map((arg, i) => {
      let shape = shapeOf(arg),
        whole = arg;
      if (!own[i]) {
        whole = this.below("expand", arg, [layer.size, ...shape]);
        shape = [layer.size, ...shape];
      }
      return this.below("view", whole, [shape[0] * shape[1], ...shape.slice(2)]);
    });
    const n = shapeOf(flat[0])[0] / layer.size;
    const product = this.below("bmm", ...flat);
    return this.below("view", product, [layer.size, n, ...shapeOf(product).slice(1)]);
  }

  // ---- transforms

  enter(kind, x) {
    const layer = { kind, level: this.stack.length + 1, size: 0 };
    this.stack.push(layer);
    this.depth += 1;
    if (kind === "vmap") [layer.size] = shapeOf(x);
    const inner = kind === "vmap" ? new Batched(layer.level, x) : new Tracked(layer.level, x);
    this.gives(this.event("begin", layer.level, kind, [x]), inner);
    return [layer, inner];
  }
  leave(layer, value) {
    const event = this.event("end", layer.level, layer.kind, [value]);
    this.stack.pop();
    this.depth -= 1;
    const own = value.level === layer.level;
    if (own) return this.gives(event, value.value);
    return this.gives(event, layer.kind === "vmap" ? this.call("expand", value, [layer.size, ...shapeOf(value)]) : value);
  }
  grad(f, x) {
    const [layer, inner] = this.enter("grad", x);
    const leaf = { name: "AccumulateGrad", number: Infinity, shape: shapeOf(inner), next: [], back: null };
    inner.node = leaf;
    const y = f(inner);
    if (!isTensor(y)) raise("grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got <class 'float'>");
    if (shapeOf(y).length)
      raise(
        "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with " +
          `${shapeOf(y).length} dims. Maybe you wanted to use the vjp or jacrev APIs instead?`,
      );
    return this.leave(layer, this.backward(y, inner, leaf));
  }
  // torch.autograd.grad(y, x, create_graph=True)
  backward(y, x, leaf) {
    const root = y instanceof Tracked && y.level === x.level ? y.node : null;
    if (!root) return this.call("zeros_like", x);
    const needs = dependencies(root);
    const buffers = new Map([[root, this.call("ones_like", y)]]),
      queue = [root];
    while (queue.length) {
      const node = queue.reduce((best, one) => (one.number > best.number ? one : best));
      queue.splice(queue.indexOf(node), 1);
      if (node !== leaf) this.run(node, buffers, needs, queue);
    }
    return buffers.get(leaf);
  }
  run(node, buffers, needs, queue) {
    const grad = buffers.get(node);
    buffers.delete(node);
    const event = this.event("node", this.depth, node.name, [grad]);
    this.indent += 1;
    const parts = node.back(grad),
      places = upTo(parts.length);
    // computed in the order of the operands' names: that of `other` before that of `self`
    if (node.name === "MulBackward0" || node.name === "BmmBackward0") places.reverse();
    const raw = Array(parts.length).fill(null);
    for (const i of places) if (node.next[i]) raw[i] = parts[i]();
    const grads = raw.map((g, i) => g && sumTo(this.call, g, node.next[i].shape));
    node.next.forEach((one, i) => {
      if (!one) return;
      buffers.set(one, buffers.has(one) ? this.call("add", buffers.get(one), grads[i]) : grads[i]);
      needs.set(one, needs.get(one) - 1);
      if (!needs.get(one)) queue.push(one);
    });
    this.indent -= 1;
    event.result = grads.filter(Boolean).map(short).join(", ");
  }
  jvp(f, x, v) {
    const [layer, inner] = this.enter("jvp", x);
    inner.value = this.below("alias", x);
    inner.tangent = v;
    const y = f(inner);
    if (!isTensor(y)) raise("jvp(f, primals, tangents): Expected f to be a function that has non-empty output");
    const own = y instanceof Tracked && y.level === layer.level && y.tangent !== null;
    return this.leave(layer, own ? y.tangent : this.call("zeros_like", y));
  }
  vmap(f, x, name) {
    if (!shapeOf(x).length)
      raise(
        `vmap(${name}, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of ` +
          "dimensionality 0 so expected in_dim to satisfy -0 <= in_dim < 0.",
        "ValueError",
      );
    const [layer, inner] = this.enter("vmap", x);
    const y = f(inner);
    if (!isTensor(y))
      raise(
        `vmap(${name}, ...): \`${name}\` must only return Tensors, got type <class 'float'>. Did you mean to set out_dims= ` +
          "to None for output?",
        "ValueError",
      );
    return this.leave(layer, y);
  }
  // The tangent of x + 0.5 has dtype float64 in PyTorch, where x has no dimension.
  checkNumber(args) {
    const scalar = args.some((arg) => isTensor(arg) && !shapeOf(arg).length);
    if (args.some(isNumber) && scalar && this.stack.some((layer) => layer.kind === "jvp"))
      refuse("Under jvp a number beside a tensor without dimensions is promoted in ways that this figure does not follow.");
  }
  // The function itself.
  evaluate(tree, x) {
    const [kind, ...rest] = tree;
    if (kind === "x") return x;
    if (kind === "number") return rest[0];
    const args = rest.map((part) => this.evaluate(part, x));
    if (args.every(isNumber)) refuse("An operator takes a tensor: numbers alone are computed by Python.");
    if (kind === "sub" && isNumber(args[0]))
      refuse("A number minus a tensor is an operator of its own, rsub, that is not known here: write -x + 2 for 2 - x.");
    if (["add", "sub", "mul"].includes(kind)) {
      this.checkNumber(args);
      return this.call(kind, ...(isNumber(args[0]) ? args.reverse() : args));
    }
    if (args.some(isNumber)) refuse("torch.dot takes two tensors.");
    if (kind === "sum") {
      if (!shapeOf(args[0]).length) refuse("A sum of a single number is the number: leave it out.");
      return this.call("sum", args[0], upTo(shapeOf(args[0]).length), false);
    }
    return this.call(kind, ...args);
  }
}

// The function that the transforms from `level` on make, and its name in messages.
function composed(machine, kinds, tree, v, level = 0) {
  if (level === kinds.length) return [(x) => machine.evaluate(tree, x), "f"];
  const [inner, name] = composed(machine, kinds, tree, v, level + 1);
  if (kinds[level] === "grad") return [(x) => machine.grad(inner, x), name];
  if (kinds[level] === "vmap") return [(x) => machine.vmap(inner, x, name), name];
  return [(x) => machine.jvp(inner, x, tangentLike(x, v)), "<lambda>"];
}
const hasNumber = ([kind, ...parts]) => kind === "number" || parts.some(hasNumber);

// The tangent for x: `v` in each row.
function tangentLike(x, v) {
  const shape = shapeOf(x),
    row = shape.at(-1) ?? 1;
  if (v.length !== row) refuse(`v needs ${plural(row, "number")} here, as many as a row of x.`);
  return new Plain([...shape], upTo(countOf(shape) / row).flatMap(() => v));
}

// The call as a reader would write it; `rows` is v for each row of x.
function codeOf(kinds, dims) {
  const tangent = (i) => (dims - kinds.slice(0, i).filter((kind) => kind === "vmap").length > 1 ? "rows" : "v");
  const text = kinds.reduceRight(
    (inner, kind, i) => (kind === "jvp" ? `lambda x: jvp(${inner}, (x,), (${tangent(i)},))[1]` : `${kind}(${inner})`),
    "f",
  );
  return text.startsWith("lambda") ? `(${text})(x)` : `${text}(x)`;
}
const BEGINNINGS = {
  grad: "x goes into a box, and requires grad at this level",
  jvp: "x goes into a box, with v as its tangent at this level",
  vmap: "dimension 0 of x is hidden in the box",
};
// What an event is, in words.
function eventSentence({ type, level, kind, what, rule }) {
  if (type === "begin") return `${what} puts level ${level} on the stack: ${BEGINNINGS[what]}.`;
  if (type === "end") return `${what} takes level ${level} off the stack, and the result out of its box.`;
  if (type === "node") return `Backward of level ${level}: ${what} runs.`;
  if (!level) return `No level is left: the CPU's kernel of ${what} runs.`;
  const place = `Level ${level}, ${kind}, has ${what}`;
  if (kind === "vmap")
    return `${place}: ${rule ? `batching rule, ${rule}` : "no operand has a batch dimension of this level, and the call goes down as it is"}.`;
  if (rule === "tangent")
    return `${place}: the call goes down with opened boxes, and then the kernel of Autograd computes the tangent.`;
  if (rule)
    return `${place}: the kernel of Autograd makes ${"AEIOU".includes(rule[0]) ? "an" : "a"} ${rule}, and the call goes down with opened boxes.`;
  return `${place}: there is nothing to differentiate at this level, and the call goes down with opened boxes.`;
}

const model = (inputs) => {
  const kinds = SLOTS.map((slot) => inputs[slot]).filter(Boolean);
  const tree = new FunctionParser(inputs.function).whole();
  const { shape, values } = nestedList(inputs.x, "x");
  if (countOf(shape) > 24 || shape.length > 3 || shape.includes(0)) refuse("x has at most three dimensions and 24 elements here.");
  if (["vmap jvp jvp", "jvp jvp jvp"].includes(kinds.join(" ")) && hasNumber(tree))
    refuse("A number's tangent is a tensor of zeros without elements; under two more jvp this figure does not follow it.");
  const machine = new TransformMachine();
  const [f] = composed(machine, kinds, tree, numbersOf(inputs.v, "v"));
  let error = "",
    result = null;
  try {
    result = f(new Plain(shape, values));
  } catch (problem) {
    if (!(problem instanceof Raised)) throw problem;
    error = problem.message;
  }
  if (isNumber(result)) refuse("f gives a number, and no tensor. Write a function of x.");
  const code = codeOf(kinds, shape.length);
  const end = error ? `${error}${/[.?]$/.test(error) ? "" : "."}` : `The result has the shape ${shapeText(shapeOf(result))}.`;
  const say = [`The call: ${code}.`, ...machine.events.map(eventSentence), end];
  return { events: machine.events, kinds, code, error, result: result ? written(result) : "", say };
}; // prettier-ignore
