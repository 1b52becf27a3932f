// A short program, the graph behind its tensors, and backward through it: as figures/graph_explorer.py.
const LONGEST = 14;
const NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn";
const NO_SCALAR = "grad can be implicitly created only for scalar outputs";
const LEAF = "a leaf Variable that requires grad is being used in an in-place operation.";
const VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation.";
const NO_INDEX =
  "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor " +
  "to a number";
const OVERLAP =
  "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. " +
  "Please clone() the tensor before performing the operation.";
const TWICE =
  "Trying to backward through the graph a second time (or directly access saved tensors after they have already been " +
  "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify " +
  "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors " +
  "after calling backward.";
const ANOMALY =
  "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with " +
  "torch.autograd.set_detect_anomaly(True, check_nan=False).";

// ---- tensors and nodes

class GraphTensor {
  constructor(storage, shape, offset = 0, rest = {}) {
    Object.assign(this, { storage, shape, offset, flag: false, gradFn: null, base: null, madeAt: 0, grad: null, accumulator: null, apart: false, cut: null }, rest);
  } // prettier-ignore
  get requiresGrad() {
    return this.flag || this.gradFn !== null || (this.base !== null && this.base.requiresGrad);
  }
  get array() {
    return { shape: this.shape, values: this.storage.values.slice(this.offset, this.offset + countOf(this.shape)) };
  }
}
// t.data: over the same memory, with a version counter of its own.
const dataOf = ({ storage, shape, offset }) => new GraphTensor({ values: storage.values, version: 0 }, shape, offset, { apart: true });
const newTensor = ({ shape, values }) => new GraphTensor({ values: [...values], version: 0 }, shape);
const graphNode = (name, number, line, shape, rest = {}) => ({
  id: 0, name, number, line, shape, next: [], places: [], ghosts: [], derivative: null, saved: [], variable: null,
  inner: null, label: "", released: false, ...rest,
}); // prettier-ignore

function nodeText(node) {
  if (node.variable) return node.label ? `AccumulateGrad of ${node.label}` : "AccumulateGrad";
  return `${node.name} (${node.number})`;
}

// What an operation saves: the attribute, the tensor (null: the result; a function makes it), the edge that needs it.
const UNARY_RULES = {
  exp: { name: "ExpBackward0", forward: expArray, derivative: (grad, saved) => [mulArrays(grad, saved.result)] },
  sin: {
    name: "SinBackward0",
    forward: sinArray,
    derivative: (grad, saved) => [mulArrays(grad, cosArray(saved.self))],
    keepsInput: true,
  },
  tanh: {
    name: "TanhBackward0",
    forward: tanhArray,
    derivative: (grad, saved) => [zipped(grad, saved.result, (g, y) => g * (1 - y * y))],
  },
  relu: {
    name: "ReluBackward0",
    forward: reluArray,
    derivative: (grad, saved) => [zipped(grad, saved.result, (g, y) => (y > 0 ? g : 0))],
  },
};
const BINARY_RULES = {
  add: { name: "AddBackward0", forward: addArrays, derivative: (grad) => [grad, grad], saves: () => [] },
  mul: {
    name: "MulBackward0",
    forward: mulArrays,
    derivative: (grad, saved) => ["other", "self"].map((key) => (saved[key] ? mulArrays(grad, saved[key]) : null)),
    saves: (a, b) => [["self", a, 1], ["other", b, 0]],
  },
}; // prettier-ignore

// Of an expression in its line: whether .detach() can stand right behind it, and where it begins and ends.
const placeOf = ({ kind, start, end }) => ({ bare: kind !== "add" && kind !== "mul", start, end });

// Whether they share elements and are not the same in all.
function overlap(a, b) {
  const apart = a.offset + countOf(a.shape) <= b.offset || b.offset + countOf(b.shape) <= a.offset;
  return a.storage.values === b.storage.values && !apart && !(a.offset === b.offset && equal(a.shape, b.shape));
}

// The shape that view(*sizes) gives. Raises.
function viewedShape(t, sizes) {
  const count = countOf(t.shape),
    known = countOf(sizes.filter((size) => size >= 0));
  const asked = sizes.filter((size) => size === -1).length;
  if (asked > 1) raise("only one dimension can be inferred");
  const bad = sizes.find((size) => size < -1);
  if (bad !== undefined) raise(`invalid shape dimension ${bad}`);
  const fits = asked ? known && count % known === 0 : known === count;
  if (!fits) raise(`shape '${shapeText(sizes)}' is invalid for input of size ${count}`);
  return sizes.map((size) => (size === -1 ? Math.floor(count / known) : size));
}

// The tensors and nodes of a program, line by line, and what there is to see after each step.
class GraphMachine {
  constructor(lines) {
    this.lines = lines;
    this.names = new Map();
    this.nodes = [];
    this.numbers = 0;
    this.line = -1;
    this.steps = [];
    this.say = [];
    this.task = null;
  }

  // ---- autograd

  // A node whose edges lead to the operands' graph. It gets its number before its edges are looked for.
  makeNode(name, shape, operands, derivative, places = []) {
    const node = graphNode(name, this.numbers++, this.line, shape, { derivative });
    node.next = operands.map((t) => this.edge(t));
    node.places = places.length ? [...places] : node.next.map(() => null);
    node.ghosts = operands.map((t) => t.cut);
    return node;
  }
  // Shows the node from now on. It stands behind those to which it leads.
  add(node) {
    node.id = this.nodes.length;
    this.nodes.push(node);
    return node;
  }
  // Where a gradient of `t` goes, or null. (gradient_edge)
  edge(t) {
    if (this.gradFn(t) || !t.flag) return t.gradFn;
    t.accumulator ??= this.add(
      graphNode("AccumulateGrad", null, this.line, t.shape, { variable: t, label: this.nameOf(t) }),
    );
    return t.accumulator;
  }
  // `t.grad_fn`; that of a view is made anew when its base has been written since.
  gradFn(t) {
    if (t.base && t.madeAt !== t.storage.version && (t.gradFn || t.base.requiresGrad)) {
      const offset = t.offset - t.base.offset,
        { shape } = t.base;
      t.gradFn = this.add(
        this.makeNode("AsStridedBackward0", t.shape, [t.base], (grad) => [put(zerosOf(shape), offset, grad)]),
      );
      t.gradFn.label = this.nameOf(t);
      t.madeAt = t.storage.version;
    }
    return t.gradFn;
  }
  nameOf(t) {
    return [...this.names].find(([, other]) => other === t)?.[0] ?? "";
  }
  // The result of an operation, with a node if an operand requires grad.
  follow(name, value, operands, derivative, saves = [], places = []) {
    const made = newTensor(value);
    if (operands.some((t) => t.requiresGrad)) {
      const node = this.makeNode(name, value.shape, operands, derivative, places);
      this.save(node, saves, made);
      made.gradFn = this.add(node);
    }
    return made;
  }
  save(node, saves, made) {
    for (const [name, t, edge] of saves) {
      if (!node.next[edge]) continue;
      const tensor = t === null ? made : typeof t === "function" ? t() : t;
      node.saved.push({ name, tensor, version: tensor.storage.version, output: t === null });
    }
  }
  // A tensor over the same storage, which follows its base.
  view(name, t, shape, offset, places) {
    const made = new GraphTensor(t.storage, shape, offset, { base: t.base ?? t, madeAt: t.storage.version });
    if (t.requiresGrad) {
      const first = offset - t.offset,
        whole = t.shape;
      const back = (grad) => [put(zerosOf(whole), first, grad)];
      made.gradFn = this.add(this.makeNode(name, shape, [t], back, places));
    }
    return made;
  }
  // An in-place operation. Raises.
  write(t, name, result, operands, derivative, saves, places) {
    const followed = operands.some((one) => one.requiresGrad);
    if (followed && t.requiresGrad && t.base && !t.base.gradFn) raise(VIEW_OF_LEAF);
    if (followed && t.requiresGrad && !t.gradFn) raise(LEAF); // of a view perhaps not made yet
    const node = followed ? this.makeNode(name, t.shape, operands, derivative, places) : null;
    if (node) this.save(node, saves.filter(([, saved]) => saved !== null), t); // prettier-ignore
    const value = result();
    if (!equal(value.shape, t.shape))
      raise(`output with shape ${shapeText(t.shape)} doesn't match the broadcast shape ${shapeText(value.shape)}`);
    t.storage.values.splice(t.offset, value.values.length, ...value.values);
    t.storage.version += 1;
    if (node) {
      this.rebase(t, node);
      this.save(node, saves.filter(([, saved]) => saved === null), t); // prettier-ignore
    }
    return node;
  }
  // What was written has another history. (rebase_history)
  rebase(t, node) {
    if (!t.base) {
      t.gradFn = this.add(node);
      node.label = this.nameOf(t);
      return;
    }
    const { base, shape } = t,
      first = t.offset - base.offset;
    const copy = graphNode("CopySlices", this.numbers++, this.line, base.shape, { inner: node });
    copy.next = [this.edge(base), ...node.next.slice(1)];
    copy.places = [null, ...node.places.slice(1)];
    copy.ghosts = [null, ...node.ghosts.slice(1)];
    copy.saved = node.saved;
    copy.label = this.nameOf(base);
    copy.derivative = (grad, saved) => {
      const part = { shape, values: grad.values.slice(first, first + countOf(shape)) };
      const [own, ...others] = node.derivative(part, saved);
      return [own && put(grad, first, own), ...others];
    };
    base.gradFn = this.add(copy);
    this.gradFn(t);
  }

  // ---- expressions

  // A number, or a tensor.
  value(tree) {
    if (tree.kind === "number") return tree.value;
    if (tree.kind === "name") {
      if (!this.names.has(tree.name)) raise(`name '${tree.name}' is not defined`, "NameError");
      return this.names.get(tree.name);
    }
    if (tree.kind === "group") return this.value(tree.inner);
    if (tree.kind in BINARY_RULES) return this.arithmetic(tree);
    return this.ofTensor(tree);
  }
  tensor(tree) {
    const value = this.value(tree);
    if (value instanceof GraphTensor) return value;
    refuse(`Line ${this.line + 1}: a number has no graph. ${ALLOWED}`);
  }
  arithmetic({ kind, left, right }) {
    let [a, b] = [this.value(left), this.value(right)];
    if (!(a instanceof GraphTensor)) [a, b, left, right] = [b, a, right, left]; // 2 * y is y.__rmul__(2)
    if (!(a instanceof GraphTensor)) refuse(`Line ${this.line + 1}: a number has no graph. ${ALLOWED}`);
    if (!(b instanceof GraphTensor)) b = newTensor(makeArray([], [b]));
    const { name, forward, derivative, saves } = BINARY_RULES[kind];
    const value = forward(a.array, b.array);
    return this.follow(name, value, [a, b], derivative, saves(a, b), [placeOf(left), placeOf(right)]);
  }
  ofTensor(tree) {
    const { kind, name, inner } = tree;
    const t = this.tensor(inner),
      places = [placeOf(inner)];
    if (kind === "select") return this.select(t, tree.first, places);
    if (kind === "slice") return this.slice(t, tree, places);
    if (kind === "data") return dataOf(t);
    if (Object.hasOwn(UNARY_RULES, name)) {
      const rule = UNARY_RULES[name];
      const saves = [rule.keepsInput ? ["self", t, 0] : ["result", null, 0]];
      return this.follow(rule.name, rule.forward(t.array), [t], rule.derivative, saves, places);
    }
    const { shape } = t;
    if (name === "sum") {
      const spread = (grad) => [makeArray(shape, Array(countOf(shape)).fill(grad.values[0]))];
      return this.follow("SumBackward0", summedTo(t.array, []), [t], spread, [], places);
    }
    if (name === "clone") return this.follow("CloneBackward0", t.array, [t], (grad) => [grad], [], places);
    if (name === "detach") {
      const cut = t.requiresGrad ? { t, line: this.line, start: inner.end, end: tree.end } : null;
      return new GraphTensor(t.storage, shape, t.offset, { cut });
    }
    if (name === "view") return this.view("ViewBackward0", t, viewedShape(t, tree.argument), t.offset, places);
    refuse(`Line ${this.line + 1}: .${name}() stands at the end of a line of its own. ${ALLOWED}`);
  }
  select(t, index, places) {
    const [size = 0, ...rest] = t.shape;
    if (!t.shape.length && index === 0) raise(NO_INDEX, "IndexError");
    if (index < -size || index >= size)
      raise(`index ${index} is out of bounds for dimension 0 with size ${size}`, "IndexError");
    const at = index < 0 ? index + size : index;
    return this.view("SelectBackward0", t, rest, t.offset + at * countOf(rest), places);
  }
  slice(t, tree, places) {
    if (!t.shape.length) raise("slice() cannot be applied to a 0-dim tensor.", "IndexError");
    const [size, ...rest] = t.shape;
    const within = (index) => Math.max(0, Math.min(size, index < 0 ? index + size : index));
    const first = within(tree.first ?? 0),
      last = within(tree.last ?? size);
    if (last <= first) refuse(`Line ${this.line + 1}: a tensor has at least one element here.`);
    return this.view("SliceBackward0", t, [last - first, ...rest], t.offset + first * countOf(rest), places);
  }

  // ---- lines

  // Do a line. Returns what happened, as a sentence; a backward says it step by step. Raises.
  run({ kind, name, value, keep }) {
    if (kind === "backward") return this.backward(value, keep);
    if (kind === "set") return this.set(name, value);
    const t = this.value({ kind: "name", name });
    if (kind === "data add" || kind === "data mul") return this.writeData(t, kind.slice(5), name, value);
    if (!(kind in UNARY_RULES)) return this.written(t, name, this.binary(t, kind, name, value));
    const rule = UNARY_RULES[kind];
    if (t.base) refuse(`Line ${this.line + 1}: .${kind}_() on a view is more than this figure follows.`);
    const saves = [rule.keepsInput ? ["self", () => this.clone(t), 0] : ["result", null, 0]];
    const made = this.write(
      t, rule.name, () => rule.forward(t.array), [t], rule.derivative, saves, [{ rename: name }],
    ); // prettier-ignore
    return this.written(t, name, made);
  }
  set(name, tree) {
    const before = this.nodes.length;
    if (tree.kind === "leaf") {
      const made = newTensor(tree.value);
      made.flag = tree.flag;
      this.names.set(name, made);
      return `${name} is a leaf${made.flag ? " that requires grad" : ": nothing asks for its gradient"}.`;
    }
    const made = this.tensor(tree);
    this.names.set(name, made);
    if (made.gradFn && !made.gradFn.label) made.gradFn.label = name;
    const nodes = this.nodes.slice(before);
    const fresh = nodes.filter((node) => !node.variable).map(nodeText);
    if (!fresh.length)
      return made.apart
        ? `No node is made. ${name} shares memory, and has a version of its own.`
        : `No node is made.${made.cut ? ` ${name} shares its storage and version with what it was cut from.` : ""}`;
    const kept = nodes
      .filter((node) => node.saved.length)
      .map((node) => `${node.name} saves ${inWords(node.saved.map((s) => `${s.name} at version ${s.version}`))}`);
    return `This makes ${inWords(fresh)}.${kept.length ? ` ${kept.join("; ")}.` : ""}`;
  }
  // t.data += …: the memory is written, and the version of t stays.
  writeData(t, kind, name, tree) {
    const other = this.value(tree);
    if (other instanceof GraphTensor && other.requiresGrad)
      refuse(`Line ${this.line + 1}: a write of what requires grad to .data is more than this figure follows.`);
    this.binary(dataOf(t), kind, name, tree);
    return `The memory of ${name} is written behind its back: it is still at version ${t.storage.version}.`;
  }
  binary(t, kind, name, tree) {
    const value = this.value(tree);
    const other = value instanceof GraphTensor ? value : newTensor(makeArray([], [value]));
    const rule = BINARY_RULES[kind];
    // what is written over is copied first
    const saves = kind === "mul" ? [["other", other, 0], ["self", () => this.clone(t), 1]] : []; // prettier-ignore
    const result = () => {
      if (overlap(t, other)) raise(OVERLAP);
      return rule.forward(t.array, other.array);
    };
    return this.write(t, rule.name, result, [t, other], rule.derivative, saves, [{ rename: name }, placeOf(tree)]);
  }
  // A copy that a kernel makes with grad mode on: its node has a number, too.
  clone(t) {
    if (t.requiresGrad) this.numbers++;
    return newTensor(t.array);
  }
  written(t, name, node) {
    const words = `${name} is written: version ${t.storage.version}.`;
    if (!node) return `${words} No node is made.`;
    if (!t.base) return `${words} Its grad_fn is now ${nodeText(node)}.`;
    const base = this.nameOf(t.base) || "its base";
    return (
      `${words} ${name} is a view: the grad_fn of ${base} is now ${nodeText(t.base.gradFn)}, which holds ${node.name}, ` +
      `and that of ${name} ${nodeText(t.gradFn)}.`
    );
  }

  // ---- backward

  backward(tree, keep) {
    const t = this.tensor(tree);
    if (!t.requiresGrad) raise(NO_GRAPH);
    if (countOf(t.shape) !== 1) raise(NO_SCALAR);
    const root = this.edge(t);
    this.begin(root, makeArray(t.shape, [1]));
    this.see(`backward() begins at ${nodeText(root)} with the gradient 1. ${this.waiting()}`);
    while (this.task.queue.length) this.see(`${this.runNode(this.nextReady(), keep)} ${this.waiting()}`);
    return null;
  }
  // A graph task: how many gradients each node waits for, what has arrived, and who is ready.
  begin(root, grad) {
    this.task = { needs: dependencies(root), buffers: new Map([[root, grad]]), queue: [root], done: [], running: null, out: [], in: null };
  }
  // The ready node with the largest number. An AccumulateGrad comes before all.
  nextReady() {
    const { queue } = this.task;
    const rank = (node) => (node.variable ? Infinity : node.number);
    const node = queue.reduce((best, one) => (rank(one) > rank(best) ? one : best));
    queue.splice(queue.indexOf(node), 1);
    return node;
  }
  // evaluate_function. Returns what happened. Raises.
  runNode(node, keep) {
    const { task } = this;
    const grad = task.buffers.get(node);
    task.buffers.delete(node);
    Object.assign(task, { running: node, out: [], in: grad });
    let words;
    if (node.variable) words = this.accumulate(node.variable, grad);
    else {
      const saved = this.unpack(node);
      const out = node.derivative(grad, saved);
      if (!keep && (node.saved.length || node.inner)) Object.assign(node, { saved: [], released: true });
      task.out = node.next.map((one, i) => (one ? summedTo(out[i], one.shape) : null));
      words = `${nodeText(node)} runs with ${arrayText(grad)}${this.send(node)}.`;
    }
    task.done.push(node);
    return words;
  }
  accumulate(variable, grad) {
    const name = this.nameOf(variable) || "a leaf";
    const adds = variable.grad !== null;
    variable.grad = adds ? addArrays(variable.grad, grad) : grad;
    return `AccumulateGrad ${adds ? "adds" : "writes"} ${arrayText(grad)} to ${name}.grad.`;
  }
  // Gradients go into the buffers of the next nodes; who has all of its own is ready.
  send(node) {
    const { task } = this,
      parts = [];
    node.next.forEach((one, i) => {
      if (!one) return;
      const grad = task.out[i],
        had = task.buffers.get(one);
      task.buffers.set(one, had ? addArrays(had, grad) : grad);
      task.needs.set(one, task.needs.get(one) - 1);
      if (!task.needs.get(one)) task.queue.push(one);
      parts.push(`${arrayText(grad)} to ${nodeText(one)}${had ? ", where it is added" : ""}`);
    });
    return parts.length ? ` and sends ${inWords(parts)}` : "";
  }
  waiting() {
    const { queue, needs, buffers } = this.task;
    if (!queue.length) return "The queue is empty: backward() returns.";
    const late = [...buffers.keys()].filter((node) => needs.get(node));
    const ready = `Ready: ${queue.map(nodeText).join(", ")}.`;
    return late.length ? `${ready} ${late.map((node) => `${nodeText(node)} waits for ${needs.get(node)} more`).join("; ")}.` : ready;
  } // prettier-ignore
  // The arrays that the node has saved. Raises. (SavedVariable::unpack)
  unpack(node) {
    if (node.released) raise(TWICE);
    for (const { tensor, version, output } of [...node.saved].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const now = tensor.storage.version;
      if (now === version) continue;
      const maker = output ? node : this.gradFn(tensor);
      const which = maker ? `, which is output 0 of ${maker.name.replace(/Backward0$/, "")},` : "";
      raise(
        "one of the variables needed for gradient computation has been modified by an inplace operation: " +
          `[torch.FloatTensor ${shapeText(tensor.shape)}]${which} is at version ${now}; expected version ${version} instead. ${ANOMALY}`,
      );
    }
    return Object.fromEntries(node.saved.map(({ name, tensor }) => [name, tensor.array]));
  }

  // ---- what there is to see

  see(sentence, error = false) {
    const alive = this.alive();
    this.say.push(sentence);
    this.steps.push({
      line: this.line,
      error,
      tensors: [...this.names].map(([name, t]) => this.tensorSeen(name, t)),
      nodes: this.nodes.map((node) => this.nodeSeen(node, alive)),
      queue: this.task ? this.task.queue.map((node) => node.id) : [],
    });
  }
  // The nodes that can be reached from a name.
  alive() {
    const found = new Set(),
      stack = [...this.names.values()].map((t) => t.gradFn);
    while (stack.length) {
      const node = stack.pop();
      if (!node || found.has(node)) continue;
      found.add(node);
      stack.push(...node.next);
    }
    return found;
  }
  tensorSeen(name, t) {
    return {
      name,
      value: arrayText(t.array),
      version: t.storage.version,
      requires_grad: t.requiresGrad,
      node: t.gradFn ? t.gradFn.id : null,
      stale: t.base !== null && t.gradFn !== null && t.madeAt !== t.storage.version,
      grad: t.grad ? arrayText(t.grad) : "",
    };
  }
  nodeSeen(node, alive) {
    const { needs, buffers, queue, done, running, out, in: taken } = this.task ?? {
      needs: new Map(), buffers: new Map(), queue: [], done: [], running: null, out: [], in: null,
    }; // prettier-ignore
    const isRunning = node === running;
    const states = [
      ["running", isRunning], ["done", done.includes(node)], ["ready", queue.includes(node)], ["waits", needs.has(node)],
      ["idle", alive.has(node)], ["dropped", true],
    ]; // prettier-ignore
    const buffer = isRunning ? taken : buffers.get(node);
    return {
      state: states.find(([, is]) => is)[0],
      needs: needs.get(node) ?? 0,
      place: done.indexOf(node) + 1,
      buffer: buffer ? arrayText(buffer) : "",
      out: isRunning ? out.map((grad) => (grad ? arrayText(grad) : "")) : [],
      saved: node.saved.map(({ name, tensor, version }) => ({
        name, value: arrayText(tensor.array), version, now: tensor.storage.version,
      })), // prettier-ignore
      released: node.released,
    };
  }
  nodeDrawn(node) {
    return {
      name: node.name,
      number: node.number,
      label: node.label,
      line: node.line,
      shape: node.shape,
      inner: node.inner ? node.inner.name : "",
      leaf: node.variable !== null,
      next: node.next.map((one) => (one ? one.id : null)),
      cut: node.next.map((one, i) => (one ? this.cut(node.line, node.places[i]) : "")),
      ghosts: node.ghosts.filter((cut, i) => cut && !node.next[i]).map((cut) => this.ghost(cut)),
    };
  }
  // The program with .detach() on the operand there, or "" if the edge has none.
  cut(line, place) {
    if (!place) return "";
    const lines = [...this.lines];
    if (place.rename) lines.splice(line, 0, `${place.rename} = ${place.rename}.detach()`);
    else {
      const old = lines[line],
        operand = old.slice(place.start, place.end);
      lines[line] = `${old.slice(0, place.start)}${place.bare ? operand : `(${operand})`}.detach()${old.slice(place.end)}`;
    }
    return lines.join("; ");
  }
  // An edge that is not there, because its operand was detached: where it would lead, and the program with it.
  ghost({ t, line, start, end }) {
    const lines = [...this.lines];
    lines[line] = lines[line].slice(0, start) + lines[line].slice(end);
    return { to: (t.gradFn ?? t.accumulator)?.id ?? null, join: lines.join("; ") };
  }
}

const model = ({ program }) => {
  const lines = program.split(";").map((line) => line.replace(/^ +| +$/g, "")).filter(Boolean); // prettier-ignore
  if (lines.length > LONGEST) refuse(`A program has at most ${LONGEST} lines.`);
  const statements = lines.map((line, at) => new LineParser(line, at).statement());
  const machine = new GraphMachine(lines);
  machine.see(lines.length ? "Before the first line." : `An empty program. ${ALLOWED}`);
  let failed = false;
  for (const [at, statement] of statements.entries()) {
    Object.assign(machine, { line: at, task: null });
    try {
      const sentence = machine.run(statement);
      if (sentence) machine.see(sentence);
    } catch (error) {
      if (!(error instanceof Raised)) throw error;
      const rest = at + 1 < lines.length ? " What follows is not run." : "";
      machine.see(`${error.message}${error.message.endsWith(".") ? "" : "."}${rest}`, true);
      failed = true;
      break;
    }
  }
  const nodes = machine.nodes.map((node) => machine.nodeDrawn(node));
  return { lines, nodes, steps: machine.steps, say: machine.say, failed };
};
