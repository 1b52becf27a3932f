// What three tracers record of a function for an example, and what the recordings answer: as figures/three_tracers.py.

const ROWS = "the rows",
  BRANCH = "the branch";

class Failed extends Error {}
const failed = (sentence) => {
  throw new Failed(sentence);
};

const doubled = (x) => x.map((v) => 2 * v);
const flipped = (x) => x.map((v) => -v);
const times = (x, number) => x.map((v) => v * number);
const total = (x) => x.reduce((a, b) => a + b, 0);
const chosen = (x) => (total(x) > 0 ? doubled(x) : flipped(x));
const count = (n) => Array.from({ length: n }, (_, i) => i);

// ---- the lines of a recording: [text, what of the example stands in it]

const recording = (lines, run, warning = "") => ({ lines, run, warning });
const tensorType = (x) => `Float(${x.length})`;
const constant = (name, kind, value) => `${name} : ${kind}() = prim::Constant[value={${value}}]()`;
const unmarked = (texts) => texts.map((text) => [text, ""]);
const inputName = (isExport) => (isExport ? "x" : "x_1");
const returned = (result, isExport) => [isExport ? `return (${result},)` : `return ${result}`, ""];

const product = (x, first, kind, value, note) => [
  [constant(`%${first}`, kind, value), note],
  [`%${first + 1} : ${tensorType(x)} = aten::mul(%x, %${first})`, note === BRANCH ? note : ""],
  [`return (%${first + 1})`, ""],
];
const negative = (x, number, note) => [
  [`%${number} : ${tensorType(x)} = aten::neg(%x)`, note],
  [`return (%${number})`, ""],
];

function oneCall(call, note, isExport) {
  const result = call.split(".")[1];
  return [[`${result} = ${call.replace("(x", `(${inputName(isExport)}`)}`, note], returned(result, isExport)];
}

// ---- errors

const TAKEN_OUT =
  "RuntimeError: It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - erroring out!";
const UNKNOWN = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1)";
const BOUNDED =
  "UserError: Not all values of rows = L['x'].size()[0] in the specified range satisfy the generated guard 3 <= L['x'].size()[0]";
const specialized = (rows) => `UserError: You marked rows as dynamic but your code specialized it to be a constant (${rows}).`;
const ONE_ROW =
  "torch.export makes a size of 0 or 1 a constant, whatever the program does: give it two rows.";
const becomes = (kind) => `TracerWarning: Converting a tensor to a Python ${kind} might cause the trace to be incorrect.`;
const might = (what) => `TracerWarning: ${what} might cause the trace to be incorrect.`;

function guarded(x, { lines, run }) {
  const rows = x.length;
  const guardedRun = (y) => (y.length === rows ? run(y) : failed(`AssertionError: Guard failed: x.size()[0] == ${rows}`));
  return recording([[`guard: x.size()[0] == ${rows}`, ROWS], ...lines], guardedRun);
}
function ranged(x, { lines, run }, symbols = "") {
  if (x.length === 1) failed(specialized(1));
  return recording([[`range: {${symbols}s77: VR[0, int_oo]}`, ""], ...lines], run);
}
const fixedRows = (x, dynamic, made) => (dynamic ? failed(specialized(x.length)) : guarded(x, made));
const anyRows = (x, dynamic, made, symbols = "") => (dynamic ? ranged(x, made, symbols) : guarded(x, made));

// ---- the programs

function branchTrace(x) {
  const warning = becomes("boolean");
  return total(x) > 0
    ? recording(product(x, 5, "Long", 2, BRANCH), doubled, warning)
    : recording(negative(x, 5, BRANCH), flipped, warning);
}

function whereTrace(x) {
  const kind = tensorType(x);
  const lines = [
    "%1 : NoneType = prim::Constant()", "%2 : Float() = aten::sum(%x, %1)", "%3 : int = prim::Constant[value=0]()",
    "%4 : Bool() = aten::gt(%2, %3)", constant("%5", "Long", 2), `%6 : ${kind} = aten::mul(%x, %5)`,
    `%7 : ${kind} = aten::neg(%x)`, `%8 : ${kind} = aten::where(%4, %6, %7)`, "return (%8)",
  ]; // prettier-ignore
  return recording(unmarked(lines), chosen);
}
function whereFx(isExport) {
  const x = inputName(isExport);
  const bodies = [
    `sum_1 = aten.sum.default(${x})`, "gt = aten.gt.Scalar(sum_1, 0)", `mul = aten.mul.Tensor(${x}, 2)`,
    `neg = aten.neg.default(${x})`, "where = aten.where.self(gt, mul, neg)",
  ]; // prettier-ignore
  return recording([...unmarked(bodies), returned("where", isExport)], chosen);
}

function sizeTrace(x) {
  const lines = [
    "%1 : int = prim::Constant[value=0]()", "%2 : int = aten::size(%x, %1)", "%3 : Long() = prim::NumToTensor(%2)",
    `%4 : ${tensorType(x)} = aten::mul(%x, %3)`, "return (%4)",
  ]; // prettier-ignore
  return recording(unmarked(lines), (y) => times(y, y.length));
}
// x times a number that Python had: a size, a length, a setting
const timesFx = (number, note, isExport) =>
  recording(oneCall(`aten.mul.Tensor(x, ${number})`, note, isExport), (y) => times(y, number));
function sizeExport(x, scale, dynamic) {
  if (!dynamic) return guarded(x, timesFx(x.length, ROWS, true));
  const lines = ["sym_size_int_1 = aten.sym_size.int(x, 0)", "mul = aten.mul.Tensor(x, sym_size_int_1)", "return (mul,)"];
  return ranged(x, recording(unmarked(lines), (y) => times(y, y.length)));
}

function rowsTrace(x) {
  const warning = becomes("boolean");
  return x.length > 2
    ? recording(product(x, 6, "Long", 2, BRANCH), doubled, warning)
    : recording(negative(x, 6, BRANCH), flipped, warning);
}
const rowsFx = (x, isExport) =>
  x.length > 2
    ? recording(oneCall("aten.mul.Tensor(x, 2)", BRANCH, isExport), doubled)
    : recording(oneCall("aten.neg.default(x)", BRANCH, isExport), flipped);
const rowsExport = (x, scale, dynamic) =>
  dynamic && x.length > 2 ? failed(BOUNDED) : fixedRows(x, dynamic, rowsFx(x, true));

function numberTrace(x) {
  const largest = Math.max(...x);
  return recording(product(x, 2, "Double", String(largest), "x.max()"), (y) => times(y, largest), becomes("number"));
}
function numberExport(x, scale, dynamic) {
  const lines = ["max_1 = aten.max.default(x)", "item = aten.item.default(max_1)", "mul = aten.mul.Tensor(x, item)", "return (mul,)"];
  return anyRows(x, dynamic, recording(unmarked(lines), (y) => times(y, Math.max(...y))), "zuf0: VR[-oo, oo], ");
}

const lengthTrace = (x) =>
  recording(product(x, 4, "Long", x.length, "len(x)"), (y) => times(y, x.length), might("Using len to get tensor shape"));

// Names as the tracer gives them to one variable: v.1, v.3, v.
const numberedNames = (name, n) => count(n).map((i) => (i < n - 1 ? `%${name}.${2 * i + 1}` : `%${name}`));

function loopTrace(x) {
  const rows = x.length,
    at = 3 + rows;
  const parts = numberedNames("v", rows),
    totals = numberedNames("total", rows - 1);
  const lines = unmarked(["%1 : int = prim::Constant[value=0]()", "%2 : Tensor[] = aten::unbind(%x, %1)"]);
  lines.push([`${parts.map((part) => `${part} : Float()`).join(", ")} = prim::ListUnpack(%2)`, ROWS]);
  lines.push([constant(`%${at}`, "Long", 0), ""]);
  let before = `%${at}`;
  parts.forEach((part, i) => {
    const alpha = `%${at + 1 + 2 * i}`,
      made = i < rows - 1 ? totals[i] : `%${at + 2 * rows}`;
    lines.push([`${alpha} : int = prim::Constant[value=1]()`, ""]);
    const operands = i ? `${before}, ${part}` : `${part}, ${before}`;
    lines.push([`${made} : Float() = aten::add(${operands}, ${alpha})`, ROWS]);
    before = made;
  });
  lines.push([`return (${before})`, ""]);
  const run = (y) =>
    y.length === rows ? total(y) : failed(`RuntimeError: Expected ${rows} elements in a list but found ${y.length}`);
  return recording(lines, run, might("Iterating over a tensor"));
}
const suffixed = (name, i) => (i ? `${name}_${i}` : name);
function loopFx(x, isExport) {
  const rows = x.length;
  const lines = [[`unbind = aten.unbind.int(${inputName(isExport)})`, ""]];
  for (const i of count(rows)) lines.push([`${suffixed("getitem", i)} = unbind[${i}]`, ROWS]);
  for (const i of count(rows)) {
    const part = suffixed("getitem", i);
    const operands = i ? `${suffixed("add", i - 1)}, ${part}` : `${part}, 0`;
    lines.push([`${suffixed("add", i)} = aten.add.Tensor(${operands})`, ROWS]);
  }
  lines.push(returned(suffixed("add", rows - 1), isExport));
  const run = (y) => (y.length < rows ? failed("IndexError: list index out of range") : total(y.slice(0, rows)));
  return recording(lines, run);
}

// source; values(x, scale): the result, and the lines that run; the three recordings
const PROGRAMS = {
  branch: {
    source: ["def f(x):", "    if x.sum() > 0:", "        return x * 2", "    return -x"],
    values: (x) => [chosen(x), total(x) > 0 ? [1, 2] : [1, 3]],
    trace: branchTrace,
    makeFx: () => failed(TAKEN_OUT),
    exported: () => failed(UNKNOWN),
  },
  where: {
    source: ["def f(x):", "    return torch.where(x.sum() > 0, x * 2, -x)"],
    values: (x) => [chosen(x), [1]],
    trace: whereTrace,
    makeFx: () => whereFx(false),
    exported: (x, scale, dynamic) => anyRows(x, dynamic, whereFx(true)),
  },
  size: {
    source: ["def f(x):", "    return x * x.shape[0]"],
    values: (x) => [times(x, x.length), [1]],
    trace: sizeTrace,
    makeFx: (x) => timesFx(x.length, ROWS, false),
    exported: sizeExport,
  },
  rows: {
    source: ["def f(x):", "    if x.shape[0] > 2:", "        return x * 2", "    return -x"],
    values: (x) => (x.length > 2 ? [doubled(x), [1, 2]] : [flipped(x), [1, 3]]),
    trace: rowsTrace,
    makeFx: (x) => rowsFx(x, false),
    exported: rowsExport,
  },
  length: {
    source: ["def f(x):", "    return x * len(x)"],
    values: (x) => [times(x, x.length), [1]],
    trace: lengthTrace,
    makeFx: (x) => timesFx(x.length, "len(x)", false),
    exported: (x, scale, dynamic) => fixedRows(x, dynamic, timesFx(x.length, "len(x)", true)),
  },
  number: {
    source: ["def f(x):", "    return x * x.max().item()"],
    values: (x) => [times(x, Math.max(...x)), [1]],
    trace: numberTrace,
    makeFx: () => failed(TAKEN_OUT),
    exported: numberExport,
  },
  loop: {
    source: ["def f(x):", "    total = 0", "    for v in x:", "        total = total + v", "    return total"],
    values: (x) => [total(x), [1, 2, 3, 4]],
    trace: loopTrace,
    makeFx: (x) => loopFx(x, false),
    exported: (x, scale, dynamic) => fixedRows(x, dynamic, loopFx(x, true)),
  },
  setting: {
    source: ["def f(x):", "    return x * scale"],
    values: (x, scale) => [times(x, scale), [1]],
    trace: (x, scale) => recording(product(x, 1, "Long", scale, "scale"), (y) => times(y, scale)),
    makeFx: (x, scale) => timesFx(scale, "scale", false),
    exported: (x, scale, dynamic) => anyRows(x, dynamic, timesFx(scale, "scale", true)),
  },
};

// ---- what there is to see

const floatText = (v) => (Object.is(v, -0) ? "-0.0" : v.toFixed(1));
const listText = (value) => (Array.isArray(value) ? `[${value.map(floatText).join(", ")}]` : floatText(value));
const sameNumbers = (a, b) => [a].flat().length === [b].flat().length && [a].flat().every((v, i) => v === [b].flat()[i]);

function attempt(act) {
  try {
    return [act(), null];
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return [null, error.message];
  }
}

function captured(name, record, y, wanted) {
  const shown = { name, lines: [], warning: "", error: "", hint: "", result: "" };
  const [made, error] = attempt(record);
  if (!made) return { ...shown, error, hint: error === specialized(1) ? ONE_ROW : "", verdict: "none" };
  const { lines, warning } = made;
  const [result, problem] = attempt(() => made.run(y));
  if (problem !== null) return { ...shown, lines, warning, result: problem, verdict: "fails" };
  return { ...shown, lines, warning, result: listText(result), verdict: sameNumbers(result, wanted) ? "right" : "wrong" };
}

const ENDINGS = {
  none: (name) => `${name} records nothing`,
  fails: (_, made) => `${made} fails`,
  right: (_, made) => `${made} is right`,
  wrong: (_, made) => `${made} is wrong`,
};
const NAMES = { "torch.jit.trace": "the trace", make_fx: "make_fx's graph", "torch.export": "the exported program" };

function model({ program, example: x, call: y, scale: [then, now], dynamic }) {
  const { source, values, trace, makeFx, exported } = PROGRAMS[program];
  const [wanted] = values(y, now),
    [, ran] = values(x, then);
  const made = [
    captured("torch.jit.trace", () => trace(x, then), y, wanted),
    captured("make_fx", () => makeFx(x, then), y, wanted),
    captured("torch.export", () => exported(x, then, dynamic), y, wanted),
  ];
  const endings = made.map(({ name, verdict }) => ENDINGS[verdict](name, NAMES[name])).join("; ");
  const say = `Recorded for ${listText(x)}, called with ${listText(y)}, where f returns ${listText(wanted)}: ${endings}.`;
  return { source, ran, wanted: listText(wanted), made, say };
}
