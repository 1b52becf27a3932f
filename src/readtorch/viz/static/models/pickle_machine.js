// The machine that runs a pickle, instruction by instruction: as figures/pickle_machine.py.
const [MOST_STEPS, STACK_SHOWN, MEMO_SHOWN, UNRUN_SHOWN] = [10000, 9, 6, 9];
const MAGIC_NUMBER = String(0x1950a86a20f9469cfc6cn);
// prettier-ignore
const PROGRAMS = {
  linear: String.raw`\x80\x02ccollections\nOrderedDict\nq\x00)Rq\x01(X\x06\x00\x00\x00weightq\x02ctorch._utils\n_rebuild_tensor_v2\nq\x03((X\x07\x00\x00\x00storageq\x04ctorch\nFloatStorage\nq\x05X\x01\x00\x00\x000q\x06X\x03\x00\x00\x00cpuq\x07K\x02tq\x08QK\x00K\x01K\x02\x86q\tK\x02K\x01\x86q\n\x89h\x00)Rq\x0btq\x0cRq\rX\x04\x00\x00\x00biasq\x0eh\x03((h\x04h\x05X\x01\x00\x00\x001q\x0fh\x07K\x01tq\x10QK\x00K\x01\x85q\x11K\x01\x85q\x12\x89h\x00)Rq\x13tq\x14Rq\x15u}q\x16X\t\x00\x00\x00_metadataq\x17h\x00)Rq\x18X\x00\x00\x00\x00q\x19}q\x1aX\x07\x00\x00\x00versionq\x1bK\x01sssb.`,
  views: String.raw`\x80\x02}q\x00(X\x03\x00\x00\x00allq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06K\x06tq\x07QK\x00K\x06\x85q\x08K\x01\x85q\t\x89ccollections\nOrderedDict\nq\n)Rq\x0btq\x0cRq\rX\x03\x00\x00\x00rowq\x0eh\x02((h\x03h\x04h\x05h\x06K\x06tq\x0fQK\x03K\x03\x85q\x10K\x01\x85q\x11\x89h\n)Rq\x12tq\x13Rq\x14u.`,
  class: String.raw`\x80\x02ctrain\nConfig\nq\x00)\x81q\x01}q\x02X\x05\x00\x00\x00widthq\x03K\x03sb.`,
  attack: String.raw`\x80\x02cposix\nsystem\nX\x08\x00\x00\x00rm -rf ~\x85R.`,
  old: String.raw`cposix\nsystem\n(S'rm -rf ~'\ntR.`,
  call: String.raw`\x80\x02X\x01\x00\x00\x00w)R.`,
  item: String.raw`\x80\x02ctorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x06tQK\x00K\x06\x85K\x01\x85\x89ccollections\nOrderedDict\n)RtRM@BK\x05s.`,
  loop: String.raw`\x80\x02]q\x00h\x00a.`,
};
const CONSTANTS = {
  "N": ["NONE", "NoneType", "None"],
  "\x88": ["NEWTRUE", "bool", "True"],
  "\x89": ["NEWFALSE", "bool", "False"],
}; // prettier-ignore
const EMPTY = { ")": ["EMPTY_TUPLE", "tuple"], "]": ["EMPTY_LIST", "list"], "}": ["EMPTY_DICT", "dict"], "\x8f": ["EMPTY_SET", "set"] };
const NUMBERS = {
  J: ["BININT", 4, (view) => String(view.getInt32(0, true))],
  K: ["BININT1", 1, (view) => String(view.getUint8(0))],
  M: ["BININT2", 2, (view) => String(view.getUint16(0, true))],
  G: ["BINFLOAT", 8, (view) => floatWords(view.getFloat64(0, false))],
};
const TEXTS = {
  X: ["BINUNICODE", 4, true, true],
  U: ["SHORT_BINSTRING", 1, true, true],
  "\x8c": ["SHORT_BINUNICODE", 1, true, false],
  C: ["SHORT_BINBYTES", 1, false, false],
  B: ["BINBYTES", 4, false, false],
};
const MEMO = { q: ["BINPUT", 1], r: ["LONG_BINPUT", 4], h: ["BINGET", 1], j: ["LONG_BINGET", 4] };
const TUPLES = { "\x85": 1, "\x86": 2, "\x87": 3 };
const CLASSES = { OrderedDict: "collections.OrderedDict", Counter: "collections.Counter" };
const NOT_CALLED = /^(torch\.(?!device)[a-z0-9_]+|torch\.(cuda\.)?[A-Za-z0-9]+Storage)$/; // dtypes and their like
// Of the functions on the list: at least, at most.
const ARGUMENTS = {
  "_codecs.encode": [1, 3],
  "builtins.bytearray": [0, 3],
  "builtins.complex": [0, 2],
  "builtins.set": [0, 1],
  "torch.Size": [0, 1],
  "torch.device": [1, 2],
  "torch._tensor._rebuild_from_type_v2": [4, 4],
  "torch._utils._rebuild_device_tensor_from_cpu_tensor": [4, 4],
  "torch._utils._rebuild_device_tensor_from_numpy": [4, 4],
  "torch._utils._rebuild_meta_tensor_no_storage": [4, 4],
  "torch._utils._rebuild_nested_tensor": [4, 4],
  "torch._utils._rebuild_parameter": [3, 3],
  "torch._utils._rebuild_parameter_with_state": [4, 4],
  "torch._utils._rebuild_qtensor": [7, 7],
  "torch._utils._rebuild_sparse_tensor": [2, 2],
  "torch._utils._rebuild_tensor": [4, 4],
  "torch._utils._rebuild_tensor_v2": [6, 7],
  "torch._utils._rebuild_tensor_v3": [7, 8],
  "torch._utils._rebuild_wrapper_subclass": [8, 8],
  "torch.serialization._get_layout": [1, 1],
};
const ON_STORAGES = ["torch._utils._rebuild_tensor", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_tensor_v3"];
const WHOLE_LINE = /^[ \t-\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9][0-9]*|0+)[ \t-\r]*$/;
const PLACE_LINE = /^[ \t-\r]*[+-]?[0-9]{1,15}[ \t-\r]*$/;
const REAL_LINE = /^[ \t-\r]*([+-]?)((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf|infinity|nan)[ \t-\r]*$/i;
const LONGEST_NUMBER = 4300;
const BACKSLASH = /\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|[^])/g;
const LETTERS = { a: "\x07", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t", v: "\v", "\\": "\\", "'": "'", '"': '"' };
const DICTS = ["dict", "OrderedDict", "Counter"];
const ITERABLE = ["tuple", "list", "set", "str", "bytes", ...DICTS];
const NUMERIC = ["bool", "int", "float"];
const ESCAPES = { "\\n": "\n", "\\r": "\r", "\\t": "\t", "\\\\": "\\", "\\'": "'", '\\"': '"' };
const ESCAPE = /\\x[0-9a-fA-F]{2}|\\[nrt\\'"]|[ -[\]-~]/y;

// ---- bytes as Python writes them

function readBytes(text) {
  const written = text.replace(/^b(['"])([^]*)\1$/, "$2");
  const found = [];
  for (let at = 0; at < written.length; ) {
    ESCAPE.lastIndex = at;
    const one = ESCAPE.exec(written);
    if (!one) refuse(`Bytes are written as Python writes them, such as \\x80\\x02K\\x05. Not understood: ${[...written.slice(at)].slice(0, 8).join("")}`);
    const [letters] = one;
    found.push(letters.startsWith("\\x") ? String.fromCharCode(parseInt(letters.slice(2), 16)) : (ESCAPES[letters] ?? letters));
    at += letters.length;
  }
  return found.join("");
}

// ---- values, of which only what is shown is there

const valueOf = (kind, { shown = "", items = [], name = "", text = "" } = {}) => ({ kind, shown, items, name, text, changed: "" });
const lastName = (name) => name.split(".").at(-1);

function several(items, depth, pairs = false) {
  let parts = items.slice(0, pairs ? 8 : 4).map((item) => valueWords(item, depth));
  if (pairs) parts = parts.filter((_, i) => i % 2 === 0).map((key, i) => `${key}: ${parts[2 * i + 1]}`);
  return parts.join(", ") + (items.length > (pairs ? 8 : 4) ? ", …" : "");
}
function valueWords(value, depth = 0) {
  if (value.kind === "global") return lastName(value.name);
  if (value.shown) return value.shown;
  if (depth > 2) return "…";
  const inside = several(value.items, depth + 1, DICTS.includes(value.kind));
  if (value.kind === "object") return madeWords(value, depth);
  if (value.kind === "list") return `[${inside}]`;
  if (value.kind === "tuple") return `(${inside}${value.items.length === 1 ? "," : ""})`;
  if (value.kind === "set") return value.items.length ? `{${inside}}` : "set()";
  return `${value.kind === "dict" ? "" : `${value.kind} `}{${inside}}${value.changed}`;
}
function madeWords(value, depth) {
  const args = value.items;
  if (lastName(value.name) === "_rebuild_tensor_v2" && args.length > 3 && args[0].kind === "storage")
    return `tensor ${valueWords(args[2], 2)} of ${args[0].shown}${value.changed}`;
  return `${lastName(value.name)}(${several(args, depth + 1)})${value.changed}`;
}
function cutWords(words, room = 64) {
  const letters = [...words];
  return letters.length <= room ? words : `${letters.slice(0, room - 1).join("")}…`;
}
function classOf(value) {
  if (value.kind === "object") return isTensor(value) ? "<class 'torch.Tensor'>" : `what ${lastName(value.name)} has made`;
  if (value.kind === "storage") return "<class 'torch.storage.TypedStorage'>";
  if (value.kind === "global") return valueWords(value);
  return `<class '${CLASSES[value.kind] ?? value.kind}'>`;
}
// Whether an object is made by a function or a class of the list that makes tensors, which are not parameters.
function isTensor(value) {
  const makes = value.name.startsWith("torch._utils._rebuild_") || value.name.endsWith("Tensor");
  return value.kind === "object" && ALLOWED.has(value.name) && makes && !isParameter(value);
}
const isParameter = (value) => value.kind === "object" && ALLOWED.has(value.name) && value.name.includes("arameter");

// What Python's `if` thinks of a value.
function isTrue(value) {
  if (NUMERIC.includes(value.kind)) return equalNumber(value) !== "0";
  if (value.kind === "str" || value.kind === "bytes") return value.text !== "";
  return value.kind !== "NoneType" && (!ITERABLE.includes(value.kind) || value.items.length > 0);
}
// Of a value that can be gone over; null otherwise.
function lengthOf(value) {
  if (!ITERABLE.includes(value.kind)) return null;
  return value.kind === "str" || value.kind === "bytes" ? [...value.text].length : elementsOf(value).length;
}
const hashable = (value) => (value.kind === "tuple" ? value.items.every(hashable) : !["list", "set", ...DICTS].includes(value.kind));

// What a number is equal to, as a text: True is 1, and 1 is 1.0. NaN is equal to nothing.
function equalNumber({ kind, shown }) {
  if (kind === "bool") return shown === "True" ? "1" : "0";
  if (kind === "int") return shown;
  const x = Number(shown.replace("inf", "Infinity"));
  if (Number.isNaN(x)) return NaN;
  return Number.isInteger(x) ? String(BigInt(x)) : String(x);
}
// Whether two keys are one to a dictionary.
function sameKey(one, other) {
  if (one === other) return true;
  if (NUMERIC.includes(one.kind) && NUMERIC.includes(other.kind)) return equalNumber(one) === equalNumber(other);
  if (one.kind !== other.kind) return false;
  if (one.kind === "tuple") return one.items.length === other.items.length && one.items.every((item, i) => sameKey(item, other.items[i]));
  if (one.kind === "str" || one.kind === "bytes") return one.text === other.text;
  return one.kind === "NoneType" || (one.kind === "global" && one.name === other.name);
}

function quotedText(text) {
  const characters = [...text];
  const hex = (c) => `\\x${c.codePointAt(0).toString(16).padStart(2, "0")}`;
  const seen = (c) => (/^[\ud800-\udfff]$/.test(c) ? `\\u${c.charCodeAt(0).toString(16)}` : c);
  const letters = characters.slice(0, 40).map((c) => (c < " " || c === "\x7f" ? hex(c) : seen(c)));
  return `'${letters.join("")}${characters.length > 40 ? "…" : ""}'`;
}
// A float as Python writes it.
function floatWords(x) {
  if (Number.isNaN(x)) return "nan";
  const sign = x < 0 || Object.is(x, -0) ? "-" : "";
  if (!Number.isFinite(x)) return `${sign}inf`;
  const [digits, power] = Math.abs(x).toExponential().split("e");
  if (Math.abs(x) >= 1e16 || (x !== 0 && Math.abs(x) < 1e-4))
    return `${sign}${digits}e${power[0]}${power.slice(1).padStart(2, "0")}`;
  return sign + (Number.isInteger(x) ? `${Math.abs(x)}.0` : String(Math.abs(x)));
}

// ---- the machine

class Halt extends Error {
  constructor(sentence, refused = true) {
    super(sentence);
    this.refused = refused;
  }
}
const halt = (sentence) => {
  throw new Halt(sentence);
};
const fail = (sentence) => {
  throw new Halt(sentence, false);
};
// The arguments of a call: for Python's machine a tuple, for torch.load's whatever one can go over.
function argumentsOf(value, strict) {
  if (!(strict ? ITERABLE : ["tuple"]).includes(value.kind)) fail(`TypeError: the arguments are not a tuple but ${classOf(value)}.`);
  return elementsOf(value);
}
// What one gets who goes over a value.
function elementsOf(value) {
  if (value.kind === "str" || value.kind === "bytes") return value.shown.replace(/^[b']+|[b']+$/g, "") ? [valueOf("str", { shown: "…" })] : [];
  return DICTS.includes(value.kind) ? value.items.filter((_, i) => i % 2 === 0) : value.items;
}
const countedWords = (n, word = "value") => `${commas(n)} ${word}${n === 1 ? "" : "s"}`;
const bytesOf = (characters) => Uint8Array.from(characters, (c) => c.charCodeAt(0));

function decodedText(characters) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytesOf(characters));
  } catch {
    return fail("UnicodeDecodeError: this is not UTF-8.");
  }
}
function putItem(items, key, value) {
  if (!hashable(key)) fail(`TypeError: unhashable type: '${key.kind}'.`);
  for (let i = 0; i < items.length; i += 2)
    if (sameKey(items[i], key)) {
      items[i + 1] = value;
      return;
    }
  items.push(key, value);
}
function putItems(target, items) {
  for (let i = 0; i < items.length; i += 2) putItem(target, items[i], items[i + 1]);
}

// A text with its backslashes read, as between Python's quotes.
function unescapedText(letters) {
  if (letters.replace(BACKSLASH, "").endsWith("\\")) fail("ValueError: a backslash stands at the end.");
  return letters.replace(BACKSLASH, (_, after) => escapedLetter(after));
}
function escapedLetter(after) {
  if (after === "x") fail("ValueError: two hexadecimal digits must follow.");
  if (after[0] === "x") return String.fromCharCode(parseInt(after.slice(1), 16));
  return /^[0-7]/.test(after) ? String.fromCharCode(parseInt(after, 8) & 255) : (LETTERS[after] ?? `\\${after}`);
}
// A text in which only backslash u and U mean something.
function rawUnicode(letters) {
  return letters.replace(/\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[^])/g, (all, after) => {
    if (after[0] !== "u" && after[0] !== "U") return all;
    const code = parseInt(after.slice(1), 16);
    return code <= 0x10ffff ? String.fromCodePoint(code) : fail("UnicodeDecodeError: there is no such character."); // and NaN is none
  });
}

// Whether a name of the list is that of a class.
const isClassName = (name) => !NOT_CALLED.test(name) && !["encode", "_get_layout"].includes(lastName(name)) && !name.includes("_rebuild");

// Whether something of this name can be called with so many arguments.
function checkCall(name, items) {
  if (NOT_CALLED.test(name) && ALLOWED.has(name)) fail(`TypeError: ${name} cannot be called.`);
  const isDict = Object.values(CLASSES).includes(name);
  const good = items.every((item) => DICTS.includes(item.kind) || (["tuple", "list", "set"].includes(item.kind) && !item.items.length));
  if (isDict && (items.length > 1 || !good)) fail(`TypeError: ${name} takes one dictionary.`);
  const [least, most] = ARGUMENTS[name] ?? [0, items.length];
  if (items.length < least || items.length > most) {
    const some = least === most ? `${most}` : `${least} ${most - least === 1 ? "or" : "to"} ${most}`;
    fail(`TypeError: ${lastName(name)} takes ${some} argument${some === "1" ? "" : "s"}, not ${items.length}.`);
  }
  if (ON_STORAGES.includes(name) && items[0].kind !== "storage")
    fail(`TypeError: ${lastName(name)} begins with a storage, not with ${cutWords(valueWords(items[0]))}.`);
  if (name === "builtins.set" && items.length && !(ITERABLE.includes(items[0].kind) && elementsOf(items[0]).every(hashable)))
    fail("TypeError: a set cannot be made of this.");
}

// ---- BUILD

// A tensor's own method gets the state: in torch.load's machine `set_`, if it is no parameter.
function buildTensor(instance, state, method) {
  const isSet = method === "set_";
  const items = isSet && ITERABLE.includes(state.kind) ? elementsOf(state) : state.items;
  const kinds = isSet ? ITERABLE : ["tuple", "list"];
  const counts = isSet ? [0, 1, 3, 4] : [3, 4, 5]; // three are requires_grad, something unused and hooks, four for `set_`, five for a parameter
  const begins = (!isSet && { 3: ["bool"], 5: ["object"] }[items.length]) || ["storage", "object"];
  if (!kinds.includes(state.kind) || !counts.includes(items.length) || (items.length && !begins.includes(items[0].kind)))
    fail(`TypeError: ${method} of a tensor does not take ${cutWords(valueWords(state))}.`);
  instance.changed = ` after ${method}`;
  return `Call ${method} of the tensor with ${cutWords(`(${several(items, 1)})`)}.`;
}
// Whether attributes can be set so: by Python's machine from dictionaries alone, by torch.load's also from pairs.
function checkState(instance, whole, strict) {
  const isPair = whole.kind === "tuple" && whole.items.length === 2 && !(strict && instance.kind === "OrderedDict");
  const [state, slots] = isPair ? whole.items : [whole, null];
  const wanted = strict ? instance.kind === "OrderedDict" || isTrue(state) : state.kind !== "NoneType";
  if (wanted) (strict ? checkUpdate : checkDictionary)(state);
  if (slots && (isTrue(slots) || !strict)) {
    checkDictionary(slots);
    if (elementsOf(slots).some((key) => key.kind !== "str")) fail("TypeError: attribute name must be string.");
  }
  if (!["OrderedDict", "Counter", "storage"].includes(instance.kind) && (wanted || (slots && isTrue(slots))))
    fail(`AttributeError: ${classOf(instance)} takes no attributes.`);
}
function checkDictionary(state) {
  if (![...DICTS, "object"].includes(state.kind)) fail(`UnpicklingError: state is not a dictionary, but ${cutWords(valueWords(state))}.`);
}
// Whether a dictionary can be updated with it.
function checkUpdate(state) {
  if ([...DICTS, "object"].includes(state.kind)) return;
  if (!ITERABLE.includes(state.kind)) fail(`TypeError: ${classOf(state)} is not iterable.`);
  const isText = state.kind === "str" || state.kind === "bytes";
  const pairs = isText ? !state.text : state.items.every((item) => ["object", "storage"].includes(item.kind) || lengthOf(item) === 2);
  if (!pairs) fail(`TypeError: attributes are set from a dictionary, or from pairs, not from ${cutWords(valueWords(state))}.`);
  if (!state.items.every((item) => !lengthOf(item) || hashable(elementsOf(item)[0]))) fail("TypeError: unhashable type.");
}

// The instructions behind the one at `start`, at which a machine has stopped: read, and not run.
function unrunFrom(data, start) {
  const reader = Object.assign(new PickleMachine(data, false), { at: start });
  const found = [];
  while (found.length <= UNRUN_SHOWN) {
    const at = reader.at;
    Object.assign(reader, { name: "", argument: "" });
    try {
      const code = reader.take(1);
      if (code === ".") return [...found, { at, name: "STOP", argument: "" }].slice(1);
      reader.step(code);
    } catch (error) {
      if (!(error instanceof Halt)) throw error;
      if (error.message.startsWith("EOFError") || reader.name.startsWith("code ")) break;
    }
    found.push({ at, name: reader.name, argument: cutWords(reader.argument, 80) });
  }
  return found.slice(1);
}

class PickleMachine {
  constructor(data, strict) {
    Object.assign(this, { data, strict, at: 0, stack: [], memo: new Map(), touched: [], name: "", argument: "", runs: false });
  }

  // -- reading
  take(count) {
    if (this.at + count > this.data.length) {
      this.at = this.data.length;
      fail("EOFError: the program breaks off.");
    }
    this.at += count;
    return this.data.slice(this.at - count, this.at);
  }
  unsigned(count) {
    return bytesOf(this.take(count)).reduceRight((sum, byte) => sum * 256 + byte, 0);
  }
  line() {
    const end = this.data.indexOf("\n", this.at) + 1 || this.data.length;
    return this.take(end - this.at).slice(0, -1);
  }

  // -- the stack
  top() {
    if (!this.stack.length || this.stack.at(-1).kind === "mark") fail("IndexError: there is nothing on the stack to take.");
    return this.stack.at(-1);
  }
  pop() {
    this.top();
    return this.stack.pop();
  }
  last(count) {
    return Array.from({ length: count }, () => this.pop()).reverse();
  }
  sinceMark() {
    const mark = this.stack.findLastIndex((value) => value.kind === "mark");
    if (mark < 0) fail("IndexError: there is no mark on the stack.");
    return this.stack.splice(mark).slice(1);
  }
  push(value) {
    this.stack.push(value);
    return `Push ${cutWords(valueWords(value))}.`;
  }

  // -- instructions: each returns its sentence
  step(code) {
    if (code in CONSTANTS) {
      const [name, kind, shown] = CONSTANTS[code];
      this.name = name;
      return this.push(valueOf(kind, { shown }));
    }
    if (code in EMPTY) {
      const [name, kind] = EMPTY[code];
      this.name = name;
      this.push(valueOf(kind));
      return `Push an empty ${kind}.`;
    }
    if (code in NUMBERS) return this.number(code, ...NUMBERS[code]);
    if (code in TEXTS && (TEXTS[code][3] || !this.strict)) return this.text(...TEXTS[code]);
    if (code in MEMO) return this.remember(...MEMO[code]);
    if (code in TUPLES) {
      const count = TUPLES[code];
      this.name = `TUPLE${count}`;
      this.push(valueOf("tuple", { items: this.last(count) }));
      return count > 1 ? `Make a tuple of the top ${count} of the stack.` : "Make a tuple of the top of the stack.";
    }
    const found = COMMON[code] ?? (this.strict ? undefined : NEWER[code]);
    if (found) {
      this.name = found[0];
      return this[found[1]]();
    }
    this.name = `code ${code.charCodeAt(0)}`;
    if (this.strict) halt(`Unsupported operand ${code.charCodeAt(0)}`);
    return fail("The figure does not know this instruction.");
  }
  number(code, name, size, read) {
    this.name = name;
    this.argument = read(new DataView(bytesOf(this.take(size)).buffer));
    return this.push(valueOf(code === "G" ? "float" : "int", { shown: this.argument }));
  }
  long() {
    const data = bytesOf(this.take(this.unsigned(1)));
    const whole = data.reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n);
    this.argument = String(BigInt.asIntN(8 * data.length, whole));
    const said = this.push(valueOf("int", { shown: this.argument }));
    const old = " With this number begins a file of several pickles, as torch.save wrote them before 1.6.";
    return this.argument === MAGIC_NUMBER ? said + old : said;
  }
  text(name, width, isText) {
    this.name = name;
    const data = this.take(this.unsigned(width));
    return isText ? this.pushText(decodedText(data)) : this.pushText(data, "bytes", "b");
  }
  pushText(text, kind = "str", before = "") {
    this.argument = before + quotedText(text);
    return this.push(valueOf(kind, { shown: this.argument, text }));
  }
  remember(name, width) {
    this.name = name;
    const place = this.unsigned(width);
    return name.includes("PUT") ? this.keep(place) : this.recall(place);
  }
  recall(place) {
    this.argument = String(place);
    if (!this.memo.has(place)) fail(`KeyError: memo ${place} is empty.`);
    this.touch(place);
    this.push(this.memo.get(place));
    return `Push memo ${place} again: ${cutWords(valueWords(this.memo.get(place)))}.`;
  }
  keep(place) {
    this.argument = String(place);
    this.memo.set(place, this.top());
    this.touch(place);
    return `Keep the top of the stack as memo ${place}.`;
  }
  touch(place) {
    this.touched = [...this.touched.filter((p) => p !== place).slice(-MEMO_SHOWN), place];
  }
  memoize() {
    return this.keep(this.memo.size);
  }
  protocol() {
    this.argument = String(this.unsigned(1));
    if (!this.strict && Number(this.argument) > 5) fail(`ValueError: unsupported pickle protocol: ${this.argument}.`);
    return `The program is of protocol ${this.argument}.`;
  }
  frame() {
    const bytes = bytesOf(this.take(8));
    this.argument = String(bytes.reduceRight((sum, byte) => sum * 256n + BigInt(byte), 0n));
    return `The next ${this.argument} bytes belong together.`;
  }
  mark() {
    this.stack.push(valueOf("mark", { shown: "mark" }));
    return "Put a mark on the stack.";
  }
  tuple() {
    const items = this.sinceMark();
    this.push(valueOf("tuple", { items }));
    return `Make a tuple of the ${countedWords(items.length)} above the mark.`;
  }
  append() {
    return this.extend(this.last(1), "append to");
  }
  appends() {
    return this.extend(this.sinceMark(), "extend");
  }
  extend(items, what) {
    const target = this.top();
    if (target.kind === "list") {
      target.items.push(...items);
      return `Put ${countedWords(items.length)} into the list.`;
    }
    if (this.strict) halt(`Can only ${what} lists, but got ${classOf(target)}`);
    if (target.kind !== "object") fail(`AttributeError: ${classOf(target)} has no append.`);
    this.runs = true;
    return `Call the append of ${classOf(target)}, whatever it does.`;
  }
  addItems() {
    const items = this.sinceMark();
    const target = this.top();
    if (target.kind !== "set" && target.kind !== "object") fail(`AttributeError: ${classOf(target)} has no add.`);
    target.items.push(...items);
    return `Put ${countedWords(items.length)} into the set.`;
  }
  setItem() {
    return this.setAll("SETITEM", this.last(2));
  }
  setItems() {
    return this.setAll("SETITEMS", this.sinceMark());
  }
  setAll(name, items) {
    const target = this.top();
    const isDict = DICTS.includes(target.kind);
    if (!isDict && this.strict) halt(`Can only ${name} for dict, collections.OrderedDict, collections.Counter, but got ${classOf(target)}`);
    if (items.length % 2) fail("IndexError: a key has no value.");
    if (!isDict) {
      if (items.length && target.kind !== "object" && target.kind !== "storage") fail(`TypeError: ${classOf(target)} takes no items here.`);
      this.runs = items.length > 0;
      return `Call the __setitem__ of ${classOf(target)}, whatever it does.`;
    }
    putItems(target.items, items);
    return `Put ${countedWords(items.length / 2, "item")} into the dictionary.`;
  }
  fetch() {
    const [module, name] = [this.line(), this.line()];
    return this.fetched(decodedText(module), decodedText(name));
  }
  stackGlobal() {
    const [module, name] = this.last(2);
    if (module.kind !== "str" || name.kind !== "str") fail("STACK_GLOBAL needs two texts.");
    return this.fetched(module.text, name.text);
  }
  fetched(written, name) {
    const module = { __builtin__: "builtins", copy_reg: "copyreg" }[written] ?? written;
    const full = `${module}.${name}`;
    this.argument = full;
    if (this.strict) {
      if (NEVER.includes(module)) halt(`Trying to load unsupported GLOBAL ${full} whose module ${module} is blocked.`);
      const short = full.startsWith("builtins.") ? full.slice(9) : full;
      if (!ALLOWED.has(full)) halt(`Unsupported global: GLOBAL ${short} was not an allowed global by default.`);
    }
    this.stack.push(valueOf("global", { name: full }));
    return this.strict ? `${full} is on the list: push it.` : `Import ${module}, and push its ${name}.`;
  }
  reduce() {
    const [args] = this.last(1);
    const called = this.top();
    if (called.kind !== "global") {
      if (this.strict) halt(`Trying to call reduce for unrecognized function ${cutWords(valueWords(called))}`);
      fail(`TypeError: ${classOf(called)} cannot be called.`);
    }
    const items = argumentsOf(args, this.strict);
    checkCall(called.name, items);
    this.stack.pop();
    return this.called(called.name, items);
  }
  called(name, args) {
    if (Object.values(CLASSES).includes(name))
      this.stack.push(valueOf(lastName(name), { items: args.length && DICTS.includes(args[0].kind) ? [...args[0].items] : [] }));
    else if (name === "builtins.set") this.stack.push(valueOf("set", { items: args.length ? [...elementsOf(args[0])] : [] }));
    else this.stack.push(valueOf("object", { items: args, name }));
    this.runs = !ALLOWED.has(name);
    const withArgs = cutWords(`(${several(args, 1)})`);
    return `Call ${name} with ${withArgs}${this.runs ? ": it runs, whatever it does." : "."}`;
  }
  newObject() {
    const [args] = this.last(1);
    const [madeOf] = this.last(1);
    if (madeOf.kind !== "global") {
      if (this.strict)
        halt("Can only create new object for nn.Parameter or classes allowlisted via " +
          `\`add_safe_globals\` but got ${cutWords(valueWords(madeOf))}`); // prettier-ignore
      fail(`TypeError: ${classOf(madeOf)} is not a class.`);
    }
    if (ALLOWED.has(madeOf.name) && !isClassName(madeOf.name)) fail(`TypeError: ${madeOf.name} is not a class.`);
    const items = argumentsOf(args, this.strict);
    this.called(madeOf.name, [...Object.values(CLASSES), "builtins.set"].includes(madeOf.name) ? [] : items);
    return `Make a ${madeOf.name} without calling its __init__.`;
  }
  build() {
    const [state] = this.last(1);
    const instance = this.top();
    if (this.strict && !["OrderedDict", "Counter", "set", "object", "storage"].includes(instance.kind))
      halt("Can only build Tensor, Parameter, OrderedDict or types allowlisted via " +
        `\`add_safe_globals\`, but got ${classOf(instance)}`); // prettier-ignore
    if (isTensor(instance) || isParameter(instance)) return buildTensor(instance, state, this.strict && isTensor(instance) ? "set_" : "__setstate__");
    this.runs = instance.kind === "object" && !ALLOWED.has(instance.name);
    if (instance.kind !== "object") checkState(instance, state, this.strict);
    if (!this.runs && !isTrue(state)) return "There are no attributes to set.";
    instance.changed = " with attributes";
    const how = this.runs ? "Call its __setstate__, or set attributes" : "Set attributes";
    return `${how}: ${cutWords(valueWords(state))}.`;
  }
  persistent() {
    const [pid] = this.last(1);
    if (this.strict && !["tuple", "int"].includes(pid.kind)) halt(`persistent_load id must be tuple or int, but got ${classOf(pid)}`);
    const first = pid.kind === "tuple" && pid.items.length ? pid.items[0] : null;
    if (this.strict && first && first.shown !== "'storage'") halt(`Only persistent_load of storage is allowed, but got ${classOf(first)}`);
    if (pid.kind !== "tuple" || pid.items.length !== 5) fail("The reader expects ('storage', type, key, location, number of elements).");
    const [, kind, key, , count] = pid.items.map((item) => valueWords(item));
    const name = (kind.endsWith("Storage") ? kind.slice(0, -7) : kind).toLowerCase();
    this.stack.push(valueOf("storage", { shown: `storage ${key} (${count} ${name})` }));
    return `Ask the reader for the object that is meant: storage ${key}.`;
  }
  drop() {
    if (this.stack.at(-1)?.kind === "mark") {
      this.stack.pop();
      return "Take the mark off the stack.";
    }
    this.last(1);
    return "Take the top off the stack.";
  }
  dropToMark() {
    this.sinceMark();
    return "Take everything above the mark off the stack.";
  }
  double() {
    return this.push(this.top());
  }

  // -- of protocol 0, where operands are lines of text
  integerLine() {
    const line = this.line();
    if (line !== "00" && line !== "01") return this.whole(line);
    this.argument = line === "01" ? "True" : "False";
    return this.push(valueOf("bool", { shown: this.argument }));
  }
  longLine() {
    return this.whole(this.line().replace(/L$/, ""));
  }
  whole(line) {
    const found = line.length <= LONGEST_NUMBER && line.match(WHOLE_LINE);
    if (!found) return fail("ValueError: this is not a whole number.");
    this.argument = String(found[1] === "-" ? -BigInt(found[2]) : BigInt(found[2]));
    return this.push(valueOf("int", { shown: this.argument }));
  }
  floatLine() {
    const found = this.line().match(REAL_LINE);
    if (!found) return fail("ValueError: this is not a number.");
    const named = { inf: Infinity, infinity: Infinity, nan: NaN }[found[2].toLowerCase()];
    const number = (found[1] === "-" ? -1 : 1) * (named ?? Number(found[2]));
    if (named === undefined && !Number.isFinite(number)) fail("OverflowError: the number is too large for a float.");
    this.argument = floatWords(number);
    return this.push(valueOf("float", { shown: this.argument }));
  }
  stringLine() {
    const line = this.line();
    if (line.length < 2 || line[0] !== line.at(-1) || !"'\"".includes(line[0])) fail("The text of STRING must stand in quotes.");
    return this.pushText(decodedText(unescapedText(line.slice(1, -1))));
  }
  unicodeLine() {
    return this.pushText(rawUnicode(this.line()));
  }
  dictLine() {
    const items = this.sinceMark();
    const found = [];
    if (items.length % 2) fail("IndexError: a key has no value.");
    putItems(found, items);
    this.push(valueOf("dict", { items: found }));
    return `Make a dictionary of the ${countedWords(items.length)} above the mark.`;
  }
  listLine() {
    const items = this.sinceMark();
    this.push(valueOf("list", { items }));
    return `Make a list of the ${countedWords(items.length)} above the mark.`;
  }
  place() {
    const line = this.line();
    if (!PLACE_LINE.test(line)) fail("ValueError: this is not a memo's number.");
    return Number(line) || 0;
  }
  putLine() {
    const place = this.place();
    if (place < 0) fail("ValueError: a memo's number is negative.");
    return this.keep(place);
  }
  getLine() {
    return this.recall(this.place());
  }
  instance() {
    const [module, name] = [this.line(), this.line()];
    this.fetched(decodedText(module), decodedText(name));
    const called = this.stack.pop();
    return this.instantiate(called, this.sinceMark());
  }
  object() {
    const items = this.sinceMark();
    if (!items.length) fail("IndexError: there is nothing to call.");
    return this.instantiate(items[0], items.slice(1));
  }
  instantiate(called, items) {
    if (called.kind !== "global") fail(`TypeError: ${classOf(called)} cannot be called.`);
    checkCall(called.name, items);
    return this.called(called.name, items);
  }

  // -- running
  one() {
    const code = this.take(1);
    if (code !== ".") return ["ok", this.step(code)];
    this.name = "STOP";
    return ["done", `Done. The result is ${cutWords(valueWords(this.pop()), 200)}.${this.behind()}`];
  }
  behind() {
    const rest = this.data.length - this.at;
    return rest ? ` The program ends here; ${countedWords(rest, "byte")} behind it belong to something else.` : "";
  }
  run() {
    const steps = [],
      say = [];
    while (steps.length < MOST_STEPS) {
      const start = this.at;
      Object.assign(this, { name: "", argument: "", runs: false });
      let state, sentence;
      try {
        [state, sentence] = this.one();
      } catch (error) {
        if (!(error instanceof Halt)) throw error;
        state = error.refused ? "refused" : "error";
        sentence = (error.refused ? "Refused. " : "") + error.message;
      }
      if (this.runs) state = "runs";
      if (state === "done" && steps.some((step) => step.state === "runs"))
        sentence += " Python has run what is marked; here nothing ran.";
      steps.push(this.seen(start, state));
      const title = [this.name, this.argument].filter(Boolean).join(" ");
      say.push(`Byte ${commas(start)}${title ? `, ${title}` : ""}: ${sentence}`);
      if (["done", "refused", "error"].includes(state)) return { steps, say };
    }
    say[say.length - 1] += ` The figure shows no more than ${commas(MOST_STEPS)} instructions.`;
    return { steps, say };
  }
  seen(start, state) {
    const memo = this.touched.slice(-MEMO_SHOWN).sort((a, b) => a - b);
    return {
      at: start,
      end: this.at,
      name: this.name,
      argument: cutWords(this.argument, 80),
      state,
      stack: this.stack.slice(-STACK_SHOWN).map((value) => ({ mark: value.kind === "mark", words: cutWords(valueWords(value)) })),
      deeper: Math.max(0, this.stack.length - STACK_SHOWN),
      memo: memo.map((place) => [place, cutWords(valueWords(this.memo.get(place)), 40)]),
      kept: this.memo.size,
    };
  }
}

const COMMON = {
  "\x8a": ["LONG1", "long"],
  "\x80": ["PROTO", "protocol"],
  "(": ["MARK", "mark"],
  t: ["TUPLE", "tuple"],
  a: ["APPEND", "append"],
  e: ["APPENDS", "appends"],
  s: ["SETITEM", "setItem"],
  u: ["SETITEMS", "setItems"],
  c: ["GLOBAL", "fetch"],
  R: ["REDUCE", "reduce"],
  "\x81": ["NEWOBJ", "newObject"],
  b: ["BUILD", "build"],
  Q: ["BINPERSID", "persistent"],
};
// Of later protocols, and old ones that no checkpoint has: Python's machine alone knows them.
const NEWER = {
  "\x95": ["FRAME", "frame"],
  "\x93": ["STACK_GLOBAL", "stackGlobal"],
  "\x94": ["MEMOIZE", "memoize"],
  "\x90": ["ADDITEMS", "addItems"],
  0: ["POP", "drop"],
  1: ["POP_MARK", "dropToMark"],
  2: ["DUP", "double"],
  I: ["INT", "integerLine"],
  L: ["LONG", "longLine"],
  F: ["FLOAT", "floatLine"],
  S: ["STRING", "stringLine"],
  V: ["UNICODE", "unicodeLine"],
  d: ["DICT", "dictLine"],
  l: ["LIST", "listLine"],
  p: ["PUT", "putLine"],
  g: ["GET", "getLine"],
  i: ["INST", "instance"],
  o: ["OBJ", "object"],
};

const model = ({ program, reader, bytes }) => {
  const written = program === "own" ? bytes : PROGRAMS[program];
  const data = readBytes(written);
  if (!data) refuse("There are no bytes. Write some, or drop a file here.");
  const { steps, say } = new PickleMachine(data, reader === "weights").run();
  const last = steps.at(-1);
  const unrun = ["refused", "error"].includes(last.state) ? unrunFrom(data, last.at) : [];
  return { written, bytes: [...bytesOf(data)], steps, unrun, say };
};
