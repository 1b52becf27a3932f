// Which sizes an exported program takes, and the guards that say so: as figures/size_guards.py.
const COLUMNS = 3;
const SIZES = [["rows", "s77"], ["columns", "s27"]]; // prettier-ignore
const BODIES = {
  double: "return x * 2",
  matrix: "return x @ x.new_ones(3, 2)",
  more: "return x * 2 if x.shape[0] > 4 else -x",
  one: "return x * 2 if x.shape[0] == 1 else -x",
  length: "return x * len(x)",
  dims: "return x * 2 if x.dim() == 2 else -x",
  dtype: "return x * 2 if x.dtype == torch.float32 else -x",
};

// An error of PyTorch's, by the name of its type, and what it suggests.
class Failure extends Error {
  constructor(kind, sentence, fix = "") {
    super(sentence);
    this.lines = [`${kind}: ${sentence}`, ...(fix ? [`Suggested fix: ${fix}`] : [])];
  }
}
const specialized = (called, hint, fix) =>
  new Failure("UserError", `You marked ${called} as dynamic but your code specialized it to be a constant (${hint}).`, fix);

// ---- the export

// [lowest, highest] of a size's symbol, null where the size gets none. Below 2 there are no symbols.
function symbolRange(hint, place, declared, bounds) {
  const [low, high] = declared === "range" ? bounds : [0, Infinity];
  const [name] = SIZES[place];
  if (low >= high) throw new Failure("AssertionError", `Cannot create Dim with inconsistent min=${low}, max=${high}`);
  if (declared === "static") return null;
  if (hint < 2) {
    if (declared === "AUTO") return null;
    if (declared === "DYNAMIC")
      throw new Failure("ValueError", `Received user-specified dim hint Dim.DYNAMIC(min=None, max=None), but export 0/1 specialized due to hint of ${hint} for dimension inputs['x'].shape[${place}].`);
    throw specialized(name, hint, `${name} = ${hint}`);
  } // prettier-ignore
  if (high < 2) throw new Failure("ValueRangeError", `Invalid ranges [2:${high}]`);
  const lowest = Math.max(low, 2);
  if (hint < lowest || hint > high) throw new Failure("ConstraintViolationError", `${hint} not in range [${lowest}, ${high}]`);
  return [lowest, high];
}

// The range after the program's questions about the size.
function narrowed(program, place, hint, [low, high]) {
  if ((program === "length" && place === 0) || (program === "matrix" && place === 1)) return [hint, hint];
  if (program !== "more" || place !== 0) return [low, high];
  return hint > 4 ? [Math.max(low, 5), high] : [low, Math.min(high, 4)];
}

const same = ([a, b], [c, d]) => a === c && b === d;

// The range that was declared, as an error has it.
function shownRange([low, high], name) {
  if (high === Infinity) return "";
  return low > 2 ? ` ${low} <= ${name} <= ${high}` : ` ${name} <= ${high}`;
}

// Throws where the program works for fewer sizes than were declared by name.
function refuseNarrower(place, hint, declared, found, left) {
  const source = `L['x'].size()[${place}]`,
    [name] = SIZES[place],
    [low, high] = left;
  if (same(left, found) || declared === "AUTO") return;
  if (low === high) throw declared === "DYNAMIC" ? specialized(source, hint) : specialized(name, hint, `${name} = ${hint}`);
  if (declared === "DYNAMIC") return;
  const limits = [...(low > 2 ? [`min=${low}`] : []), ...(high < Infinity ? [`max=${high}`] : [])];
  const guard = `${low} <= ${source} and ${source} <= ${high === Infinity ? "IntInfinity()" : high}`;
  throw new Failure(
    "UserError",
    `Not all values of ${name} = ${source} in the specified range${shownRange(found, name)} satisfy the generated guard ${guard}`,
    `${name} = Dim('${name}', ${limits.join(", ")})`,
  );
}

// What torch.export.export makes of a program: {ranges, guards}.
function exported(program, rows, chosen, declared, bounds) {
  const ranges = {},
    guards = [],
    asked = [];
  [rows, COLUMNS].forEach((hint, place) => {
    const found = place === chosen ? symbolRange(hint, place, declared, bounds) : null;
    if (!found) return guards.push([place, "==", hint]);
    const left = narrowed(program, place, hint, found);
    refuseNarrower(place, hint, declared, found, left);
    if (!same(left, found) && left[0] === left[1]) return asked.push([place, "==", hint]);
    const [low, high] = left;
    if (low > 2) guards.push([place, ">=", low]);
    if (high < Infinity) guards.push([place, "<=", high]);
    if (!same(left, found) && hint > 4) asked.push([place, ">", 4]);
    ranges[SIZES[place][1]] = [{ Dim: 0, range: bounds[0] }[declared] ?? low, high];
  });
  return { ranges, guards: [...guards, ...asked] };
}

// ---- a call

// What each element is, if the input is made of ones.
function valueOf(program, sizes, dtype) {
  const yes = { double: true, more: sizes[0] > 4, one: sizes[0] === 1, dims: sizes.length === 2, dtype: dtype === "float32" };
  if (program === "matrix") return 3;
  return program === "length" ? sizes[0] : yes[program] ? 2 : -1;
}

// The shape and the elements, or the error of the operator.
function answer(program, sizes, value) {
  if (program === "matrix") {
    if (sizes.at(-1) !== 3) return "RuntimeError";
    sizes = [...sizes.slice(0, -1), 2];
  }
  return `shape (${sizes.join(", ")}${sizes.length === 1 ? "," : ""}), ${sizes.every((n) => n) ? `each element ${value}` : "no elements"}`;
}

const COMPARISONS = { "==": (a, b) => a === b, ">=": (a, b) => a >= b, "<=": (a, b) => a <= b, ">": (a, b) => a > b };

// {lines: [text, "holds", "fails", "error" or "unasked"], error: of the first that does not hold}
function checked(guards, sizes) {
  let error = "";
  const lines = guards.map(([place, comparison, number]) => {
    const shown = `x.size()[${place}] ${comparison} ${number}`;
    if (error) return [shown, "unasked"];
    if (place >= sizes.length) {
      error = "IndexError: tuple index out of range";
      return [shown, "error"];
    }
    if (COMPARISONS[comparison](sizes[place], number)) return [shown, "holds"];
    error = `AssertionError: Guard failed: ${shown}`;
    return [shown, "fails"];
  });
  return { lines, error };
}

// ---- what there is to see

const DECLARED = {
  Dim: (name) => `Dim("${name}")`,
  range: (name, [low, high]) => `Dim("${name}", min=${low}, max=${high})`,
  DYNAMIC: () => "Dim.DYNAMIC",
  AUTO: () => "Dim.AUTO",
};
const ENDINGS = {
  none: "The export is refused.",
  same: "The model and its program agree.",
  wrong: "The model and its program differ, and no guard says so.",
  refused: "A guard refuses what the model takes.",
  both: "Neither the model nor its program takes it.",
};

function script({ program, rows, declared, bounds, call, dtype }, place) {
  const dims = declared === "static" ? "" : `, dynamic_shapes={"x": {${place}: ${DECLARED[declared](SIZES[place][0], bounds)}}}`;
  return [
    "class Model(nn.Module):",
    "    def forward(self, x):",
    `        ${BODIES[program]}`,
    `ep = export(Model(), (torch.ones(${rows}, ${COLUMNS}),)${dims})`,
    `ep.module()(torch.ones(${call.join(", ")}${dtype === "float32" ? "" : `, dtype=torch.${dtype}`}))`,
  ];
}

function model(inputs) {
  const { program, call: sizes, dtype, rows, declared, bounds } = inputs,
    place = Number(inputs.size);
  const found = { source: script(inputs, place), model: answer(program, sizes, valueOf(program, sizes, dtype)) };
  let made;
  try {
    made = exported(program, rows, place, declared, bounds);
  } catch (failure) {
    if (!(failure instanceof Failure)) throw failure;
    return { ...found, outcome: failure.lines, guards: [], program: "", verdict: "none", say: `${ENDINGS.none} ${failure.lines[0].split(":")[0]}.` };
  }
  const unique = made.guards.filter((guard, i) => made.guards.findIndex((other) => String(other) === String(guard)) === i);
  const { lines, error } = checked(unique, sizes);
  const result = error || answer(program, sizes, valueOf(program, [rows, COLUMNS], "float32"));
  const verdict = found.model === "RuntimeError" ? "both" : error ? "refused" : result === found.model ? "same" : "wrong";
  const shown = Object.entries(made.ranges).map(([s, [low, high]]) => `${s}: VR[${low}, ${high === Infinity ? "int_oo" : high}]`);
  return {
    ...found,
    outcome: [`range_constraints: {${shown.join(", ")}}`],
    guards: lines,
    program: result,
    verdict,
    say: `${ENDINGS[verdict]} Model: ${found.model}. Program: ${result}.`,
  };
}
