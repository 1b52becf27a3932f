// The language of the figure of nested transforms: a function of x, tensors as lists, and how PyTorch prints them; as
// transform_programs.py.
const ALLOWED = "Allowed: x, numbers, +, -, *, parentheses, sin, cos, exp and sum (x.sin() or torch.sin(x)), torch.dot(a, b).";
const TOKEN = / *([0-9]{1,3}(?:\.[0-9]{0,3})?(?![0-9.])|torch\.(?:dot|sin|cos|exp|sum)\(|\.(?:sin|cos|exp|sum)\(\)|x|\*\*|[-+*(),])/y;
const PLAIN_NUMBER = /^-?[0-9]{1,3}(\.[0-9]{0,3})?$/;

const stripSpaces = (text) => text.replace(/^ +| +$/g, "");

// Reads an expression as Python would: ["add", a, b], ["sin", a], ["x"], ["number", 2].
class FunctionParser {
  constructor(text) {
    const program = text.replace(/ +$/, "");
    this.left = [];
    let end = 0;
    while (end < program.length) {
      TOKEN.lastIndex = end;
      const match = TOKEN.exec(program);
      if (!match) refuse(`Not known here: ${[...stripSpaces(program.slice(end))].slice(0, 20).join("")}. ${ALLOWED}`);
      this.left.push(match[1]);
      end = TOKEN.lastIndex;
    }
    this.left.push("");
  }
  whole() {
    const tree = this.sum();
    if (this.left[0]) this.refuse();
    return tree;
  }
  refuse() {
    refuse(this.left[0] ? `Not known here: ${this.left[0]}. ${ALLOWED}` : `Something is missing at the end. ${ALLOWED}`);
  }
  take(word) {
    if (this.left[0] !== word) this.refuse();
    return this.left.shift();
  }
  sum() {
    return this.binary({ "+": "add", "-": "sub" }, () => this.product());
  }
  product() {
    return this.binary({ "*": "mul" }, () => this.signed());
  }
  binary(signs, part) {
    let tree = part();
    while (signs[this.left[0]]) tree = [signs[this.left.shift()], tree, part()];
    return tree;
  }
  // A minus before a number belongs to the number; before anything else it is an operator.
  signed() {
    if (this.left[0] !== "-" || PLAIN_NUMBER.test(this.left[1])) return this.chain();
    this.take("-");
    return ["neg", this.signed()];
  }
  chain() {
    const word = this.left[0];
    let tree;
    if (word === "(") {
      this.take("(");
      tree = this.sum();
      this.take(")");
    } else if (word === "torch.dot(") {
      this.take(word);
      const first = this.sum();
      this.take(",");
      tree = ["dot", first, this.sum()];
      this.take(")");
    } else if (word.startsWith("torch.")) {
      this.take(word);
      tree = [word.slice(6, -1), this.sum()];
      this.take(")");
    } else if (word === "x") {
      this.take("x");
      tree = ["x"];
    } else {
      const sign = word === "-" ? this.left.shift() : "";
      if (!PLAIN_NUMBER.test(this.left[0])) this.refuse();
      tree = ["number", Math.fround(Number(sign + this.left.shift()))];
    }
    while (this.left[0].startsWith(".") && this.left[0].endsWith("()")) tree = [this.left.shift().slice(1, -2), tree];
    return tree;
  }
}

// ---- tensors as lists

// Numbers with commas between.
function numbersOf(text, name) {
  const parts = text.replace(/^[[\] ]+|[[\] ]+$/g, "").split(",").map(stripSpaces); // prettier-ignore
  if (!parts.every((part) => PLAIN_NUMBER.test(part))) refuse(`${name} is numbers with commas between, such as 1, 0.5.`);
  return parts.map((part) => Math.fround(Number(part)));
}

const refuseList = (name) =>
  refuse(`${name} is a list of numbers, or of lists of one length, such as [[1, 2], [3, 4]].`);

// { shape, values } of a list such as [[1, 2], [3, 4]], or a number.
function nestedList(text, name) {
  const words = text.match(/[[\],]|[^[\], ]+/g) ?? [];
  const found = listItems(words, name);
  if (words.length) refuseList(name);
  return found;
}
function listItems(words, name) {
  if (!words.length) refuseList(name);
  const word = words.shift();
  if (PLAIN_NUMBER.test(word)) return { shape: [], values: [Math.fround(Number(word))] };
  if (word !== "[") refuseList(name);
  const parts = [listItems(words, name)];
  while (words[0] === ",") {
    words.shift();
    parts.push(listItems(words, name));
  }
  if (words.shift() !== "]" || parts.some(({ shape }) => !equal(shape, parts[0].shape))) refuseList(name);
  return { shape: [parts.length, ...parts[0].shape], values: parts.flatMap(({ values }) => values) };
}

// ---- printing

const signOf = (x) => (x < 0 || Object.is(x, -0) ? "-" : "");

// Four digits behind the point; a number of float32 times 10,000 is exact, and a tie goes to the even digit.
function fixed4(x) {
  const t = Math.abs(x) * 1e4;
  let n = Math.floor(t);
  if (t - n > 0.5 || (t - n === 0.5 && n % 2)) n += 1;
  return `${signOf(x)}${Math.floor(n / 1e4)}.${String(n % 1e4).padStart(4, "0")}`;
}
const exponent4 = (x) => signOf(x) + Math.abs(x).toExponential(4).replace(/e([+-])(\d)$/, "e$10$2");

function formatOf(values) {
  const sizes = values.filter((x) => x !== 0).map(Math.abs);
  const whole = values.every((x) => x === Math.floor(x));
  const most = Math.max(...sizes),
    least = Math.min(...sizes);
  if (sizes.length && (most / least > 1000 || most > 1e8 || (!whole && least < 1e-4))) return exponent4;
  return whole ? (x) => `${signOf(x)}${Math.abs(x)}.` : fixed4;
}

// A tensor of float32 as PyTorch prints it.
function printedTensor(shape, values) {
  const texts = values.map(formatOf(values));
  if (!shape.length) return `tensor(${texts[0]})`;
  const width = Math.max(...texts.map((text) => text.length));
  let rows = texts.map((text) => text.padStart(width));
  [...shape].reverse().forEach((size, depth) => {
    const between = depth === 0 ? ", " : "," + "\n".repeat(depth) + " ".repeat(7 + shape.length - depth);
    rows = Array.from({ length: rows.length / size }, (_, i) => `[${rows.slice(i * size, i * size + size).join(between)}]`);
  });
  return `tensor(${rows[0]})`;
}
