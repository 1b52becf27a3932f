// A short program, its graph in FX, and what passes make of it: as figures/fx_passes.py.
const PASSES = {
  "": "nothing", dead: "dead code", fold: "constant folding", cse: "common subexpressions", pattern: "a * b + c → addcmul",
}; // prettier-ignore
const SLOTS = ["first", "second", "third"];
const EXAMPLE = { x: [1, -2, 3], y: [0.5, 1, -1] };
const SCALE = [2, 3, -1];
const WEIGHT = [[1, 0, -1], [2, 1, 0], [0, -1, 1]]; // prettier-ignore
const MOST_NODES = 24;
const FX_ALLOWED =
  "Allowed: a = …, a += … and -= *= /=, with x, y, your names, numbers, + - * /, parentheses, .exp(), .relu(), .tanh(), .add(…), " +
  ".mul(…), .add_(…), .mul_(…), .relu_(), torch.relu(…), torch.relu_(…), self.linear(…), self.scale; the last statement is return ….";
const SIGNS = { "+": "add", "-": "sub", "*": "mul", "/": "truediv" };
const AUGMENTED = { "+=": "add_", "-=": "sub_", "*=": "mul_", "/=": "div_" };
const METHODS = { exp: 0, relu: 0, tanh: 0, relu_: 0, add: 1, mul: 1, add_: 1, mul_: 1 };

const isNumber = (value) => typeof value === "string";

class FxGraph {
  nodes = [];
  counts = {};
  taken = new Set();
  // As PyTorch names nodes: add, add_1, add_2.
  freeName(base) {
    let name = base;
    while (this.taken.has(name)) {
      this.counts[base] = (this.counts[base] ?? 0) + 1;
      name = `${base}_${this.counts[base]}`;
    }
    this.taken.add(name);
    return name;
  }
  make(op, target, args, base) {
    return { name: this.freeName(base), op, target, args: [...args], value: null };
  }
  append(...made) {
    if (this.nodes.length > MOST_NODES) refuse(`At most ${MOST_NODES} nodes, please.`);
    this.nodes.push(this.make(...made));
    return this.nodes.at(-1);
  }
  users(node) {
    return this.nodes.filter((n) => n.args.includes(node));
  }
  // What used `old` uses `made`.
  replace(old, made) {
    for (const node of this.nodes) node.args = node.args.map((a) => (a === old ? made : a));
  }
  remove(node) {
    this.nodes.splice(this.nodes.indexOf(node), 1);
  }
}

// ---- the program as text

const FX_TOKEN =
  / *(?:([0-9]+(?:\.[0-9]+)?)(?![0-9A-Za-z_.])|(torch\.relu_?|self\.(?:linear|scale)|[a-z][a-z0-9_]*)(?![A-Za-z0-9_])|(\.[a-z_]+(?=\()|[-+*/]=|[-+*/=()]))/y;
const FX_NUMBER = /^(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?$/;
const TAKEN = [
  "return", "self", "torch", "if", "else", "for", "in", "while", "def", "lambda", "import", "from", "with", "and", "or", "not", "is",
]; // prettier-ignore
const IN_PYTORCH = [
  [/\bwith\b/, "FX records the operators inside, and nothing of the with."],
  [
    /\bif\b/,
    "symbolic_trace raises TraceError: an if needs a bool, and a proxy has none. " +
      "An if on anything else is decided while tracing, and leaves no node.",
  ],
  [
    /\bfor\b|\bwhile\b/,
    "symbolic_trace raises TraceError: nobody knows how often a loop over a proxy runs. " +
      "Any other loop runs while tracing, and each turn leaves its nodes.",
  ],
  [/\blen\b/, "symbolic_trace raises RuntimeError: len must return an int, and a proxy has none."],
  [/\] *[-+*/]?=(?!=)/, "symbolic_trace raises TypeError: a proxy has no item assignment."],
  [
    /\btorch\.(?:arange|eye|full|linspace|ones|rand|randint|randn|tensor|zeros)\b/,
    "symbolic_trace runs it once, and the tensor becomes an attribute.",
  ],
  [/\btorch\.(?:tanh|exp)\b/, "FX takes it as a call_function; write it as a method here."],
  [/\btorch\.(?!relu_?\()[a-z]/, "FX takes a function of torch as a call_function; this figure knows torch.relu and torch.relu_."],
  [/\.shape\b/, "FX takes it as call_functions: getattr, and for a size of it operator.getitem."],
  [/[\]@<>]|\*\*/, "FX takes it as a call_function of the module operator; this figure has + - * / alone."],
];
// What FX does with a program that the figure does not trace.
function saidInPytorch(text) {
  const known = IN_PYTORCH.find(([pattern]) => pattern.test(text));
  return known ? `Not in this figure. ${known[1]}` : "";
}
const trimmed = (text) => text.replace(/^ +| +$/g, "");

// A number as Python writes it.
function fxNumber(text) {
  if (!FX_NUMBER.test(text)) refuse(`${text.slice(0, 20)}: a number has at most six digits before the point and four behind it.`);
  const [whole, rest] = text.split(".");
  return rest ? `${whole}.${rest.replace(/0+$/, "") || "0"}` : whole;
}

// -2 is a constant of Python, and so is -(-2).
const negative = (text) => (text[0] === "-" ? text.slice(1) : text === "0" ? text : `-${text}`);

// Reads a statement after the other, and does what a trace with proxies does: a node for each operation.
// eager: a += 1 writes into a tensor, as the program does. A proxy has no __iadd__, so that a trace makes a new value.
class FxTracer {
  constructor(program, eager = false) {
    this.graph = new FxGraph();
    this.eager = eager;
    this.names = new Map(Object.keys(EXAMPLE).map((name) => [name, this.graph.append("placeholder", name, [], name)]));
    this.scale = null;
    const statements = program.split(";").map(trimmed).filter(Boolean);
    if (!statements.length || !/^return(?![A-Za-z0-9_])/.test(statements.at(-1)))
      refuse(saidInPytorch(program) || `The last statement is return …. ${FX_ALLOWED}`);
    statements.forEach((statement, i) => {
      this.text = statement; // what a refusal is about
      this.left = this.tokens(statement);
      this.statement(i === statements.length - 1);
      if (this.left.length) this.refuse();
    });
  }
  tokens(text) {
    const found = [];
    FX_TOKEN.lastIndex = 0;
    for (let end = 0; end < text.length; end = FX_TOKEN.lastIndex) {
      FX_TOKEN.lastIndex = end;
      const match = FX_TOKEN.exec(text);
      if (!match) this.unknown([...trimmed(text.slice(end))].slice(0, 20).join(""));
      found.push(match[1] ?? match[2] ?? match[3]);
    }
    return found;
  }
  unknown(text) {
    refuse(saidInPytorch(this.text) || `Not known here: ${text}. ${FX_ALLOWED}`);
  }
  refuse() {
    if (this.left.length) this.unknown(this.left[0]);
    refuse(`Something is missing at the end of a statement. ${FX_ALLOWED}`);
  }
  nextIs(words) {
    return this.left.length > 0 && words.includes(this.left[0]);
  }
  take(word) {
    if (!this.nextIs([word])) this.refuse();
    this.left.shift();
  }
  statement(last) {
    if (this.nextIs(["return"])) {
      this.left.shift();
      const value = this.tensor(this.sum(), "The program returns a number, not a tensor.");
      if (!last) refuse("Nothing is run after return: write it last.");
      this.graph.append("output", "output", [value], "output");
    } else if (this.left.length > 1 && (this.left[1] === "=" || Object.hasOwn(AUGMENTED, this.left[1])))
      this.assignment(this.left.shift(), this.left.shift());
    else this.sum();
  }
  assignment(name, sign) {
    if (!/^[a-z][a-z0-9_]*$/.test(name) || TAKEN.includes(name)) refuse(`${name} is no name for a value here. ${FX_ALLOWED}`);
    if (sign !== "=" && !this.names.has(name)) this.unknown(name);
    const value = this.sum();
    this.names.set(name, sign === "=" ? value : this.augmented(this.names.get(name), sign, value));
  }
  augmented(old, sign, value) {
    if (!this.eager || isNumber(old)) return this.binary(old, sign[0], value);
    this.written(old);
    return this.graph.append("call_method", AUGMENTED[sign], [old, value], AUGMENTED[sign]);
  }
  written(node) {
    if (node.op === "get_attr") refuse("The trace succeeds, but the program itself does not run: a leaf Variable that requires grad is being used in an in-place operation.");
  }
  tensor(value, sentence = "A method of a number: only tensors have methods here.") {
    return isNumber(value) ? refuse(sentence) : value;
  }
  sum() {
    return this.operation(["+", "-"], () => this.operation(["*", "/"], () => this.factor()));
  }
  operation(signs, part) {
    let value = part();
    while (this.nextIs(signs)) {
      const sign = this.left.shift();
      value = this.binary(value, sign, part());
    }
    return value;
  }
  binary(value, sign, other) {
    if (isNumber(value) && isNumber(other))
      refuse(`${value} ${sign} ${other}: Python computes this before any proxy hears of it. Write the result.`);
    return this.graph.append("call_function", sign, [value, other], SIGNS[sign]);
  }
  factor() {
    if (!this.nextIs(["-"])) return this.methods();
    this.left.shift();
    const value = this.factor();
    return isNumber(value) ? negative(value) : this.graph.append("call_function", "neg", [value], "neg");
  }
  methods() {
    let value = this.primary();
    while (this.left.length && this.left[0][0] === ".") {
      const name = this.left.shift().slice(1);
      if (!Object.hasOwn(METHODS, name)) refuse(saidInPytorch(this.text) || `Not in this figure. FX takes .${name}() as a call_method, whatever it is. ${FX_ALLOWED}`);
      this.tensor(value);
      const args = [value, ...this.arguments(METHODS[name])];
      if (name.endsWith("_")) this.written(value);
      value = this.graph.append("call_method", name, args, name);
    }
    return value;
  }
  arguments(count) {
    this.take("(");
    const args = Array.from({ length: count }, () => this.sum());
    this.take(")");
    return args;
  }
  primary() {
    if (!this.left.length) this.refuse();
    const word = this.left.shift();
    if (word === "(") {
      const value = this.sum();
      this.take(")");
      return value;
    }
    if (/^[0-9]/.test(word)) return fxNumber(word);
    if (word === "self.scale") {
      this.scale ??= this.graph.append("get_attr", "scale", [], "scale");
      return this.scale;
    }
    if (["self.linear", "torch.relu", "torch.relu_"].includes(word)) {
      const [a] = this.arguments(1);
      this.tensor(a, `${word} takes a tensor.`);
      if (word.endsWith("_")) this.written(a);
      const short = word.split(".")[1];
      const op = word === "self.linear" ? "call_module" : "call_function";
      return this.graph.append(op, op === "call_module" ? short : word, [a], short);
    }
    if (this.names.has(word)) return this.names.get(word);
    this.left.unshift(word);
    return this.refuse();
  }
}

// ---- what it computes

function checkedValues(values) {
  if (!values.every((v) => Math.abs(v) < 1e9))
    refuse("A number grows beyond 1,000,000,000, or is none: this figure computes with smaller ones.");
  return values;
}
const FX_BINARY = { "+": (a, b) => a + b, "-": (a, b) => a - b, "*": (a, b) => a * b, "/": (a, b) => a / b };
const FX_UNARY = { neg: (a) => 0 - a, exp: (a) => Math.exp(Math.min(a, 50)), relu: (a) => (a > 0 ? a : 0), tanh: Math.tanh };

// What PyTorch raises when the graph runs.
class Failed extends Error {}

// addcmul takes tensors.
function refuseNumbers(args) {
  ["input", "tensor1", "tensor2"].forEach((name, i) => {
    if (!isNumber(args[i])) return;
    const kind = args[i].includes(".") ? "float" : "int";
    throw new Failed(`TypeError: addcmul(): argument '${name}' (position ${i + 1}) must be Tensor, not ${kind}`);
  });
}

// The value of a node. A method with _ writes into its first operand.
function runNode(node, args) {
  if (node.target === "torch.addcmul") refuseNumbers(node.args);
  if (node.op === "call_module")
    return checkedValues(WEIGHT.map((row) => row.reduce((sum, w, i) => sum + w * args[0][i], 0)));
  const spread = args.map((a) => (Array.isArray(a) ? a : [a, a, a]));
  const kind = node.target.replace(/^torch\./, "").replace(/_+$/, "");
  let result;
  if (kind === "addcmul") result = spread[0].map((c, i) => c + spread[1][i] * spread[2][i]);
  else if (Object.hasOwn(FX_UNARY, kind)) result = spread[0].map(FX_UNARY[kind]);
  else result = spread[0].map((a, i) => FX_BINARY[{ add: "+", sub: "-", mul: "*", div: "/" }[kind] ?? kind](a, spread[1][i]));
  checkedValues(result);
  if (!node.target.endsWith("_")) return result;
  args[0].splice(0, 3, ...result);
  return args[0];
}

// What the graph returns for the example, and what is in its inputs afterwards.
function runGraph(graph) {
  const values = new Map();
  for (const node of graph.nodes) {
    const args = node.args.map((a) => (isNumber(a) ? Number(a) : values.get(a)));
    if (node.op === "placeholder") values.set(node, [...EXAMPLE[node.target]]);
    else if (node.op === "get_attr") values.set(node, [...(node.value ?? SCALE)]);
    else if (node.op === "output")
      return { value: args[0], inputs: graph.nodes.filter((n) => n.op === "placeholder").map((n) => values.get(n)) };
    else values.set(node, runNode(node, args));
  }
}

// ---- passes

function removeDeadCode(graph) {
  for (const node of [...graph.nodes].reverse())
    if (!["placeholder", "output"].includes(node.op) && !graph.users(node).length) graph.remove(node);
}

function mergeEqualNodes(graph) {
  const known = new Map();
  for (const node of [...graph.nodes].filter(({ op }) => op.startsWith("call_"))) {
    const key = JSON.stringify([node.op, node.target, node.args.map((a) => (isNumber(a) ? Number(a) : a.name))]);
    if (!known.has(key)) known.set(key, node);
    else {
      graph.replace(node, known.get(key));
      graph.remove(node);
    }
  }
}

const isInplace = (node) => node.op.startsWith("call_") && node.target.endsWith("_");

// The nodes whose value follows from parameters and numbers alone, and that nothing writes into.
function foldableNodes(graph) {
  const known = [];
  for (const node of graph.nodes) {
    const users = graph.users(node);
    const takesNumbers = node.target !== "torch.addcmul" || !node.args.some(isNumber);
    if (["placeholder", "output"].includes(node.op) || isInplace(node) || !users.length || !takesNumbers) continue;
    const fixed = node.args.every((a) => isNumber(a) || known.includes(a));
    if (fixed && !users.some((user) => isInplace(user) && user.args[0] === node)) known.push(node);
  }
  return known;
}

function foldConstants(graph) {
  const known = foldableNodes(graph),
    values = new Map();
  for (const node of known) {
    const args = node.args.map((a) => (isNumber(a) ? Number(a) : values.get(a)));
    values.set(node, node.op === "get_attr" ? [...(node.value ?? SCALE)] : runNode(node, args));
  }
  for (const node of known) {
    if (node.op === "get_attr" || graph.users(node).every((user) => known.includes(user))) continue;
    const folded = graph.make("get_attr", "", [], "folded");
    folded.target = folded.name;
    folded.value = values.get(node);
    graph.nodes.splice(graph.nodes.indexOf(node), 0, folded);
    graph.replace(node, folded);
  }
  for (const node of known.reverse()) if (!graph.users(node).length) graph.remove(node);
}

// The pairs [product, sum] of all places like a * b + c. A number fits a, b and c, too; two of them are never one node.
function findPattern(graph) {
  const found = [];
  for (const node of graph.nodes) {
    if (node.op !== "call_function" || node.target !== "+" || isNumber(node.args[0])) continue;
    const [product, rest] = node.args,
      users = graph.users(product);
    const fits = product.op === "call_function" && product.target === "*" && users.length === 1 && users[0] === node;
    const parts = [product, ...product.args, rest].filter((a) => !isNumber(a));
    if (fits && new Set(parts).size === parts.length) found.push([product, node]);
  }
  return found;
}

function replacePattern(graph) {
  for (const [product, total] of findPattern(graph)) {
    const made = graph.make("call_function", "torch.addcmul", [total.args[1], ...product.args], "addcmul");
    const [first] = graph.users(total);
    graph.nodes.splice(first ? graph.nodes.indexOf(first) : graph.nodes.indexOf(total) + 1, 0, made);
    graph.replace(total, made);
    graph.remove(total);
    graph.remove(product);
  }
}

const RUN_PASS = { dead: removeDeadCode, cse: mergeEqualNodes, fold: foldConstants, pattern: replacePattern };

// ---- the generated code

function bodyOf(node) {
  const args = node.args.map((a) => (isNumber(a) ? a : a.name));
  if (node.op === "output") return `return ${args[0]}`;
  let right = `self.${node.target}` + (node.op === "call_module" ? `(${args[0]})` : "");
  if (node.op === "call_method") right = `${args[0]}.${node.target}(${args.slice(1).join(", ")})`;
  else if (node.target === "neg") right = `-${args[0]}`;
  else if (node.op === "call_function")
    right = Object.hasOwn(SIGNS, node.target) ? `${args[0]} ${node.target} ${args[1]}` : `${node.target}(${args.join(", ")})`;
  return `${node.name} = ${right}`;
}

// {name of a node: its line}, with the values that go behind their last use.
function codeOf(graph) {
  const freed = new Map(),
    seen = new Set();
  for (const node of [...graph.nodes].reverse()) {
    const last = [...new Set(node.args)].filter((a) => !isNumber(a) && !seen.has(a));
    last.forEach((a) => seen.add(a));
    freed.set(node, seen.has(node) ? last : [...last, node]);
  }
  const lines = {};
  for (const node of graph.nodes.filter(({ op }) => op !== "placeholder")) {
    const names = freed.get(node).map(({ name }) => `${name} = `);
    lines[node.name] = bodyOf(node) + (names.length && node.op !== "output" ? `;  ${names.join("")}None` : "");
  }
  return lines;
}

// ---- what there is to see

const drawnNode = ({ name, op, target, args }, state) => ({
  name, op, target, state, args: args.map((a) => (isNumber(a) ? { number: a } : { node: a.name })),
}); // prettier-ignore

// The nodes before and after a pass in one list: what has gone stays in its place, marked. old: names to bodies.
function mergedRows(before, after, old) {
  const rest = [...after],
    rows = [];
  const kept = new Set(after.map(({ name }) => name));
  for (const was of before) {
    if (!kept.has(was.name)) {
      rows.push({ ...was, state: "gone" });
      continue;
    }
    while (rest.length && rest[0].name !== was.name && !Object.hasOwn(old, rest[0].name)) rows.push(drawnNode(rest.shift(), "new"));
    if (rest.length && rest[0].name === was.name) {
      const node = rest.shift();
      rows.push(drawnNode(node, bodyOf(node) === old[node.name] ? "" : "changed"));
    }
  }
  return [...rows, ...rest.map((node) => drawnNode(node, "new"))];
}

const near = (a, b) => a.every((p, i) => Math.abs(p - b[i]) < 1e-6 * Math.max(1, Math.abs(p), Math.abs(b[i])));
function verdictOf(now, wanted) {
  if (now.error) return "fails";
  if (!near(now.value, wanted.value)) return "wrong";
  return now.inputs.every((one, i) => near(one, wanted.inputs[i])) ? "right" : "inputs";
}
// What it returns, or how it fails.
function outcomeOf(graph) {
  try {
    return runGraph(graph);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { error: error.message };
  }
}

const VERDICTS = {
  fails: (value, wanted, error) =>
    `${error}. The pattern fits numbers, too, and its replacement does not take them: this graph cannot run.`,
  right: (value) => `It still returns ${value}.`,
  inputs: (value) => `It returns ${value}, as the program does, but leaves other values in its inputs: a caller would see that.`,
  wrong: (value, wanted) => `It returns ${value}, and the program ${wanted}: this graph is wrong.`,
};

const model = (inputs) => {
  const { graph } = new FxTracer(inputs.program);
  const wanted = runGraph(new FxTracer(inputs.program, true).graph),
    traced = runGraph(graph);
  const text = (values) => arrayText({ shape: [3], values });
  const rows = graph.nodes.map((node) => drawnNode(node, ""));
  const steps = [{ title: "traced", nodes: rows, code: codeOf(graph), verdict: verdictOf(traced, wanted) }];
  const endings = { ...VERDICTS, right: (value) => `It returns ${value}.` };
  const said = endings[steps[0].verdict](text(traced.value), text(wanted.value));
  const say = [`The program as traced: ${plural(graph.nodes.length, "node")}. ${said}`];
  for (const kind of SLOTS.map((slot) => inputs[slot]).filter(Boolean)) {
    const before = steps.at(-1).nodes.filter(({ state }) => state !== "gone");
    const old = Object.fromEntries(graph.nodes.map((node) => [node.name, bodyOf(node)]));
    RUN_PASS[kind](graph);
    const now = outcomeOf(graph),
      verdict = verdictOf(now, wanted);
    steps.push({ title: PASSES[kind], nodes: mergedRows(before, graph.nodes, old), code: codeOf(graph), verdict });
    const [was, is] = steps.slice(-2).map(({ code }) => JSON.stringify(code));
    const ending = VERDICTS[verdict](now.error ? "" : text(now.value), text(wanted.value), now.error);
    const found = was === is ? "It found nothing. " : "";
    say.push(`After ${PASSES[kind]}: ${plural(graph.nodes.length, "node")}, before it ${before.length}. ${found}${ending}`);
  }
  return { steps, say };
};
