// Ten programs whose trace answers otherwise than the function, without a warning: as figures/silent_traces.py.

const ROWS = "the rows",
  BRANCH = "the branch";

const total = (x) => x.reduce((a, b) => a + b, 0);
const count = (n) => Array.from({ length: n }, (_, i) => i);
const filled = (n, value) => Array(n).fill(value);

// ---- the lines of a graph: [text, what of the example stands in it]

const tensorType = (x) => `Float(${x.length})`;
const constant = (number, kind, value, note = "") => [`%${number} : ${kind} = prim::Constant[value=${value}]()`, note];
const product = (x, first, number, { note = "", of = "%x", branch = "" } = {}) => [
  constant(first, "Long()", `{${number}}`, note || branch),
  [`%${first + 1} : ${tensorType(x)} = aten::mul(${of}, %${first})`, branch],
  [`return (%${first + 1})`, ""],
];
const negative = (x, number) => [
  [`%${number} : ${tensorType(x)} = aten::neg(%x)`, BRANCH],
  [`return (%${number})`, ""],
];

// A tensor's elements as a graph prints them, in columns as wide as the widest and its sign.
function elements(x) {
  if (x.length === 1) return `{${x[0]}}`;
  const wide = 1 + Math.max(...x.map((v) => String(Math.abs(v)).length));
  return `${x.map((v) => String(v).padStart(wide)).join(" ")} [ CPUFloatType{${x.length}} ]`;
}

// ---- answers

const times = (x, number) => ({ values: x.map((v) => number * v), gradient: filled(x.length, number) });
const doubledOrFlipped = (x, doubles) => times(x, doubles ? 2 : -1);
const plus = (x, number) => ({ values: x.map((v) => v + number), gradient: filled(x.length, 1) });

// ---- the programs: from the example, the input of the call and the other inputs

// Two constants, a row and an addition, for each row; the first addition is to the number 0.
function rowLines(rows) {
  const lines = [];
  let at = 4,
    before = null;
  for (const i of count(rows)) {
    const row = at + 2;
    lines.push(constant(at, "int", 0), constant(at + 1, "int", i, ROWS));
    lines.push([`%${row} : Float() = aten::select(%x, %${at}, %${at + 1})`, ROWS]);
    if (i === 0) lines.push(constant(at + 3, "Long()", "{0}"));
    const alpha = at + 3 + (i === 0);
    lines.push(constant(alpha, "int", 1));
    const left = rows - 2 - i; // totals that are still to be named after this one
    const made = left < 0 ? `%${alpha + 1}` : left ? `%total.${2 * i + 1}` : "%total";
    const operands = i === 0 ? `%${row}, %${at + 3}` : `${before}, %${row}`;
    lines.push([`${made} : Float() = aten::add(${operands}, %${alpha})`, ROWS]);
    before = made;
    at = alpha + 2;
  }
  return [...lines, [`return (${before})`, ""]];
}

function rowsProgram(x, y) {
  const used = Math.min(x.length, y.length),
    n = y.length;
  const short = { error: `RuntimeError: select(): index ${n} out of range for tensor of size [${n}] at dimension 0` };
  const summed = { values: total(y.slice(0, used)), gradient: [...filled(used, 1), ...filled(n - used, 0)] };
  return {
    body: ["def f(x):", "    total = 0", "    for i in range(x.shape[0]):", "        total = total + x[i]", "    return total"],
    ran: [1, 2, 3, 4],
    lines: rowLines(x.length),
    function: { values: total(y), gradient: filled(n, 1) },
    trace: n < x.length ? short : summed,
    why: "range() takes a Python int from x.shape[0], so the loop is recorded row by row, for the rows of the example.",
  };
}

function equalProgram(x, y) {
  const positive = (x) => x.every((v) => v >= 0);
  return {
    body: ["def f(x):", "    if torch.equal(x.abs(), x):", "        return x * 2", "    return -x"],
    ran: positive(x) ? [1, 2] : [1, 3],
    lines: positive(x) ? product(x, 2, 2, { branch: BRANCH }) : negative(x, 2),
    function: doubledOrFlipped(y, positive(y)),
    trace: doubledOrFlipped(y, positive(x)),
    why: "torch.equal returns a bool and no tensor, so it has no node: only the branch that ran is recorded.",
  };
}

const splitProgram = (x, y) => ({
  body: ["def f(x):", "    pieces = x.split(1)", "    return x * len(pieces)"],
  ran: [1, 2],
  lines: product(x, x.length + 4, x.length, { note: "the pieces" }),
  function: times(y, y.length),
  trace: times(y, x.length),
  why: "The length of the list that split returns is a number of Python, like that of any list: nothing is converted.",
});

const numberProgram = (x, y, { scale: [then, now] }) => ({
  before: [`scale = ${then}`],
  body: ["def f(x):", "    return x * scale"],
  ran: [1],
  after: [`scale = ${now}`],
  lines: product(x, 1, then, { note: "scale" }),
  function: times(y, now),
  trace: times(y, then),
  why: "A number of Python never was a tensor: the trace has the value of that moment.",
});

function flagProgram(x, y, { modes }) {
  const [then, now] = modes.split("-");
  return {
    body: ["class Net(torch.nn.Module):", "    def forward(self, x):", "        if self.training:", "            return x * 2", "        return -x"],
    ran: then === "train" ? [2, 3] : [2, 4],
    traced: `f = Net().${then}(); f`,
    after: [`f.${now}(); traced.${now}()`],
    lines: then === "train" ? product(x, 4, 2, { branch: BRANCH }) : negative(x, 4),
    function: doubledOrFlipped(y, now === "train"),
    trace: doubledOrFlipped(y, then === "train"),
    why: "self.training is a bool of Python: the branch is recorded, and no node reads the attribute that train() and eval() set.",
  }; // prettier-ignore
}

function outsideProgram(x, y, { change }) {
  const isNew = change === "new",
    flat = change === "number";
  const whole = `bias is neither an input nor a parameter, so it is a constant, and the constant is the tensor itself: ${isNew ? "a new tensor under its name is not seen." : "a write to it is seen."}`;
  const read =
    "At its first run, which was the check's, a trace makes numbers of constants without dimensions. The graph shows the write, and what runs does not.";
  return {
    before: [`bias = torch.zeros(${flat ? "()" : 1})`],
    body: ["def f(x):", "    return x + bias"],
    ran: [1],
    after: [isNew ? "bias = torch.full((1,), 5.0)" : "bias.fill_(5)"],
    lines: [
      constant(1, flat ? "Float()" : "Float(1)", isNew ? "{0}" : "{5}", "bias"),
      constant(2, "int", 1),
      [`%3 : ${tensorType(x)} = aten::add(%x, %1, %2)`, ""],
      ["return (%3)", ""],
    ],
    function: plus(y, 5),
    trace: plus(y, isNew || flat ? 0 : 5),
    why: flat ? read : whole,
  };
}

const gradModeProgram = (x, y) => ({
  body: ["def f(x):", "    with torch.no_grad():", "        y = x * 2", "    return y + x"],
  ran: [1, 2, 3],
  lines: [
    constant(1, "Long()", "{2}"),
    [`%y : ${tensorType(x)} = aten::mul(%x, %1)`, ""],
    constant(3, "int", 1),
    [`%4 : ${tensorType(x)} = aten::add(%y, %x, %3)`, ""],
    ["return (%4)", ""],
  ],
  function: { ...times(y, 3), gradient: filled(y.length, 1) },
  trace: times(y, 3),
  why: "no_grad() is no operator: of it the graph has nothing, and Autograd records the multiplication as well.",
});

const hookProgram = (x, y) => ({
  body: ["def f(x):", "    y = x * 2", "    if y.requires_grad:", "        y.register_hook(lambda g: g * 100)", "    return y"],
  ran: [1, 2, 4],
  lines: product(x, 1, 2),
  function: { ...times(y, 2), gradient: filled(y.length, 200) },
  trace: times(y, 2),
  why: "register_hook is no operator, so the trace knows no hook, whether or not the example requires a gradient.",
});

const dataProgram = (x, y) => ({
  body: ["def f(x):", "    return x.data * 2"],
  ran: [1],
  lines: [constant(1, tensorType(x), elements(x), "the example"), ...product(x, 2, 2, { of: "%1" })],
  function: { ...times(y, 2), gradient: null },
  trace: { ...times(x, 2), gradient: null },
  why: "x.data is a tensor that the trace has not seen: it is a constant, with the example's elements, and x is not used.",
});

const threadProgram = (x, y) => ({
  before: ["from concurrent.futures import ThreadPoolExecutor"],
  body: ["def f(x):", "    with ThreadPoolExecutor(1) as other:", "        y = other.submit(torch.add, x, x).result()", "    return y * 2"],
  ran: [1, 2, 3],
  lines: [constant(1, tensorType(x), elements(x.map((v) => 2 * v)), "the example"), ...product(x, 2, 2, { of: "%1" })],
  function: times(y, 4),
  trace: { values: x.map((v) => 4 * v), gradient: null },
  why: "The key is switched on for one thread. What another computes is not recorded: its result is a constant, and x is not used.",
});

const PROGRAMS = {
  rows: rowsProgram,
  equal: equalProgram,
  split: splitProgram,
  number: numberProgram,
  flag: flagProgram,
  outside: outsideProgram,
  grad_mode: gradModeProgram,
  hook: hookProgram,
  data: dataProgram,
  thread: threadProgram,
};

// ---- what there is to see

const floatText = (v) => (Object.is(v, -0) ? "-0.0" : v.toFixed(1));
const listText = (value) => (Array.isArray(value) ? `[${value.map(floatText).join(", ")}]` : floatText(value));
const sameNumbers = (a, b) => a === b || ([a].flat().length === [b].flat().length && [a].flat().every((v, i) => v === [b].flat()[i]));

const shown = ({ values, gradient, error }) =>
  error ? [error] : [`returns ${listText(values)}`, gradient ? `gradient ${listText(gradient)}` : "no gradient"];

function verdictOf(wanted, found) {
  if (found.error) return "fails";
  if (!sameNumbers(found.values, wanted.values)) return "wrong";
  return sameNumbers(found.gradient, wanted.gradient) ? "right" : "gradient";
}

const ENDINGS = {
  right: () => "the trace returns the same",
  wrong: ({ values }) => `the trace returns ${listText(values)}`,
  gradient: () => "the trace returns the same, but another gradient",
  fails: () => "the trace fails",
};

// The whole program as [text, "", "ran" or "missed"].
function script({ before = [], body, ran, traced = "f", after = [] }) {
  const mark = (line, i) => (i === 0 || line.trimStart().startsWith("def ") ? "" : ran.includes(i) ? "ran" : "missed");
  const [name, setup] = traced.split("; ").reverse();
  const plain = [...(setup ? [setup] : []), `traced = torch.jit.trace(${name}, example)`, ...after];
  return [...before.map((line) => [line, ""]), ...body.map((line, i) => [line, mark(line, i)]), ...plain.map((line) => [line, ""])];
}

function model(inputs) {
  const { program, example: x, call: y } = inputs;
  const made = PROGRAMS[program](x, y, inputs);
  const verdict = verdictOf(made.function, made.trace);
  const say = `Traced for ${listText(x)} without a warning. For ${listText(y)} the function returns ${listText(made.function.values)}; ${ENDINGS[verdict](made.trace)}.`;
  const answers = { function: shown(made.function), trace: shown(made.trace) };
  return { source: script(made), lines: made.lines, ...answers, verdict, why: made.why, say };
}
