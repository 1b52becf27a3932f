// A small part of Python, one statement after the other: as import_programs.py.
const KEYWORDS = (
  "False None True and as assert async await break class continue def del elif else except finally for from global if import " +
  "in is lambda nonlocal not or pass raise return try while with yield"
).split(" ");
const BUILTINS = (
  "abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits " +
  "delattr dict dir display divmod enumerate eval exec execfile exit filter float format frozenset getattr globals hasattr hash " +
  "help hex id input int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow " +
  "print property quit range repr reversed round runfile set setattr slice sorted staticmethod str sum super tuple type vars zip " +
  "Ellipsis NotImplemented"
).split(" ");
const ALLOWED =
  "Known here are import, from … import, assignments, del, pass, print(…), def f(): and class A: with their body on the same " +
  "line, return, calls without arguments, whole numbers, strings and lists.";
const TOKEN =
  / *(?:(?<comment>#[^\n]*)|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<int>0|[1-9][0-9]{0,8})|(?<str>"[^"\\]*"|'[^'\\]*')|(?<sign>[.,;:=()[\]*])) */y;

const rootOf = (name) => name.split(".")[0];

class Parser {
  constructor(line, where) {
    this.line = line;
    this.where = where;
    this.at = 0;
    this.tokens = this.read();
  }
  read() {
    const found = [];
    for (TOKEN.lastIndex = 0; TOKEN.lastIndex < this.line.length; ) {
      const match = TOKEN.exec(this.line);
      if (!match) this.refuse();
      const [kind, word] = Object.entries(match.groups).find(([, text]) => text !== undefined);
      if (kind !== "comment") found.push({ kind, word });
    }
    return found;
  }
  refuse(words) {
    refuse(`${this.where}: ${words ?? `“${[...this.line].slice(0, 60).join("")}” is not known here. ${ALLOWED}`}`);
  }

  // ---- words
  nextIs(...words) {
    const token = this.tokens[this.at];
    return token !== undefined && ["name", "sign"].includes(token.kind) && words.includes(token.word);
  }
  take(...words) {
    if (!this.nextIs(...words)) return false;
    this.at += 1;
    return true;
  }
  want(word) {
    if (!this.take(word)) this.refuse();
  }
  name(attribute = false) {
    const { kind, word } = this.tokens[this.at] ?? {};
    if (kind !== "name" || KEYWORDS.includes(word)) this.refuse();
    if (word.startsWith("__") && word !== "__all__") this.refuse(`${word} is a name of Python's own.`);
    if (!attribute && BUILTINS.includes(word)) this.refuse(`${word} is a name of Python's own.`);
    this.at += 1;
    return word;
  }
  dotted() {
    const names = [this.name(true)];
    while (this.take(".")) names.push(this.name(true));
    return names.join(".");
  }

  // ---- expressions
  expression() {
    const { kind, word } = this.tokens[this.at] ?? {};
    let made;
    if (kind === "int" || kind === "str") {
      this.at += 1;
      if (kind === "int" && this.nextIs(".")) this.refuse();
      made = [kind, kind === "int" ? word : word.slice(1, -1)];
    } else if (this.take("[")) made = ["list", this.several("]")];
    else made = ["name", this.name()];
    while (this.nextIs(".", "(")) {
      if (this.take(".")) made = ["attribute", made, this.name(true)];
      else {
        this.want("(");
        this.want(")");
        made = ["call", made];
      }
    }
    return made;
  }
  several(end) {
    const found = [];
    while (!this.take(end)) {
      found.push(this.expression());
      if (!this.nextIs(end)) this.want(",");
    }
    return found;
  }

  // ---- statements
  statements(inside = "") {
    const found = [];
    while (this.at < this.tokens.length) {
      if (found.length && this.nextIs("def", "class")) this.refuse();
      found.push(this.statement(inside));
      if (this.at < this.tokens.length) this.want(";");
    }
    return found;
  }
  statement(inside) {
    if (inside !== "class") {
      for (const word of ["import", "from", ...(inside ? ["return"] : ["del", "def", "class"])])
        if (this.take(word)) return this[`read_${word}`](inside);
      if (this.nextIs("print") && this.tokens[this.at + 1]?.word === "(") {
        this.at += 2;
        return ["print", this.several(")")];
      }
    }
    if (this.take("pass")) return ["pass"];
    const made = this.expression();
    if (!this.take("=")) {
      if (inside === "class") this.refuse();
      return ["expression", made];
    }
    if (!["name", "attribute"].includes(made[0]) || (inside === "class" && made[0] !== "name")) this.refuse();
    return ["set", made, this.expression()];
  }
  read_import() {
    const wanted = [];
    while (!wanted.length || this.take(",")) {
      const name = this.dotted();
      wanted.push([name, this.take("as") ? this.name() : ""]);
    }
    if (wanted.some(([name, other]) => !other && BUILTINS.includes(rootOf(name)))) this.refuse();
    return ["import", wanted];
  }
  read_from(inside) {
    let level = 0;
    while (this.take(".")) level += 1;
    const name = level && this.nextIs("import") ? "" : this.dotted();
    this.want("import");
    if (this.nextIs("*") && !inside) {
      this.at += 1;
      return ["from", level, name, "*"];
    }
    const wanted = [];
    while (!wanted.length || this.take(",")) {
      const one = this.name();
      wanted.push([one, this.take("as") ? this.name() : ""]);
    }
    return ["from", level, name, wanted];
  }
  read_del() {
    const names = [this.name()];
    while (this.take(",")) names.push(this.name());
    return ["del", names];
  }
  read_return() {
    return ["return", this.expression()];
  }
  read_def() {
    const name = this.name();
    for (const sign of "():") this.want(sign);
    return ["def", name, this.body("def")];
  }
  read_class() {
    const name = this.name();
    let base = null;
    if (this.take("(") && !this.take(")")) {
      base = this.expression();
      this.want(")");
    }
    this.want(":");
    return ["class", name, base, this.body("class")];
  }
  body(inside) {
    const made = this.statements(inside);
    return made.length ? made : this.refuse();
  }
}

// [[line number, its statements]] of a module.
function parsed(module, words, longest) {
  const lines = words.split("\n");
  if (lines.length > longest) refuse(`${module} has more than ${longest} lines.`);
  const found = [];
  lines.forEach((line, i) => {
    const where = `${module}, line ${i + 1}`;
    if (/^[ \t]/.test(line) && /[^ \t]/.test(line))
      refuse(`${where} begins with a space: here a body stands on the line of its def or class.`);
    const statements = new Parser(line.replace(/ +$/, ""), where).statements();
    if (statements.length) found.push([i + 1, statements]);
  });
  return found;
}
