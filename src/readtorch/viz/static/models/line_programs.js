// Short programs that a reader types into a figure: as line_programs.py.

const LINE_TOKEN = / *(?:([0-9]+(?:\.[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/@=(),]))/y;
const withoutBlanks = (text) => text.replace(/^ +| +$/g, "");
function notKnown(language, what) {
  const said = what ? `Not known here: ${[...what].slice(0, 20).join("")}.` : "Something is missing at the end of a line.";
  refuse(`${said} ${language.allowed}`);
}

const isName = (word) => /^[A-Za-z_]/.test(word);
const isNumber = (tree) => tree.number !== undefined;

// Reads `name = expression`. A tree is { number: its text }, a name, or [operator, trees …].
class ProgramLine {
  constructor(line, language) {
    this.language = language;
    const text = line.replace(/ +$/, "");
    this.words = [];
    for (let at = 0; at < text.length; at = LINE_TOKEN.lastIndex) {
      LINE_TOKEN.lastIndex = at;
      const found = LINE_TOKEN.exec(text);
      if (!found) notKnown(language, withoutBlanks(text.slice(at)));
      this.words.push(found[1] ?? found[2] ?? found[3]);
    }
  }
  get next() {
    return this.words[0] ?? "";
  }
  take(word = null) {
    if (!this.words.length || (word !== null && word !== this.next)) notKnown(this.language, this.next);
    return this.words.shift();
  }
  statement() {
    const name = this.take();
    const { functions, reserved } = this.language;
    if (!isName(name) || Object.hasOwn(functions, name) || reserved.includes(name)) {
      if (!this.words.includes("=")) refuse(`A line gives its result a name: y = ${name}…`);
      refuse(`${name} is no name for a result here.`);
    }
    this.take("=");
    const tree = this.sum();
    if (this.words.length) notKnown(this.language, this.next);
    return [name, tree];
  }
  sum() {
    return this.signs("+-", () => this.product());
  }
  product() {
    return this.signs("*/@", () => this.unary());
  }
  signs(signs, part) {
    let tree = part();
    while (this.next && signs.includes(this.next)) tree = [this.take(), tree, part()];
    return tree;
  }
  unary() {
    if (this.next !== "-") return this.atom();
    this.take();
    const tree = this.unary();
    return isNumber(tree) ? { number: turned(tree.number) } : ["neg", tree];
  }
  atom() {
    if (this.next === "(") {
      this.take();
      const tree = this.sum();
      this.take(")");
      return tree;
    }
    const word = this.take();
    if (/^[0-9]/.test(word)) return { number: numberWord(word) };
    if (!isName(word)) notKnown(this.language, word);
    return this.next === "(" ? this.call(word) : word;
  }
  call(name) {
    if (!Object.hasOwn(this.language.functions, name)) notKnown(this.language, name);
    this.take("(");
    const tree = [name, this.sum()];
    for (let i = 0; i < this.language.functions[name]; i++) {
      this.take(",");
      tree.push(this.unary());
    }
    this.take(")");
    return tree;
  }
}

// As Python writes it: 2 and 2.0 are two numbers.
function numberWord(word) {
  if (word.length > 6) refuse(`${word}: a number has at most five digits here.`);
  const text = String(Number(word));
  return word.includes(".") && !text.includes(".") ? `${text}.0` : text;
}
const turned = (number) => (number.startsWith("-") ? number.slice(1) : number === "0" ? "0" : `-${number}`);

const operatorsOf = (tree) => (Array.isArray(tree) ? 1 + tree.slice(1).reduce((sum, part) => sum + operatorsOf(part), 0) : 0);
const namesIn = (tree) => (Array.isArray(tree) ? tree.slice(1).flatMap(namesIn) : typeof tree === "string" ? [tree] : []);

function readProgram(program, language) {
  const lines = program.split(";").filter(withoutBlanks).map((line) => new ProgramLine(line, language).statement()); // prettier-ignore
  if (!lines.length) notKnown(language, "");
  const count = lines.reduce((sum, [, tree]) => sum + operatorsOf(tree), 0);
  if (count > language.mostOperators) refuse(`At most ${language.mostOperators} operators, please.`);
  return lines;
}
