// The language of the graph explorer's programs: small arrays, and a parser that knows where each operand stands; as
// graph_programs.py.
const LARGEST = 1e9;
const MOST_ELEMENTS = 6;
const ALLOWED =
  "Allowed: a = torch.tensor([1., 2.], requires_grad=True), torch.ones(2) or torch.zeros(2); b = … of names, numbers, +, *, " +
  "parentheses, .exp(), .sin(), .tanh(), .relu(), .sum(), .clone(), .detach(), .data, .view(2, 3), [1] and [1:]; b += …; " +
  "b *= …; b.exp_() and the others; b.data += …; b.backward().";
const MAKERS = ["torch.tensor", "torch.ones", "torch.zeros"];
const POINTWISE = ["exp", "sin", "tanh", "relu"];
const INPLACE = POINTWISE.map((name) => `${name}_`);

// ---- arrays: a shape and its numbers in a row

function makeArray(shape, values) {
  if (!values.every((value) => Math.abs(value) < LARGEST))
    refuse("A number grows beyond 1,000,000,000: this figure draws smaller ones.");
  return { shape, values };
}

function zipped(a, b, operate) {
  const shape = broadcast(a.shape, b.shape);
  const left = partners(a.shape, shape),
    right = partners(b.shape, shape);
  return makeArray(shape, left.map((place, i) => operate(a.values[place], b.values[right[i]])));
}
const addArrays = (a, b) => zipped(a, b, (x, y) => x + y);
const mulArrays = (a, b) => zipped(a, b, (x, y) => x * y);
const expArray = (a) => makeArray(a.shape, a.values.map((x) => Math.exp(Math.min(x, 50))));
const circular = (operate) => (a) => {
  if (a.values.some((x) => Math.abs(x) > 100))
    refuse("A sine of more than 100 depends on digits that float32 does not have: this figure takes smaller ones.");
  return makeArray(a.shape, a.values.map(operate));
};
const [sinArray, cosArray] = [Math.sin, Math.cos].map(circular);
const tanhArray = (a) => makeArray(a.shape, a.values.map(Math.tanh));
const reluArray = (a) => makeArray(a.shape, a.values.map((x) => (x > 0 ? x : 0)));

// The sum of `a` over what was broadcast.
function summedTo(a, shape) {
  const values = Array(countOf(shape)).fill(0);
  partners(shape, a.shape).forEach((place, i) => (values[place] += a.values[i]));
  return makeArray(shape, values);
}

const put = (whole, first, part) => ({
  shape: whole.shape,
  values: whole.values.toSpliced(first, part.values.length, ...part.values),
});
const zerosOf = (shape) => makeArray(shape, Array(countOf(shape)).fill(0));

// At most four digits behind the point, in the same letters as Python's.
const digits4 = (x) => String(Math.floor(x * 1e4 + 0.5) / 1e4 + 0);

function arrayText({ shape, values }) {
  let parts = values.map(digits4);
  for (const size of [...shape].reverse())
    parts = Array.from({ length: parts.length / size }, (_, i) => `[${parts.slice(i * size, i * size + size).join(", ")}]`);
  return parts[0];
}

const inWords = (parts) =>
  parts.length < 3 ? parts.join(" and ") : `${parts.slice(0, -1).join(", ")} and ${parts.at(-1)}`;

// ---- the program as text

const TOKEN = / *(?:([0-9]+\.?[0-9]*|\.[0-9]+)|(torch\.(?:tensor|ones|zeros)\b|[a-z][a-z0-9_]*|True|False)|(\+=|\*=|[-+*=().,:[\]]))/y;

// Reads one line. A tree is { kind, … } with where it begins and ends in the line.
class LineParser {
  constructor(line, at) {
    this.at = at;
    this.tokens = [];
    let end = 0;
    while (end < line.replace(/ +$/, "").length) {
      TOKEN.lastIndex = end;
      const match = TOKEN.exec(line);
      if (!match) this.refuse(line.slice(end).replace(/^ +| +$/g, ""));
      const [, number, name, sign] = match;
      const word = number ?? name ?? sign;
      end = TOKEN.lastIndex;
      this.tokens.push({ kind: number ? "number" : name ? "name" : "sign", word, start: end - word.length, end });
    }
    this.left = [...this.tokens, { kind: "end", word: "", start: end, end }];
  }
  refuse(what = this.left[0].word) {
    const near = what ? `not known here: ${[...what].slice(0, 20).join("")}` : "something is missing at the end";
    refuse(`Line ${this.at + 1}, ${near}. ${ALLOWED}`);
  }
  next(...words) {
    return words.includes(this.left[0].word) && ["sign", "name"].includes(this.left[0].kind);
  }
  take(...words) {
    if (!this.next(...words)) this.refuse();
    return this.left.shift();
  }
  kind(kind) {
    if (this.left[0].kind !== kind) this.refuse();
    return this.left.shift();
  }
  // Of what has been read.
  get end() {
    return this.tokens[this.tokens.length - this.left.length].end;
  }

  statement() {
    const first = this.left[0];
    let found;
    if (first.kind === "name" && !MAKERS.includes(first.word) && ["=", "+=", "*="].includes(this.left[1].word)) {
      const name = this.left.shift().word,
        sign = this.left.shift().word;
      const value = sign === "=" && this.next(...MAKERS) ? this.leaf() : this.sum();
      found = { kind: { "=": "set", "+=": "add", "*=": "mul" }[sign], name, value };
    } else if (this.left[1]?.word === "." && this.left[2]?.word === "data" && ["+=", "*="].includes(this.left[3]?.word)) {
      const [name, , , sign] = this.left.splice(0, 4).map(({ word }) => word);
      found = { kind: sign === "+=" ? "data add" : "data mul", name, value: this.sum() };
    } else found = this.call(this.sum());
    if (this.left[0].kind !== "end") this.refuse();
    return found;
  }
  // A line that is no assignment: what it calls last.
  call(tree) {
    if (tree.kind === "method" && tree.name === "backward") return { kind: "backward", value: tree.inner, keep: tree.argument };
    if (["add_", "mul_", ...INPLACE].includes(tree.name) && tree.kind === "method" && tree.inner.kind === "name")
      return { kind: tree.name.slice(0, -1), name: tree.inner.name, value: tree.argument };
    refuse(`Line ${this.at + 1} is not one that this figure follows. ${ALLOWED}`);
  }
  leaf() {
    const maker = this.take(...MAKERS).word;
    this.take("(");
    let values = [],
      shape = [];
    if (maker !== "torch.tensor") {
      shape = [this.whole()];
      values = Array(Math.max(0, shape[0])).fill(maker === "torch.ones" ? "1." : "0.");
    } else if (this.next("[")) {
      this.take("[");
      values.push(this.signed());
      while (this.next(",")) {
        this.take(",");
        values.push(this.signed());
      }
      this.take("]");
      shape = [values.length];
    } else values.push(this.signed());
    let flag = this.next(",");
    if (flag) {
      for (const word of [",", "requires_grad", "="]) this.take(word);
      flag = this.take("True", "False").word === "True";
    }
    this.take(")");
    if (shape[0] < 1) refuse(`Line ${this.at + 1}: a tensor has at least one element here.`);
    if (!values.some((value) => value.includes(".")))
      refuse(`Line ${this.at + 1}: write a point, as in [1., 2.]; without one the tensor has integers.`);
    if (values.length > MOST_ELEMENTS) refuse(`Line ${this.at + 1}: a tensor has at most ${MOST_ELEMENTS} elements here.`);
    return { kind: "leaf", value: makeArray(shape, values.map(Number)), flag };
  }
  signed() {
    const minus = this.next("-") ? this.take("-").word : "";
    return minus + this.kind("number").word;
  }
  sum() {
    return this.binary("+", () => this.product());
  }
  product() {
    return this.binary("*", () => this.chain());
  }
  binary(sign, part) {
    const { start } = this.left[0];
    let tree = part();
    while (this.next(sign)) {
      this.take(sign);
      tree = { kind: sign === "+" ? "add" : "mul", left: tree, right: part(), start, end: this.end };
    }
    return tree;
  }
  chain() {
    const { start } = this.left[0];
    let tree;
    if (this.next("(")) {
      this.take("(");
      const inner = this.sum();
      this.take(")");
      tree = { kind: "group", inner };
    } else if (this.left[0].kind === "name") {
      if ([...MAKERS, "True", "False"].includes(this.left[0].word)) this.refuse();
      tree = { kind: "name", name: this.left.shift().word };
    } else tree = { kind: "number", value: Number(this.signed()) };
    Object.assign(tree, { start, end: this.end });
    while (this.next(".", "[")) {
      tree = this.next(".") ? this.method(tree) : this.index(tree);
      Object.assign(tree, { start, end: this.end });
    }
    return tree;
  }
  method(inner) {
    this.take(".");
    const name = this.kind("name").word;
    if (name === "data") return { kind: "data", inner };
    this.take("(");
    let argument = null;
    if (name === "view") {
      argument = [this.whole()];
      while (this.next(",")) {
        this.take(",");
        argument.push(this.whole());
      }
    } else if (name === "add_" || name === "mul_") argument = this.sum();
    else if (name === "backward") {
      argument = this.next("retain_graph");
      if (argument) {
        this.take("retain_graph");
        this.take("=");
        argument = this.take("True", "False").word === "True";
      }
    } else if (!["sum", "clone", "detach", ...POINTWISE, ...INPLACE].includes(name)) this.refuse(`.${name}()`);
    this.take(")");
    return { kind: "method", name, inner, argument };
  }
  whole() {
    const number = this.signed();
    if (number.includes(".") || number.length > 3) this.refuse(number);
    return Number(number) + 0;
  }
  index(inner) {
    this.take("[");
    const first = this.next(":") ? null : this.whole();
    if (this.next("]")) {
      this.take("]");
      return { kind: "select", inner, first };
    }
    this.take(":");
    const last = this.next("]") ? null : this.whole();
    this.take("]");
    if (first === null && last === null) refuse(`Line ${this.at + 1}: [:] takes everything. ${ALLOWED}`);
    return { kind: "slice", inner, first, last };
  }
}
