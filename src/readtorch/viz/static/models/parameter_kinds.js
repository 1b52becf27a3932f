// What becomes of a parameter, and who notices: as figures/parameter_kinds.py.
const LONGEST = 10;
const [LARGEST, FINEST] = [8192, 1024]; // multiples of 1 / FINEST up to LARGEST are exact in float32, in both languages
const ALLOWED =
  "Allowed: v = … and net.weight = … of names, net.weight, torch.nn.Parameter(…), copy.copy(…), copy.deepcopy(…), .detach(), " +
  ".data, .clone(), .double(), .float() and * 0.5; v.data = …; v.mul_(2); v *= 2; with torch.no_grad(): before any of these; loss = (v * v).sum(); " +
  "loss.backward(); opt.step(); opt.zero_grad(); net.double(); net.float(); opt = torch.optim.SGD(net.parameters(), lr=0.5).";
const LEAF = "a leaf Variable that requires grad is being used in an in-place operation.";
const NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn";
const TWICE =
  "Trying to backward through the graph a second time (or directly access saved tensors after they have already been " +
  "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify " +
  "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors " +
  "after calling backward.";
const CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation";
const ANOMALY =
  "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with " +
  "torch.autograd.set_detect_anomaly(True, check_nan=False).";
const NO_COPY =
  "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were " +
  "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see " +
  "https://github.com/pytorch/pytorch/pull/103001";

// ---- tensors

const memoryOf = (values, double = false) => ({ values, double });
const copyOf = ({ values, double }) => memoryOf([...values], double);
class KindTensor {
  // plainLeaf: no parameter, and requires a gradient all the same
  constructor(memory, counter, parameter = false, history = null, plainLeaf = false) {
    Object.assign(this, { memory, counter, parameter, history, plainLeaf, grad: null });
  }
  get requiresGrad() {
    return this.parameter || this.plainLeaf || this.history !== null;
  }
  get dtype() {
    return this.memory.double ? "float64" : "float32";
  }
  get gradOfOtherDtype() {
    return this.grad !== null && this.grad.dtype !== this.dtype;
  }
  get kind() {
    return this.parameter ? "Parameter" : "Tensor";
  }
  // Where a gradient of it goes: how it depends on a leaf; all operations here are linear.
  get path() {
    return this.history ?? { leaf: this, factor: 1, name: "", double: this.memory.double, products: [] };
  }
}

// double: of the leaf, when its AccumulateGrad was made, to which gradients are cast.
// products: the nodes behind a result that save something, each with the losses whose backward has freed it.
const timesHistory = ({ leaf, factor, double, products }, by, name) => ({
  leaf, factor: factor * by, name, double, products: name === "MulBackward0" ? [...products, []] : products,
}); // prettier-ignore

// ---- the program as text

const FACTOR = "-?(?:\\d|\\d\\.5|\\.5)(?![\\d.])";
const VARIABLE = "(?!(?:net|opt|loss|torch|copy|with)\\b)[a-z][a-z0-9_]{0,9}";
const SUFFIX = /^\.(detach|clone|double|float)\(\)|^\.(data)\b/;
const TIMES = new RegExp(`^\\*(${FACTOR})`);
const FIXED = new Map([
  ["loss.backward()", "backward"],
  ["opt.step()", "step"],
  ["opt.zero_grad()", "zero_grad"],
  ["net.double()", "double"],
  ["net.float()", "float"],
  ["opt=torch.optim.SGD(net.parameters(),lr=0.5)", "optimizer"],
]);
const GUARD = "with torch.no_grad():";
const whole = (pattern) => new RegExp(`^(?:${pattern})$`);

// Reads one line.
class KindParser {
  constructor(line, at) {
    this.at = at;
    this.guarded = line.startsWith(GUARD);
    this.text = (this.guarded ? line.slice(GUARD.length) : line).replaceAll(" ", "");
  }
  refuse(what = "") {
    refuse(`Line ${this.at + 1}, not known here: ${[...(what || this.text)].slice(0, 24).join("")}. ${ALLOWED}`);
  }
  statement() {
    const line = this.text;
    if (FIXED.has(line)) return { kind: FIXED.get(line) };
    let match = line.match(whole("loss=\\((.+)\\)\\.sum\\(\\)"));
    if (match) {
      const star = match[1].indexOf("*");
      const [half, other] = star < 0 ? [match[1], ""] : [match[1].slice(0, star), match[1].slice(star + 1)];
      if (half !== other) this.refuse(match[1]);
      return { kind: "loss", tree: this.whole(half) };
    }
    match = line.match(whole(`(.+)\\.mul_\\((${FACTOR})\\)`));
    if (match) {
      const tree = this.whole(match[1]);
      if (tree.kind === "times") this.refuse();
      return { kind: "mul", tree, factor: Number(match[2]), name: match[1] };
    }
    match = line.match(whole(`(${VARIABLE}|net\\.weight)\\*=(${FACTOR})`));
    if (match) return { kind: "imul", name: match[1], factor: Number(match[2]) };
    match = line.match(whole(`(${VARIABLE}|net\\.weight)\\.data=(.+)`));
    if (match) return { kind: "data", name: match[1], tree: this.whole(match[2]) };
    match = line.match(whole(`(${VARIABLE}|net\\.weight)=(.+)`));
    if (match) return { kind: "set", name: match[1], tree: this.whole(match[2]) };
    return this.refuse();
  }
  whole(words) {
    const [tree, rest] = this.tree(words);
    if (rest) this.refuse(rest);
    return tree;
  }
  // The tree of an expression, and what is left of the text.
  tree(words) {
    for (const kind of ["torch.nn.Parameter", "copy.copy", "copy.deepcopy"])
      if (words.startsWith(`${kind}(`)) {
        const [inner, rest] = this.tree(words.slice(kind.length + 1));
        if (!rest.startsWith(")")) this.refuse(rest || words);
        return this.suffixes({ kind, inner }, rest.slice(1));
      }
    const match = words.match(new RegExp(`^(?:net\\.weight\\b|${VARIABLE})`));
    if (!match) this.refuse(words);
    return this.suffixes({ kind: "name", name: match[0] }, words.slice(match[0].length));
  }
  suffixes(tree, rest) {
    for (let match = rest.match(SUFFIX); match; match = rest.match(SUFFIX)) {
      tree = { kind: match[1] ?? match[2], inner: tree };
      rest = rest.slice(match[0].length);
    }
    for (let match = rest.match(TIMES); match; match = rest.match(TIMES)) {
      tree = { kind: "times", inner: tree, factor: Number(match[1]) };
      rest = rest.slice(match[0].length);
    }
    return [tree, rest];
  }
}

// ---- running it

function scaled(values, factor) {
  const made = values.map((value) => value * factor);
  if (made.some((value) => Math.abs(value) > LARGEST || (value * FINEST) % 1))
    refuse("This figure draws multiples of 1/1,024 up to 8,192: a number leaves them.");
  return made;
}
const numbersText = (values) => `[${values.map((x) => String(x + 0)).join(", ")}]`;

class KindMachine {
  constructor() {
    const weight = new KindTensor(memoryOf([2, 4]), [0], true);
    this.names = new Map([["net.weight", weight]]);
    this.held = [weight]; // by the optimizer
    this.loss = null;
    this.recording = true;
    this.known = [weight]; // every tensor that was ever seen, in order: their numbers
    this.memories = [weight.memory];
    this.steps = [];
    this.say = [];
  }
  get weight() {
    return this.names.get("net.weight");
  }

  // ---- expressions

  value({ kind, name, inner, factor }) {
    if (kind === "name") {
      if (!this.names.has(name)) raise(`name '${name}' is not defined`, "NameError");
      return this.names.get(name);
    }
    const t = this.value(inner),
      { memory } = t;
    if (kind === "torch.nn.Parameter") return new KindTensor(memory, t.counter, true);
    if (kind === "copy.deepcopy") {
      if (t.history) raise(NO_COPY);
      const copied = this.copied(t, copyOf(memory));
      if (t.grad && !t.parameter) copied.grad = new KindTensor(copyOf(t.grad.memory), [0]); // Parameter.__deepcopy__ leaves it behind
      return copied;
    }
    if (kind === "copy.copy") return this.copied(t, memory);
    if (kind === "detach") return new KindTensor(memory, t.counter);
    if (kind === "data") return new KindTensor(memory, [0]);
    if (kind === "double" || kind === "float") {
      const double = kind === "double";
      return double === memory.double ? t : this.result(t, [...memory.values], 1, "ToCopyBackward0", double);
    }
    if (kind === "clone") return this.result(t, [...memory.values], 1, "CloneBackward0", memory.double);
    return this.result(t, scaled(memory.values, factor), factor, "MulBackward0", memory.double);
  }
  copied({ parameter, requiresGrad }, memory) {
    const counter = [parameter ? 0 : 1]; // a plain tensor's copy is filled by set_, which counts
    return new KindTensor(memory, counter, parameter, null, requiresGrad && !parameter);
  }
  result({ requiresGrad, path }, values, factor, name, double) {
    const history = this.recording && requiresGrad ? timesHistory(path, factor, name) : null;
    return new KindTensor(memoryOf(values, double), [0], false, history);
  }

  // ---- lines

  // Do a line. Returns what happened, as a sentence. Raises.
  run(statement) {
    return this[`do_${statement.kind}`](statement);
  }
  do_set({ name, tree }) {
    const t = this.value(tree);
    if (name === "net.weight") return this.assignWeight(t);
    const others = [...this.names].filter(([other, one]) => one === t && other !== name);
    this.names.set(name, t);
    if (others.length) return `${name} is ${others[0][0]} itself: one object, two names.`;
    const source = ["torch.nn.Parameter", "copy.copy", "detach", "data"].includes(tree.kind) ? this.value(tree.inner) : null;
    const counter = source?.counter === t.counter ? "and counter" : "with a counter of its own";
    const shared = source?.memory === t.memory ? `over the same memory ${counter}` : "with memory of its own";
    return `${name} is a new object of the class ${t.kind}, ${shared}; ${this.autograd(t)}.`;
  }
  assignWeight(t) {
    if (!t.parameter)
      raise(`cannot assign 'torch.${t.memory.double ? "Double" : "Float"}Tensor' as parameter 'weight' (torch.nn.Parameter or None expected)`, "TypeError"); // prettier-ignore
    this.names.set("net.weight", t);
    return this.held.includes(t)
      ? "The module files it. It is the object that the optimizer holds."
      : "The module files it. The optimizer does not notice: it still holds the old object.";
  }
  do_data({ name, tree }) {
    const t = this.value({ kind: "name", name });
    t.memory = this.value(tree).memory;
    const words = `${name} is the same object, still at version ${t.counter[0]}, over other memory.`;
    return this.waitsFor(t)
      ? `${words} The loss has saved this object: it will compute with the new numbers, and not notice.`
      : words;
  }
  do_mul({ tree, factor, name }) {
    const t = this.value(tree);
    if (this.recording && t.requiresGrad && !t.history) raise(LEAF);
    const { memory } = t;
    memory.values.splice(0, 2, ...scaled(memory.values, factor));
    t.counter[0]++;
    if (this.recording && t.history) t.history = timesHistory(t.history, factor, "MulBackward0");
    const words = `${name} is written: version ${t.counter[0]}.`;
    const saved = this.loss?.path && !this.loss.freed ? this.loss.t : null;
    if (saved?.memory !== memory) return words;
    return saved.counter === t.counter
      ? `${words} The loss has saved this memory, and will notice.`
      : `${words} The loss has saved this memory, and will not notice: it looks at another counter.`;
  }
  do_imul({ name, factor }) {
    const words = this.do_mul({ tree: { kind: "name", name }, factor, name });
    return name === "net.weight" ? `${words} Then the module files the same object again.` : words;
  }
  do_loss({ tree }) {
    const t = this.value(tree);
    const path = this.recording && t.requiresGrad ? t.path : null;
    const wanted = path ? scaled(t.memory.values, 2 * path.factor) : [];
    this.loss = { t, version: t.counter[0], path, wanted, freed: false };
    if (!path) return "Nothing here requires a gradient: the loss has no graph.";
    return `The product saves ${this.nameOf(t)} at version ${t.counter[0]}, for backward.`;
  }
  do_backward() {
    const { loss } = this;
    if (!loss) raise("name 'loss' is not defined", "NameError");
    if (!loss.path) raise(NO_GRAPH);
    if (loss.freed) raise(TWICE);
    const { t, version, wanted } = loss,
      { leaf } = loss.path;
    if (t.counter[0] !== version)
      raise(`${CHANGED}: ${this.savedAs(loss)} is at version ${t.counter[0]}; expected version ${version} instead. ${ANOMALY}`);
    const gradient = scaled(t.memory.values, 2 * loss.path.factor);
    loss.freed = true;
    for (const freed of loss.path.products.toReversed()) {
      if (freed.length) raise(TWICE);
      freed.push(loss);
    }
    this.accumulate(leaf, gradient, loss.path.double);
    let words = `${numbersText(gradient)} goes to the .grad of ${this.nameOf(leaf)}.`;
    if (leaf.gradOfOtherDtype) words += ` It is ${leaf.grad.dtype}, and the leaf is ${leaf.dtype} by now.`;
    return equal(gradient, wanted)
      ? words
      : `${words} When the loss was computed, ${numbersText(wanted)} was right: a wrong gradient, and no error.`;
  }
  // its history as it is now, not what it was when the loss was computed
  savedAs({ t }) {
    const made = t.history ? `, which is output 0 of ${t.history.name.replace("Backward0", "")},` : "";
    return `[torch.${t.memory.double ? "Double" : "Float"}Tensor [2]]${made}`;
  }
  accumulate(leaf, gradient, double) {
    const memory = leaf.grad?.memory; // written in place: it keeps its dtype
    const values = memory ? gradient.map((value, i) => memory.values[i] + value) : gradient;
    leaf.grad = new KindTensor(memoryOf(values, memory ? memory.double : double), [0]);
  }
  do_step() {
    const moved = this.held.filter((p) => p.grad);
    if (!moved.length) return "The optimizer finds no .grad: nothing moves.";
    for (const p of moved) {
      const steps = scaled(p.grad.memory.values, 0.5);
      p.memory.values.splice(0, 2, ...scaled(p.memory.values.map((value, i) => value - steps[i]), 1)); // prettier-ignore
      p.counter[0]++;
    }
    const words = "The optimizer steps the object that it holds.",
      { weight } = this;
    if (moved.includes(weight)) return words;
    if (!moved.some((p) => p.memory === weight.memory)) return `${words} The weight of the module is another one, and stays.`;
    const without = weight.grad ? "" : ", without a .grad";
    return `${words} The weight of the module is another one over the same memory: it moves${without}.`;
  }
  do_double(_, double = true) {
    const p = this.weight,
      kind = double ? "double" : "float";
    const others = [p, p.grad].filter((t) => t && t.memory.double !== double);
    if (!others.length) return `Everything is ${kind} already.`;
    for (const t of others) t.memory = memoryOf([...t.memory.values], double);
    if (!others.includes(p)) return `The weight is ${kind} already; its .grad was not, and is now.`;
    const words = `net.weight.data = net.weight.${kind}(), within _apply: the same object, over other memory.`;
    return this.held.includes(p) ? `${words} The optimizer still holds it.` : words;
  }
  do_float() {
    return this.do_double(null, false);
  }
  do_zero_grad() {
    for (const p of this.held) p.grad = null;
    return "The .grad of what the optimizer holds is None again.";
  }
  do_optimizer() {
    this.held = [this.weight];
    return "A new optimizer, which holds the weight that the module has now.";
  }

  // ---- what there is to see

  // Whether a loss waits for its backward that has saved t.
  waitsFor(t) {
    return Boolean(this.loss?.path && !this.loss.freed && this.loss.t === t);
  }
  nameOf(t) {
    const unnamed = this.held.includes(t) ? "the object that opt holds" : "an object without a name";
    return [...this.names].find(([, one]) => one === t)?.[0] ?? unnamed;
  }
  autograd(t) {
    if (t.history) return `it has a history, ${t.history.name}`;
    return t.requiresGrad ? "a leaf that requires grad" : "it requires no grad";
  }
  see(sentence, line, error = false) {
    for (const t of [...this.names.values(), ...(this.loss ? [this.loss.t] : [])])
      if (!this.known.includes(t)) this.known.push(t);
    this.say.push(sentence);
    const rows = this.known.map((t) => this.row(t)).filter(({ holders }) => holders.length);
    this.steps.push({ line, error, rows });
  }
  row(t) {
    if (!this.memories.includes(t.memory)) this.memories.push(t.memory);
    const holders = [...this.names].filter(([, one]) => one === t).map(([name]) => name);
    if (this.held.includes(t)) holders.push("opt");
    if (this.waitsFor(t)) holders.push(`loss, at version ${this.loss.version}`);
    return {
      number: this.known.indexOf(t) + 1,
      kind: t.kind,
      holders,
      memory: this.memories.indexOf(t.memory) + 1,
      version: t.counter[0],
      graph: t.history ? t.history.name : t.requiresGrad ? "leaf" : "",
      values: numbersText(t.memory.values),
      dtype: t.dtype,
      grad: t.grad ? numbersText(t.grad.memory.values) : "",
      grad_dtype: t.gradOfOtherDtype ? t.grad.dtype : "",
    };
  }
}

const model = ({ program }) => {
  const lines = program.split(";").map((line) => line.replace(/^ +| +$/g, "")).filter(Boolean); // prettier-ignore
  if (lines.length > LONGEST) refuse(`A program has at most ${LONGEST} lines.`);
  const parsers = lines.map((line, at) => new KindParser(line, at));
  const statements = parsers.map((parser) => parser.statement());
  const machine = new KindMachine();
  machine.see("A module net with a weight, and an optimizer opt that holds it. Both hold one object.", -1);
  let failed = false;
  for (const [at, statement] of statements.entries()) {
    machine.recording = !parsers[at].guarded;
    try {
      machine.see(machine.run(statement), at);
    } catch (error) {
      if (!(error instanceof Raised)) throw error;
      const rest = at + 1 < lines.length ? " What follows is not run." : "";
      machine.see(`${error.message}${error.message.endsWith(".") ? "" : "."}${rest}`, at, true);
      failed = true;
      break;
    }
  }
  return { lines, steps: machine.steps, say: machine.say, failed };
};
