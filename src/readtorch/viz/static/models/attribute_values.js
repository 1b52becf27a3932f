// What the figure `attributes` reads, and the values that its expressions make: as attribute_values.py.

const REGISTER = ["register_buffer", "register_parameter", "add_module", "register_module"];
const STATEMENT = /(?:"[^"]*"|'[^']*'|[^;])+/gu;
const TOKEN =
  /[ \t]*(?:(?<text>"[^"\\\n]{0,24}"|'[^'\\\n]{0,24}')|(?<number>(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{0,8})?(?:e-?[0-9]{1,2})?(?![A-Za-z0-9_.]))|(?<name>[A-Za-z_][A-Za-z0-9_]*)|(?<sign>[.=()[\]{},:*+\-]))/uy;
const CONSTANTS = { None: "None", True: "bool", False: "bool" };
const WORDS =
  `and as assert async await break class continue def elif else except finally for from global if import in is lambda
  nonlocal not or pass raise return try while with yield`.split(/\s+/);
const MOST_TOKENS = 150;
const FACTORIES = ["ones", "zeros", "empty", "rand", "randn", "tensor"];
const CLOSING = { "[": ["]", "list"], "(": [")", "tuple"], "{": ["}", "set"] };
const WEIGHTS = ["weight", "bias"],
  RUNNING = ["running_mean", "running_var", "num_batches_tracked"];
const LAYERS = {
  Linear: ["linear", 2, 2, WEIGHTS, []],
  Identity: ["linear", 0, 0, [], []],
  Conv1d: ["conv", 3, 3, WEIGHTS, []],
  Conv2d: ["conv", 3, 3, WEIGHTS, []],
  BatchNorm1d: ["batchnorm", 1, 1, WEIGHTS, RUNNING],
  BatchNorm2d: ["batchnorm", 1, 1, WEIGHTS, RUNNING],
  LayerNorm: ["normalization", 1, 1, WEIGHTS, []],
  Embedding: ["sparse", 2, 2, ["weight"], []],
  Dropout: ["dropout", 0, 1, [], []],
  Flatten: ["flatten", 0, 0, [], []],
  ReLU: ["activation", 0, 0, [], []],
  Tanh: ["activation", 0, 0, [], []],
  Sigmoid: ["activation", 0, 0, [], []],
  GELU: ["activation", 0, 0, [], []],
  Module: ["module", 0, 0, [], []],
};
const CONTAINERS = ["ModuleList", "Sequential", "ModuleDict"];
const OPTIONAL_BIAS = ["Linear", "Conv1d", "Conv2d", "LayerNorm"];
const DICT_METHODS = ["clear", "items", "keys", "pop", "update", "values"];
const HOW =
  "Statements: m.x = a value, m.x, del m.x, setattr, getattr and delattr of m, m.register_buffer(…), m.register_parameter(…), " +
  "m.add_module(…), m.__init__(), m = nn.Module() and m = nn.Module.__new__(nn.Module). Values: numbers, texts, lists, " +
  "dictionaries, None, m, m.y, torch.ones(2), nn.Parameter(…), nn.Buffer(…) and layers such as nn.Linear(3, 4).";

const trimmed = (words) => words.replace(/^[ \t]+|[ \t]+$/g, "");
const statementsOf = (program) => (program.match(STATEMENT) ?? []).map(trimmed).filter(Boolean);
const isWhole = (words) => /^[0-9]+$/.test(words);

// ---- statements as trees: arrays of a kind and its parts

class Parser {
  constructor(statement) {
    this.statement = statement;
    this.tokens = [];
    let at = 0;
    while (at < statement.length) {
      TOKEN.lastIndex = at;
      const found = TOKEN.exec(statement);
      if (!found || WORDS.includes(found.groups.name)) this.refuse();
      this.tokens.push(Object.entries(found.groups).find(([, words]) => words !== undefined));
      at = TOKEN.lastIndex;
    }
    if (this.tokens.length > MOST_TOKENS) refuse(`A statement has at most ${MOST_TOKENS} words and signs here.`);
    this.at = 0;
  }
  refuse() {
    return refuse(`This figure cannot read “${this.statement}”. ${HOW}`);
  }
  peek(ahead = 0) {
    return this.tokens[this.at + ahead] ?? ["end", ""];
  }
  accept(words) {
    const found = this.peek()[1] === words;
    if (found) this.at += 1;
    return found;
  }
  expect(...several) {
    for (const words of several) if (!this.accept(words)) this.refuse();
  }
  take(kind) {
    const [found, words] = this.peek();
    if (found !== kind) this.refuse();
    this.at += 1;
    return words;
  }
  attribute() {
    const name = this.take("name");
    if (Object.hasOwn(CONSTANTS, name) || name === "del") this.refuse();
    return name;
  }
  end(...tree) {
    if (this.at < this.tokens.length) this.refuse();
    return tree;
  }

  // ---- statements

  parse() {
    const words = this.peek()[1];
    if (this.accept("del")) {
      this.expect("m", ".");
      return this.end("delete", this.attribute());
    }
    if (["setattr", "getattr", "delattr"].includes(words)) return this.function(words);
    if (words === "m" && this.peek(1)[1] === "=") return this.newModule();
    if (words === "m" && this.peek(2)[1] === "__init__") {
      this.expect("m", ".", "__init__", "(", ")");
      return this.end("initialize");
    }
    if (words === "m" && REGISTER.includes(this.peek(2)[1]) && this.peek(3)[1] === "(") return this.registration();
    const tree = this.sum();
    if (this.accept("=")) {
      if (!isOfM(tree)) this.refuse();
      return this.end("assign", tree[2], this.sum());
    }
    return this.end("expression", tree);
  }
  function(which) {
    this.expect(which, "(", "m", ",");
    const name = this.take("text").slice(1, -1),
      value = [];
    if (which === "setattr") {
      this.expect(",");
      value.push(this.sum());
    }
    this.expect(")");
    if (which === "getattr") return this.end("expression", ["attribute", ["m"], name]);
    return this.end(value.length ? "assign" : "delete", name, ...value);
  }
  newModule() {
    this.expect("m", "=", "nn", ".", "Module");
    if (this.accept(".")) {
      this.expect("__new__", "(", "nn", ".", "Module", ")");
      return this.end("new", false);
    }
    this.expect("(", ")");
    return this.end("new", true);
  }
  registration() {
    this.expect("m", ".");
    const method = this.take("name");
    this.expect("(");
    const name = this.take("text").slice(1, -1);
    this.expect(",");
    const value = this.sum();
    let persistent = true;
    if (method === "register_buffer" && this.accept(",")) {
      this.expect("persistent", "=");
      persistent = this.flag();
    }
    this.expect(")");
    return this.end("register", method, name, value, persistent);
  }
  flag() {
    const words = this.take("name");
    if (!["True", "False"].includes(words)) this.refuse();
    return words === "True";
  }

  // ---- expressions

  sum() {
    let tree = this.postfix();
    while (this.accept("*") || this.accept("+")) tree = ["computed", tree, this.postfix()];
    return tree;
  }
  postfix() {
    let tree = this.primary();
    for (;;) {
      if (this.accept(".")) {
        const name = this.attribute();
        if (["mul_", "add_"].includes(name) && this.accept("(")) {
          tree = ["in place", tree, this.sum()];
          this.expect(")");
        } else tree = ["attribute", tree, name];
      } else if (this.accept("[")) {
        tree = ["item", tree, Number(this.integer())];
        this.expect("]");
      } else return tree;
    }
  }
  integer() {
    const words = this.take("number");
    if (!isWhole(words)) this.refuse();
    return words;
  }
  primary() {
    const [kind, words] = this.peek();
    this.at += 1;
    if (kind === "text") return ["plain", "str", words];
    if (kind === "number" || words === "-") {
      const number = kind === "number" ? words : this.take("number");
      return ["plain", isWhole(number) ? "int" : "float", kind === "number" ? number : `-${number}`];
    }
    if (Object.hasOwn(CONSTANTS, words)) return ["plain", CONSTANTS[words], words];
    if (words === "m") return ["m"];
    if (words === "nn" || words === "torch") {
      this.expect(".");
      return this.call(words, this.attribute());
    }
    return Object.hasOwn(CLOSING, words) ? this.display(words) : this.refuse();
  }
  display(opening) {
    const [closing, kind] = CLOSING[opening];
    const items = [],
      keys = [];
    let commas = 0;
    while (!this.accept(closing)) {
      if (items.length > commas) this.refuse();
      const item = this.sum();
      items.push(item);
      if (opening === "{" && item[0] !== "plain") this.refuse();
      if (opening === "{" && this.accept(":")) {
        keys.push(item[2]);
        items[items.length - 1] = this.sum();
      }
      if (this.accept(",")) commas += 1;
    }
    if (opening === "(" && items.length === 1 && !commas) return items[0];
    if (opening === "{" && (keys.length || !items.length)) {
      if (keys.length !== items.length) this.refuse();
      return ["items", "dict", items, keys];
    }
    return ["items", kind, items, []];
  }
  call(library, name) {
    this.expect("(");
    const values = [],
      named = new Map();
    let commas = 0;
    while (!this.accept(")")) {
      if (values.length + named.size > commas) this.refuse();
      if (this.peek(1)[1] === "=") {
        const keyword = this.attribute();
        this.expect("=");
        if (named.has(keyword)) this.refuse();
        named.set(keyword, this.sum());
      } else if (named.size) this.refuse();
      else values.push(this.sum());
      if (this.accept(",")) commas += 1;
    }
    const known = library === "torch" ? FACTORIES : ["Parameter", "Buffer", ...Object.keys(LAYERS), ...CONTAINERS];
    if (!known.includes(name)) refuse(`This figure knows no ${library}.${name}, only ${library}.${known.join(", ")}.`);
    return ["call", `${library}.${name}`, values, named];
  }
}
const isOfM = (tree) => tree[0] === "attribute" && tree[1][0] === "m";

// ---- values

const valueOf = (kind, type, more = {}) => ({ kind, type, text: "", files: null, items: null, keys: null, sizes: null, requiresGrad: false, gradFn: false, number: 0, ...more });
const isModule = (value) => value.files !== null;
const isBuffer = (value) => ["Buffer", "Buffer, not saved"].includes(value.kind);
const isTensor = (value) => isBuffer(value) || ["Parameter", "tensor"].includes(value.kind);
const isNone = (value) => value.kind === "None";
const isListed = (value) => ["list", "tuple"].includes(value.kind);

const plainValue = (kind, text) => valueOf(kind, kind === "None" ? "NoneType" : kind, { text });
function moduleValue(kind, file, parameters = [], buffers = [], bias = true) {
  const own = (name) => (bias || name !== "bias" ? valueOf("Parameter", "torch.FloatTensor", { requiresGrad: true }) : plainValue("None", "None"));
  const held = (name) => valueOf("tensor", name === "num_batches_tracked" ? "torch.LongTensor" : "torch.FloatTensor");
  const made = (names, make) => new Map(names.map((name) => [name, make(name)]));
  const files = { _parameters: made(parameters, own), _buffers: made(buffers, held), _modules: new Map() };
  return valueOf(kind, `torch.nn.modules.${file}.${kind}`, { files });
}
const refuseCall = (name, takes) => refuse(`${name} takes ${takes} here.`);
function optionOf(name, named, keyword, atFirst) {
  if (!named.has(keyword)) return atFirst;
  const value = named.get(keyword);
  named.delete(keyword);
  if (value.kind !== "bool") refuseCall(name, `True or False as ${keyword}`);
  return value.text === "True";
}
function noMore(name, named) {
  if (named.size) refuse(`${name} takes no ${[...named.keys()][0]} here.`);
}
function layerOf(name, values, named) {
  const [file, fewest, most, parameters, buffers] = LAYERS[name];
  const called = `nn.${name}`;
  const bias = OPTIONAL_BIAS.includes(name) ? optionOf(called, named, "bias", true) : true;
  noMore(called, named);
  if (values.length < fewest || values.length > most) refuseCall(called, most ? `${most} ${most === 1 ? "number" : "numbers"}` : "no number");
  const isShare = (value) => ["int", "float"].includes(value.kind) && Number(value.text) >= 0 && Number(value.text) <= 1;
  const isSize = (value) => value.kind === "int" && Number(value.text) >= 1 && Number(value.text) <= 999;
  if (name === "Dropout") {
    if (!values.every(isShare)) refuseCall(called, "a number from 0 to 1");
  } else if (!values.every(isSize)) refuseCall(called, "whole numbers from 1 to 999");
  return moduleValue(name, file, parameters, buffers, bias);
}
function sizesOf(name, given) {
  const values = given.length === 1 && isListed(given[0]) ? given[0].items : given;
  const sized = values.every((value) => value.kind === "int" && Number(value.text) >= 0 && Number(value.text) <= 99);
  if (!sized || values.length < 1 || values.length > 4) refuseCall(name, "1 to 4 sizes, whole numbers up to 99,");
  return values.map((value) => Number(value.text));
}
function tensorType(values) {
  const kinds = new Set(values.map((value) => value.kind));
  if (kinds.size && [...kinds].every((kind) => kind === "int" || kind === "float")) return kinds.has("float") ? "torch.FloatTensor" : "torch.LongTensor";
  return kinds.size === 1 && kinds.has("bool") ? "torch.BoolTensor" : null;
}
function tensorOf(name, values) {
  if (values.length === 1) {
    const several = isListed(values[0]),
      numbers = several ? values[0].items : values,
      type = tensorType(numbers);
    if (type) return valueOf("tensor", type, { sizes: several ? [numbers.length] : [] });
  }
  return refuseCall(name, "a number, or a list of numbers that are all of a kind,");
}
