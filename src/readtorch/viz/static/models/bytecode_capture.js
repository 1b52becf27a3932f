// How Dynamo interprets a function's bytecode, what it guards, and which later call needs a new graph: as
// figures/bytecode_capture.py.

const MOST_CALLS = 10,
  LIMIT = 8; // PyTorch's recompile_limit
const DYNAMIC = "dynamic";

// [source, instructions as [offset, line, name, argument]]
const PROGRAMS = {
  scale: [
    ["def f(x):", "    return torch.relu(x) * cfg.scale"],
    [
      [2, 1, "LOAD_GLOBAL", "torch"], [14, 1, "LOAD_METHOD", "relu"], [36, 1, "LOAD_FAST", "x"], [42, 1, "CALL", 1],
      [52, 1, "LOAD_GLOBAL", "cfg"], [64, 1, "LOAD_ATTR", "scale"], [74, 1, "BINARY_OP", "*"], [78, 1, "RETURN_VALUE", ""],
    ],
  ],
  branch: [
    ["def f(x):", "    if cfg.scale > 2:", "        x = torch.tanh(x)", "    return x + OFFSET"],
    [
      [2, 1, "LOAD_GLOBAL", "cfg"], [14, 1, "LOAD_ATTR", "scale"], [24, 1, "LOAD_CONST", "2"], [26, 1, "COMPARE_OP", ">"],
      [32, 1, "POP_JUMP_FORWARD_IF_FALSE", 86], [34, 2, "LOAD_GLOBAL", "torch"], [46, 2, "LOAD_METHOD", "tanh"],
      [68, 2, "LOAD_FAST", "x"], [74, 2, "CALL", 1], [84, 2, "STORE_FAST", "x"], [86, 3, "LOAD_FAST", "x"],
      [88, 3, "LOAD_GLOBAL", "OFFSET"], [100, 3, "BINARY_OP", "+"], [104, 3, "RETURN_VALUE", ""],
    ],
  ],
  shape: [
    ["def f(x):", "    return x / x.shape[0] + OFFSET"],
    [
      [2, 1, "LOAD_FAST", "x"], [4, 1, "LOAD_FAST", "x"], [6, 1, "LOAD_ATTR", "shape"], [16, 1, "LOAD_CONST", "0"],
      [18, 1, "BINARY_SUBSCR", ""], [28, 1, "BINARY_OP", "/"], [32, 1, "LOAD_GLOBAL", "OFFSET"], [44, 1, "BINARY_OP", "+"],
      [48, 1, "RETURN_VALUE", ""],
    ],
  ],
  print: [
    ["def f(x):", "    y = x * cfg.scale", "    print('seen')", "    return y + OFFSET"],
    [
      [2, 1, "LOAD_FAST", "x"], [4, 1, "LOAD_GLOBAL", "cfg"], [16, 1, "LOAD_ATTR", "scale"], [26, 1, "BINARY_OP", "*"],
      [30, 1, "STORE_FAST", "y"], [32, 2, "LOAD_GLOBAL", "print"], [44, 2, "LOAD_CONST", "'seen'"], [50, 2, "CALL", 1],
      [60, 2, "POP_TOP", ""], [62, 3, "LOAD_FAST", "y"], [64, 3, "LOAD_GLOBAL", "OFFSET"], [76, 3, "BINARY_OP", "+"],
      [80, 3, "RETURN_VALUE", ""],
    ],
  ],
  tensor: [
    ["def f(x):", "    if x.sum() > 0:", "        return x * cfg.scale", "    return x - OFFSET"],
    [
      [2, 1, "LOAD_FAST", "x"], [4, 1, "LOAD_METHOD", "sum"], [30, 1, "CALL", 0], [40, 1, "LOAD_CONST", "0"],
      [42, 1, "COMPARE_OP", ">"], [48, 1, "POP_JUMP_FORWARD_IF_FALSE", 80], [50, 2, "LOAD_FAST", "x"],
      [52, 2, "LOAD_GLOBAL", "cfg"], [64, 2, "LOAD_ATTR", "scale"], [74, 2, "BINARY_OP", "*"], [78, 2, "RETURN_VALUE", ""],
      [80, 3, "LOAD_FAST", "x"], [82, 3, "LOAD_GLOBAL", "OFFSET"], [94, 3, "BINARY_OP", "-"], [98, 3, "RETURN_VALUE", ""],
    ],
  ],
  loop: [
    ["def f(x):", "    for i in range(2):", "        x = x * cfg.scale", "        if cfg.scale > 2:", "            print('big')", "    return x + OFFSET"],
    [
      [2, 1, "LOAD_GLOBAL", "range"], [14, 1, "LOAD_CONST", "2"], [20, 1, "CALL", 1], [30, 1, "GET_ITER", ""], [32, 1, "FOR_ITER", 130],
      [34, 1, "STORE_FAST", "i"], [36, 2, "LOAD_FAST", "x"], [38, 2, "LOAD_GLOBAL", "cfg"], [50, 2, "LOAD_ATTR", "scale"],
      [60, 2, "BINARY_OP", "*"], [64, 2, "STORE_FAST", "x"], [66, 3, "LOAD_GLOBAL", "cfg"], [78, 3, "LOAD_ATTR", "scale"],
      [88, 3, "LOAD_CONST", "2"], [90, 3, "COMPARE_OP", ">"], [96, 3, "POP_JUMP_FORWARD_IF_FALSE", 128], [98, 4, "LOAD_GLOBAL", "print"],
      [110, 4, "LOAD_CONST", "'big'"], [116, 4, "CALL", 1], [126, 4, "POP_TOP", ""], [128, 1, "JUMP_BACKWARD", 32],
      [130, 5, "LOAD_FAST", "x"], [132, 5, "LOAD_GLOBAL", "OFFSET"], [144, 5, "BINARY_OP", "+"], [148, 5, "RETURN_VALUE", ""],
    ],
  ],
}; // prettier-ignore
const READS = { scale: ["scale"], branch: ["scale", "offset"], shape: ["offset"], print: ["scale", "offset"], tensor: ["scale", "fill", "offset"], loop: ["scale", "offset"] };
const UNREAD = { rows: 3, fill: 1, scale: "2.0", offset: 1 };
const OPERATOR_NAMES = { "*": "mul", "+": "add", "-": "sub", "/": "truediv", ">": "gt" };

// A float as Python writes it.
const written = (number) => (Object.is(number, -0) ? "-0.0" : Number.isInteger(number) ? number.toFixed(1) : String(number));
// inf is more than the field takes otherwise; nan is no more than 2, and another number than all that the field takes
const SPECIAL = { True: 1, False: 0, inf: 1e6, "-inf": -1e6, nan: -1e9 };
const isBool = (words) => words === "True" || words === "False";
const isFloat = (words) => words.includes(".") || ["inf", "-inf", "nan"].includes(words);
const floatOf = (words) => SPECIAL[words] ?? Number(words); // Python's bools are the numbers 1 and 0
// A number with its type, which a guard asks for, too. The names True, False and nan say it.
const typed = (words) => (isBool(words) || words === "nan" ? words : `the ${isFloat(words) ? "float" : "int"} ${words}`);
const unsigned = (words) => (words === "-0.0" ? "0.0" : words); // the same for both zeros

// A value on the stack: kind "tensor", "known", "symbol", "object" or "null".
const valueOf = (kind, words, source = "", number = null) => ({ kind, words, source, number });
const NULL = valueOf("null", "NULL");
const restAt = (offset) => `resume_in_f_at_${offset}`;
const shownValues = ({ rows, fill, scale, offset }) => [rows, fill, scale, offset];

class Machine {
  constructor(program) {
    [this.source, this.code] = PROGRAMS[program];
    this.at = new Map(this.code.map(([offset], i) => [offset, i]));
    this.frames = new Map();
    [this.steps, this.say, this.calls] = [[], [], []];
    this.seen = [new Map(), new Map()]; // of f and of its resume functions: PyTorch keeps it by file, line and name
    Object.assign(this, { values: {}, frame: "f", stack: [], shown: null, locals: {} });
  }
  see(say, at = -1, guards = null, inPrologue = false) {
    const entry = this.shown,
      isCaptured = at >= 0 || inPrologue;
    this.steps.push({
      call: this.calls.length - 1,
      frame: this.frame,
      at,
      stack: this.stack.map(({ words }) => words),
      locals: isCaptured ? Object.entries(this.locals).map(([name, { words }]) => (words === name ? name : `${name} = ${words}`)) : [],
      prologue: this.frames.get(this.frame)?.prologue ?? [],
      in_prologue: inPrologue,
      guards: guards ?? (entry ? entry.guards.map(([words]) => ({ words, state: "" })) : []),
      graph: entry ? [...entry.graph] : [],
      entry: entry ? entry.number : -1,
    });
    this.say.push(say);
  }

  // What the calls have left behind: the entries of all frames, in the order in which they were made.
  left() {
    return [...this.frames].flatMap(([frame, { entries, isSkipped }]) =>
      entries.toSorted((a, b) => a.number - b.number).map(({ number, guards, graph }) => ({
        frame, number, guards: guards.map(([words]) => words), graph, unused: isSkipped,
      })),
    ); // prettier-ignore
  }

  // ---- a call
  call(values) {
    this.values = values;
    this.calls.push({ values: shownValues(values), made: 0, fitted: 0, written: 0 });
    Object.assign(this, { frame: "f", shown: null, stack: [] });
    this.see(`Call ${this.calls.length}: x has the shape [${values.rows}, 2].`);
    this.enter("f", 0, [], { x: valueOf("tensor", "x", "x") });
  }
  enter(frame, start, stack, locals) {
    this.frame = frame;
    const prologue = frame === "f" ? [] : [...stack.map((_, i) => `LOAD_FAST ___stack${i}`), `JUMP_FORWARD to ${this.code[start][0]}`];
    if (!this.frames.has(frame)) this.frames.set(frame, { entries: [], made: 0, seen: this.seen[frame === "f" ? 0 : 1], prologue, isSkipped: false });
    const state = this.frames.get(frame);
    let entry = state.isSkipped ? null : this.fitting(state);
    const now = this.calls.at(-1);
    if (entry) now.fitted++;
    else if (!state.isSkipped && state.entries.length < LIMIT) {
      entry = this.capture(state, start, stack, { ...locals });
      if (!state.isSkipped) now.made++;
    }
    if (!entry || state.isSkipped) {
      this.asWritten(state);
      return;
    }
    state.entries = [entry, ...state.entries.filter((one) => one !== entry)];
    if (!entry.returns) this.goOn(entry);
  }
  asWritten(state) {
    Object.assign(this, { shown: null, stack: [] });
    this.calls.at(-1).written++;
    this.see(`${this.frame} ${state.isSkipped ? "was given up" : `has ${LIMIT} entries, the limit`}: it runs as it is written.`);
  }
  fitting(state) {
    if (!state.entries.length) {
      Object.assign(this, { shown: null, stack: [] });
      this.see(`${this.frame} has no entry yet: it is captured.`);
    }
    for (const entry of state.entries) {
      Object.assign(this, { shown: entry, stack: [] });
      const fails = entry.guards.findIndex((guard) => !this.holds(guard));
      const mark = (i) => (fails < 0 || i < fails ? "ok" : i === fails ? "fails" : "");
      const guards = entry.guards.map(([words], i) => ({ words, state: mark(i) }));
      if (fails < 0) {
        this.see(`Entry ${entry.number} of ${this.frame}: every guard holds.${this.zeros(entry)} Its graph runs.`, -1, guards);
        return entry;
      }
      this.see(`Entry ${entry.number} of ${this.frame}: the guard ${entry.guards[fails][0]} fails.`, -1, guards);
    }
    return null;
  }
  zeros(entry) {
    const { scale } = this.values;
    const other = entry.guards.find(([, source, asks, of]) => source === "cfg.scale" && asks === "is" && of !== scale);
    return other ? ` ${scale} == ${other[3]}, so PyTorch's guard takes both.` : "";
  }
  holds([, source, asks, of]) {
    if (asks === "same") return true;
    const words = String({ rows: this.values.rows, "cfg.scale": this.values.scale, OFFSET: this.values.offset }[source]);
    if (asks === "is") return unsigned(words) === unsigned(String(of));
    if (asks === "float") return isFloat(words);
    if (asks === "number") return words !== "nan";
    const seen = floatOf(words);
    return { from: seen >= of, above: seen > of, upto: seen <= of }[asks];
  }
  goOn(entry) {
    Object.assign(this, { shown: null, stack: [] });
    if (entry.goesOn.length === 1) {
      const [rest] = entry.goesOn;
      this.see(`Python does the call: it prints. Then ${rest[0]} is called with y and the None that print returned.`);
      this.enter(...rest);
      return;
    }
    const isPositive = this.values.fill > 0 && this.values.rows > 0;
    const rest = entry.goesOn[isPositive ? 0 : 1];
    this.see(`Python asks the tensor gt: it is ${isPositive}. ${rest[0]} is called with x.`);
    this.enter(...rest);
  }

  // ---- a capture
  capture(state, start, stack, locals) {
    const entry = { number: state.made, guards: [], graph: [], returns: true, goesOn: [] };
    Object.assign(this, { state, stack: [...stack], locals, entry, shown: entry, used: new Map() });
    state.made++;
    if (state.prologue.length) {
      const pushes = stack.length ? "pushes what stood on the stack, and jumps" : "jumps";
      this.see(`The variables have come as arguments. The prologue ${pushes} to ${this.code[start][0]}.`, -1, null, true);
    }
    for (let at = start; at >= 0; ) at = this.step(at);
    return entry;
  }
  step(at) {
    const [, , name, argument] = this.code[at];
    const [after, say] = this[name](argument, at + 1);
    this.see(say, at);
    return after;
  }
  guard(words, source = "", asks = "same", of = 0) {
    if (this.entry.guards.every((guard) => guard[0] !== words)) this.entry.guards.push([words, source, asks, of]);
  }
  isDynamic(source, number) {
    const { seen } = this.state,
      before = seen.get(source) ?? number;
    seen.set(source, before === number ? number : DYNAMIC);
    return seen.get(source) === DYNAMIC;
  }
  tensor(one) {
    if (one.source && !this.used.has(one.source)) {
      const { rows } = this.values;
      const isOpen = this.isDynamic(one.source, rows) && rows > 1;
      this.used.set(one.source, isOpen);
      const words = `${one.words}: a float32 tensor of [${isOpen ? "s0" : rows}, 2]${isOpen ? ", s0 ≥ 2" : ""}`;
      this.guard(words, "rows", isOpen ? "from" : "is", isOpen ? 2 : rows);
    }
    return one;
  }
  setting() {
    const words = this.values.scale;
    if (isBool(words) || !this.isDynamic("cfg.scale", floatOf(words)) || !words.includes(".")) return valueOf("known", words, "cfg.scale", words);
    this.guard("cfg.scale is a float", "cfg.scale", "float");
    this.guard("cfg.scale is not nan", "cfg.scale", "number");
    return valueOf("symbol", "cfg.scale", "cfg.scale", words);
  }
  operand(one) {
    if (one.kind === "tensor") return this.tensor(one).words;
    if (one.kind === "known" && one.source) this.guard(`${one.source} is ${typed(one.words)}`, one.source, "is", one.number);
    return one.words;
  }
  node(name, call) {
    const isTaken = this.entry.graph.some((line) => line.split(" = ")[0] === name);
    const made = isTaken ? `${name}_1` : name;
    this.entry.graph.push(`${made} = ${call}`);
    return valueOf("tensor", made);
  }

  // ---- the instructions
  LOAD_FAST(name, after) {
    this.stack.push(this.locals[name]);
    return [after, `The variable ${name} is pushed.`];
  }
  STORE_FAST(name, after) {
    this.locals[name] = this.stack.pop();
    return [after, `The top of the stack becomes the variable ${name}.`];
  }
  LOAD_CONST(words, after) {
    this.stack.push(valueOf("known", words));
    return [after, `The constant ${words} is pushed: it stands in the code and needs no guard.`];
  }
  LOAD_GLOBAL(name, after) {
    if (name === "OFFSET") {
      const number = this.values.offset;
      this.stack.push(valueOf("known", String(number), "OFFSET", number));
      return [after, `The global OFFSET is ${number} now, and the interpreter remembers where that came from.`];
    }
    if (name === "cfg") {
      this.stack.push(valueOf("object", "cfg"));
      return [after, "The global cfg, an object of Python, is pushed."];
    }
    if (name === "print" || name === "range") {
      this.stack.push(NULL, valueOf("object", name));
      this.guard(`no global is named ${name}`);
      return [after, `${name} is pushed, with NULL below it: no method's object. It is a built-in, if no global hides it.`];
    }
    this.stack.push(valueOf("object", name));
    this.guard(`${name} is the same module`);
    return [after, `The module ${name} is pushed.`];
  }
  LOAD_ATTR(name, after) {
    const owner = this.stack.pop();
    if (name === "shape") {
      this.tensor(owner);
      this.stack.push(valueOf("object", "x.shape"));
      return [after, "The shape of x is known without its elements."];
    }
    this.guard("cfg is a Settings");
    const one = this.setting();
    this.stack.push(one);
    if (one.kind === "symbol") return [after, "cfg.scale has been another number before: it becomes a symbol, an input of the graph."];
    return [after, `cfg.scale is ${one.words} now. Only cfg's type is guarded; the number is not until it matters.`];
  }
  LOAD_METHOD(name, after) {
    const owner = this.stack.pop();
    if (owner.words === "torch") {
      this.guard(`torch.${name} is the same function`);
      this.stack.push(NULL, valueOf("object", `torch.${name}`));
      return [after, `torch.${name} is an operator. It is no method, so NULL stands below it.`];
    }
    this.tensor(owner);
    this.stack.push(valueOf("object", `Tensor.${name}`), owner);
    return [after, `The method ${name} and its object are pushed.`];
  }
  CALL(count, after) {
    const args = this.stack.splice(this.stack.length - count);
    const called = this.stack.pop(),
      below = this.stack.pop();
    if (called.words === "range") {
      this.stack.push(valueOf("object", "range(2)"));
      return [after, "range and its argument are known: it is called now, and leaves no trace in the graph."];
    }
    if (called.words === "print" && this.isInALoop(after)) {
      this.state.isSkipped = true;
      return [-1, "print cannot be captured, and stands in a loop: the whole frame is given up, what was captured too."];
    }
    if (called.words === "print") {
      this.entry.returns = false;
      const rest = { y: valueOf("tensor", "y", "y") };
      this.entry.goesOn = [[restAt(this.code[after][0]), after, [valueOf("known", "None")], rest]];
      return [-1, "print cannot be captured: the graph ends here. Behind the call a resume function goes on."];
    }
    if (below.kind === "object") this.stack.push(this.node("sum", `${called.words}.sum()`));
    else this.stack.push(this.node(called.words.split(".")[1], `${called.words}(${this.operand(args[0])})`));
    return [after, "A tensor takes part: the operator becomes a line of the graph."];
  }
  isInALoop(after) {
    const here = this.code[after - 1][0];
    return this.code.slice(after).some(([, , name, target]) => name === "JUMP_BACKWARD" && target < here);
  }
  GET_ITER(_, after) {
    this.stack[this.stack.length - 1] = valueOf("iterator", "iterator, at 0", "", 0);
    return [after, "The iterator over the range is known, too."];
  }
  FOR_ITER(target, after) {
    const i = this.stack.at(-1).number;
    if (i === 2) {
      this.stack.pop();
      return [this.at.get(target), "The iterator is exhausted: behind the loop. The graph has no loop, but both iterations."];
    }
    this.stack[this.stack.length - 1] = valueOf("iterator", `iterator, at ${i + 1}`, "", i + 1);
    this.stack.push(valueOf("known", String(i)));
    return [after, `The iterator gives ${i}.`];
  }
  JUMP_BACKWARD(target) {
    return [this.at.get(target), "Back to the head of the loop."];
  }
  BINARY_OP(sign, after) {
    const b = this.stack.pop(),
      a = this.stack.pop();
    const left = this.operand(a),
      right = this.operand(b);
    this.stack.push(this.node(OPERATOR_NAMES[sign], `${left} ${sign} ${right}`));
    if (b.kind === "known" && b.source) return [after, `A line of the graph, with the number ${right} in it: so ${b.source} has to stay ${right}.`];
    return [after, "A line of the graph."];
  }
  COMPARE_OP(sign, after) {
    const b = this.stack.pop(),
      a = this.stack.pop();
    if (a.kind === "tensor") {
      this.stack.push(this.node("gt", `${a.words} > ${b.words}`));
      return [after, "A tensor takes part: the comparison becomes a line of the graph."];
    }
    const outcome = floatOf(String(a.number)) > 2;
    let say;
    if (a.kind === "symbol") {
      const words = outcome ? "cfg.scale > 2" : "cfg.scale <= 2";
      this.guard(words, "cfg.scale", outcome ? "above" : "upto", 2);
      say = `The symbol is ${a.number} in this call. The decision is guarded: ${words}.`;
    } else say = `Both are known: the result is computed now, and ${this.operand(a)} is guarded.`;
    this.stack.push(valueOf("known", outcome ? "True" : "False"));
    return [after, say];
  }
  BINARY_SUBSCR(_, after) {
    this.stack.splice(-2);
    if (this.used.get("x")) {
      this.stack.push(valueOf("symbol", "s0"));
      return [after, "The size has been another one before: it is the symbol s0."];
    }
    this.stack.push(valueOf("known", String(this.values.rows)));
    return [after, "The size is a number that the guard of x already holds fast."];
  }
  POP_JUMP_FORWARD_IF_FALSE(target, after) {
    const one = this.stack.pop();
    if (one.kind === "tensor") {
      const rest = { x: valueOf("tensor", "x", "x") };
      this.entry.returns = false;
      this.entry.goesOn = [after, this.at.get(target)].map((i) => [restAt(this.code[i][0]), i, [], rest]);
      return [-1, "What decides is an element of a tensor, which is not there before the graph has run: the graph ends here."];
    }
    if (one.words === "True") return [after, "The value is known: the branch is taken, and leaves no trace in the graph."];
    return [this.at.get(target), "The value is known: the branch is jumped over, and leaves no trace in the graph."];
  }
  POP_TOP(_, after) {
    this.stack.pop();
    return [after, "What print returned is dropped."];
  }
  RETURN_VALUE() {
    const one = this.stack.at(-1);
    return [-1, `${one.words} is returned. Guards and graph become entry ${this.entry.number} of ${this.frame}.`];
  }
}

// ---- inputs

const NUMBERS = { rows: /^[0-9]$/, fill: /^-?[0-9]$/, scale: /^-?[0-9]{1,3}(\.[0-9]{1,3})?$|^-?inf$|^nan$|^True$|^False$/, offset: /^-?[0-9]{1,2}$/ };
const ASKED = {
  rows: "Rows of x are whole numbers from 0 to 9, one for each call, such as 3, 4, 5.",
  fill: "The elements of x are whole numbers from -9 to 9, one for each call, such as 1, -1.",
  scale: "cfg.scale takes floats with at most three decimals, ints, bools, inf and nan, one for each call, such as 2.0, 2, True.",
  offset: "OFFSET takes whole numbers from -99 to 99, one for each call, such as 1, 1, 2.",
};

function numbersOf(name, words) {
  const parts = words.split(",").map((part) => part.replace(/^ +| +$/g, ""));
  if (parts.length > MOST_CALLS) refuse(`At most ${MOST_CALLS} calls, please.`);
  if (!parts.every((part) => NUMBERS[name].test(part))) refuse(ASKED[name]);
  if (name !== "scale") return parts.map((part) => Number(part) + 0); // no -0
  return parts.map((part) => (part in SPECIAL ? part : part.includes(".") ? written(Number(part)) : String(Number(part)))); // as texts: 2 and 2.0 are two values
}

const model = (inputs) => {
  const lists = ["rows", ...READS[inputs.program]].map((name) => [name, numbersOf(name, inputs[name])]);
  const machine = new Machine(inputs.program);
  const count = Math.max(...lists.map(([, found]) => found.length));
  for (let i = 0; i < count; i++)
    machine.call({ ...UNREAD, ...Object.fromEntries(lists.map(([name, found]) => [name, found[Math.min(i, found.length - 1)]])) });
  const made = machine.calls.reduce((sum, call) => sum + call.made, 0);
  Object.assign(machine, { frame: "f", shown: null, stack: [] });
  machine.see(`${plural(count, "call")}, ${plural(made, "graph")}.`);
  const code = machine.code.map(([offset, line, name, argument]) => [offset, line, name, String(argument)]);
  return { source: machine.source, code, calls: machine.calls, left: machine.left(), steps: machine.steps, say: machine.say };
};
