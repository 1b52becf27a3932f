"""A function of a tensor, what three tracers record of it for an example, and what the recordings answer to another input
(the chapter "JIT: tracing").

In PyTorch: `torch/jit/_trace.py`, `torch/fx/experimental/proxy_tensor.py`, `torch/export/_trace.py`.
`tests/viz/test_three_tracers.py` captures the same functions with PyTorch.
"""

from collections.abc import Callable
from dataclasses import dataclass

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integers, Switch
from readtorch.viz.picture import box, drawing, text

ROWS, BRANCH = "the rows", "the branch"


class Failed(Exception):
    """What PyTorch raises when a recording runs."""


@dataclass
class Recording:
    """lines: [text, what of the example stands in it]. run: from an input to the result."""

    lines: list
    run: Callable
    warning: str = ""


@dataclass
class Program:
    """values(x, scale): what the function returns, and the numbers of the lines that run."""

    title: str
    source: list
    values: Callable
    trace: Callable
    make_fx: Callable
    export: Callable


def doubled(x):
    return [2 * v for v in x]


def flipped(x):
    return [-v for v in x]


def times(x, number):
    return [v * number for v in x]


# ---- the lines of a recording


def tensor_type(x):
    return f"Float({len(x)})"


def constant(name, kind, value):
    return f"{name} : {kind}() = prim::Constant[value={{{value}}}]()"


def product(x, first, kind, value, note):
    """x times a constant, as the tracer writes it."""
    made = f"%{first + 1} : {tensor_type(x)} = aten::mul(%x, %{first})"
    return [
        [constant(f"%{first}", kind, value), note],
        [made, note if note == BRANCH else ""],
        [f"return (%{first + 1})", ""],
    ]


def negative(x, number, note):
    return [[f"%{number} : {tensor_type(x)} = aten::neg(%x)", note], [f"return (%{number})", ""]]


def fx_lines(*bodies, result, is_export):
    """bodies: (text, note)"""
    given = f"({result},)" if is_export else result
    return [[body, note] for body, note in bodies] + [[f"return {given}", ""]]


def name_of(is_export):
    return "x" if is_export else "x_1"


def one_call(call, note, is_export):
    """The lines of a recording with one call. call: text with x for the input's name."""
    result = call.split(".")[1]
    body = f"{result} = {call.replace('(x', f'({name_of(is_export)}')}"
    return fx_lines((body, note), result=result, is_export=is_export)


# ---- errors


TAKEN_OUT = (
    "RuntimeError: It appears that you're trying to get value out of a tracing tensor with aten._local_scalar_dense.default - "
    "erroring out!"
)
UNKNOWN = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1)"
SPECIALIZED = "UserError: You marked rows as dynamic but your code specialized it to be a constant ({rows})."
ONE_ROW = "torch.export makes a size of 0 or 1 a constant, whatever the program does: give it two rows."
BOUNDED = (
    "UserError: Not all values of rows = L['x'].size()[0] in the specified range satisfy the generated guard "
    "3 <= L['x'].size()[0]"
)
BECOMES = "TracerWarning: Converting a tensor to a Python {kind} might cause the trace to be incorrect."
MIGHT = "TracerWarning: {what} might cause the trace to be incorrect."


def refuse_capture(sentence):
    raise Failed(sentence)


def taken_out(x, scale):
    refuse_capture(TAKEN_OUT)


def guarded(x, recording):
    """An exported program without dynamic sizes: it refuses another number of rows."""
    rows = len(x)

    def run(y):
        if len(y) != rows:
            raise Failed(f"AssertionError: Guard failed: x.size()[0] == {rows}")
        return recording.run(y)

    guard = [f"guard: x.size()[0] == {rows}", ROWS]
    return Recording([guard, *recording.lines], run)


def ranged(x, recording, symbols=""):
    """An exported program for any number of rows. PyTorch takes an example of one row for a constant."""
    if len(x) == 1:
        refuse_capture(SPECIALIZED.format(rows=1))
    return Recording([[f"range: {{{symbols}s77: VR[0, int_oo]}}", ""], *recording.lines], recording.run)


def fixed_rows(x, dynamic, recording):
    """An export of a program that holds for this number of rows only."""
    if dynamic:
        refuse_capture(SPECIALIZED.format(rows=len(x)))
    return guarded(x, recording)


def any_rows(x, dynamic, recording, symbols=""):
    return ranged(x, recording, symbols) if dynamic else guarded(x, recording)


# ---- the programs


def branch_trace(x, scale):
    warning = BECOMES.format(kind="boolean")
    if sum(x) > 0:
        return Recording(product(x, 5, "Long", 2, BRANCH), doubled, warning)
    return Recording(negative(x, 5, BRANCH), flipped, warning)


def branch_values(x, scale):
    return (doubled(x), [1, 2]) if sum(x) > 0 else (flipped(x), [1, 3])


def chosen(x):
    return doubled(x) if sum(x) > 0 else flipped(x)


def where_trace(x, scale):
    kind = tensor_type(x)
    lines = [
        "%1 : NoneType = prim::Constant()", "%2 : Float() = aten::sum(%x, %1)", "%3 : int = prim::Constant[value=0]()",
        "%4 : Bool() = aten::gt(%2, %3)", constant("%5", "Long", 2), f"%6 : {kind} = aten::mul(%x, %5)",
        f"%7 : {kind} = aten::neg(%x)", f"%8 : {kind} = aten::where(%4, %6, %7)", "return (%8)",
    ]  # fmt: skip
    return Recording([[line, ""] for line in lines], chosen)


def where_lines(is_export):
    x = name_of(is_export)
    bodies = [
        f"sum_1 = aten.sum.default({x})", "gt = aten.gt.Scalar(sum_1, 0)", f"mul = aten.mul.Tensor({x}, 2)",
        f"neg = aten.neg.default({x})", "where = aten.where.self(gt, mul, neg)",
    ]  # fmt: skip
    return fx_lines(*[(body, "") for body in bodies], result="where", is_export=is_export)


def size_trace(x, scale):
    lines = [
        "%1 : int = prim::Constant[value=0]()", "%2 : int = aten::size(%x, %1)", "%3 : Long() = prim::NumToTensor(%2)",
        f"%4 : {tensor_type(x)} = aten::mul(%x, %3)", "return (%4)",
    ]  # fmt: skip
    return Recording([[line, ""] for line in lines], lambda y: times(y, len(y)))


def size_fx(x, scale, is_export=False):
    rows = len(x)
    return Recording(one_call(f"aten.mul.Tensor(x, {rows})", ROWS, is_export), lambda y: times(y, rows))


def size_export(x, scale, dynamic):
    if not dynamic:
        return guarded(x, size_fx(x, scale, True))
    lines = [["sym_size_int_1 = aten.sym_size.int(x, 0)", ""], ["mul = aten.mul.Tensor(x, sym_size_int_1)", ""]]
    return ranged(x, Recording([*lines, ["return (mul,)", ""]], lambda y: times(y, len(y))))


def rows_trace(x, scale):
    warning = BECOMES.format(kind="boolean")
    if len(x) > 2:
        return Recording(product(x, 6, "Long", 2, BRANCH), doubled, warning)
    return Recording(negative(x, 6, BRANCH), flipped, warning)


def rows_fx(x, scale, is_export=False):
    if len(x) > 2:
        return Recording(one_call("aten.mul.Tensor(x, 2)", BRANCH, is_export), doubled)
    return Recording(one_call("aten.neg.default(x)", BRANCH, is_export), flipped)


def rows_export(x, scale, dynamic):
    if dynamic and len(x) > 2:
        refuse_capture(BOUNDED)
    return fixed_rows(x, dynamic, rows_fx(x, scale, True))


def number_trace(x, scale):
    largest = max(x)
    lines = product(x, 2, "Double", f"{largest:g}", "x.max()")
    return Recording(lines, lambda y: times(y, largest), BECOMES.format(kind="number"))


def number_export(x, scale, dynamic):
    bodies = ["max_1 = aten.max.default(x)", "item = aten.item.default(max_1)", "mul = aten.mul.Tensor(x, item)"]
    lines = [[body, ""] for body in [*bodies, "return (mul,)"]]
    return any_rows(x, dynamic, Recording(lines, lambda y: times(y, max(y))), "zuf0: VR[-oo, oo], ")


def length_trace(x, scale):
    rows = len(x)
    return Recording(
        product(x, 4, "Long", rows, "len(x)"),
        lambda y: times(y, rows),
        MIGHT.format(what="Using len to get tensor shape"),
    )


def length_fx(x, scale, is_export=False):
    rows = len(x)
    return Recording(one_call(f"aten.mul.Tensor(x, {rows})", "len(x)", is_export), lambda y: times(y, rows))


def numbered(name, count):
    """Names as the tracer gives them to one variable: v.1, v.3, v."""
    return [f"%{name}.{2 * i + 1}" for i in range(count - 1)] + [f"%{name}"] * (count > 0)


def loop_trace(x, scale):
    rows = len(x)
    parts, totals = numbered("v", rows), numbered("total", rows - 1)
    at = 3 + rows
    lines = [["%1 : int = prim::Constant[value=0]()", ""], ["%2 : Tensor[] = aten::unbind(%x, %1)", ""]]
    lines.append([", ".join(f"{part} : Float()" for part in parts) + " = prim::ListUnpack(%2)", ROWS])
    lines.append([constant(f"%{at}", "Long", 0), ""])
    before = f"%{at}"
    for i, part in enumerate(parts):
        alpha = f"%{at + 1 + 2 * i}"
        made = totals[i] if i < rows - 1 else f"%{at + 2 * rows}"
        lines.append([f"{alpha} : int = prim::Constant[value=1]()", ""])
        operands = f"{before}, {part}" if i else f"{part}, {before}"
        lines.append([f"{made} : Float() = aten::add({operands}, {alpha})", ROWS])
        before = made
    lines.append([f"return ({before})", ""])

    def run(y):
        if len(y) != rows:
            raise Failed(f"RuntimeError: Expected {rows} elements in a list but found {len(y)}")
        return sum(y, 0.0)

    return Recording(lines, run, MIGHT.format(what="Iterating over a tensor"))


def suffixed(name, i):
    return f"{name}_{i}" if i else name


def loop_fx(x, scale, is_export=False):
    rows = len(x)
    lines = [[f"unbind = aten.unbind.int({name_of(is_export)})", ""]]
    lines += [[f"{suffixed('getitem', i)} = unbind[{i}]", ROWS] for i in range(rows)]
    for i in range(rows):
        part = suffixed("getitem", i)
        operands = f"{suffixed('add', i - 1)}, {part}" if i else f"{part}, 0"
        lines.append([f"{suffixed('add', i)} = aten.add.Tensor({operands})", ROWS])
    result = suffixed("add", rows - 1)
    lines.append([f"return ({result},)" if is_export else f"return {result}", ""])

    def run(y):
        if len(y) < rows:
            raise Failed("IndexError: list index out of range")
        return sum(y[:rows], 0.0)

    return Recording(lines, run)


def setting_trace(x, scale):
    return Recording(product(x, 1, "Long", scale, "scale"), lambda y: times(y, scale))


def setting_fx(x, scale, is_export=False):
    return Recording(one_call(f"aten.mul.Tensor(x, {scale})", "scale", is_export), lambda y: times(y, scale))


PROGRAMS = {
    "branch": Program(
        "a branch on values",
        ["def f(x):", "    if x.sum() > 0:", "        return x * 2", "    return -x"],
        branch_values,
        branch_trace,
        taken_out,
        lambda x, scale, dynamic: refuse_capture(UNKNOWN),
    ),
    "where": Program(
        "torch.where",
        ["def f(x):", "    return torch.where(x.sum() > 0, x * 2, -x)"],
        lambda x, scale: (chosen(x), [1]),
        where_trace,
        lambda x, scale: Recording(where_lines(False), chosen),
        lambda x, scale, dynamic: any_rows(x, dynamic, Recording(where_lines(True), chosen)),
    ),
    "size": Program(
        "a size",
        ["def f(x):", "    return x * x.shape[0]"],
        lambda x, scale: (times(x, len(x)), [1]),
        size_trace,
        size_fx,
        size_export,
    ),
    "rows": Program(
        "a branch on a size",
        ["def f(x):", "    if x.shape[0] > 2:", "        return x * 2", "    return -x"],
        lambda x, scale: (doubled(x), [1, 2]) if len(x) > 2 else (flipped(x), [1, 3]),
        rows_trace,
        rows_fx,
        rows_export,
    ),
    "length": Program(
        "len()",
        ["def f(x):", "    return x * len(x)"],
        lambda x, scale: (times(x, len(x)), [1]),
        length_trace,
        length_fx,
        lambda x, scale, dynamic: fixed_rows(x, dynamic, length_fx(x, scale, True)),
    ),
    "number": Program(
        "item()",
        ["def f(x):", "    return x * x.max().item()"],
        lambda x, scale: (times(x, max(x)), [1]),
        number_trace,
        taken_out,
        number_export,
    ),
    "loop": Program(
        "a loop over rows",
        ["def f(x):", "    total = 0", "    for v in x:", "        total = total + v", "    return total"],
        lambda x, scale: (sum(x, 0.0), [1, 2, 3, 4]),
        loop_trace,
        loop_fx,
        lambda x, scale, dynamic: fixed_rows(x, dynamic, loop_fx(x, scale, True)),
    ),
    "setting": Program(
        "a number from outside",
        ["def f(x):", "    return x * scale"],
        lambda x, scale: (times(x, scale), [1]),
        setting_trace,
        setting_fx,
        lambda x, scale, dynamic: any_rows(x, dynamic, setting_fx(x, scale, True)),
    ),
}


# ---- what there is to see


def written(value):
    """As tolist() prints it."""
    if isinstance(value, list):
        return f"[{', '.join(f'{v:.1f}' for v in value)}]"
    return f"{value:.1f}"


def captured(name, record, y, wanted):
    """One tracer: its recording, or why there is none; and what the recording answers."""
    shown = {"name": name, "lines": [], "warning": "", "error": "", "hint": "", "result": ""}
    try:
        recording = record()
    except Failed as error:
        hint = ONE_ROW if str(error) == SPECIALIZED.format(rows=1) else ""
        return {**shown, "error": str(error), "hint": hint, "verdict": "none"}
    shown |= {"lines": recording.lines, "warning": recording.warning}
    try:
        result = recording.run(y)
    except Failed as error:
        return {**shown, "result": str(error), "verdict": "fails"}
    return {**shown, "result": written(result), "verdict": "right" if result == wanted else "wrong"}


ENDINGS = {"none": "{0} records nothing", "fails": "{1} fails", "right": "{1} is right", "wrong": "{1} is wrong"}
NAMES = {"torch.jit.trace": "the trace", "make_fx": "make_fx's graph", "torch.export": "the exported program"}


def model(inputs):
    program = PROGRAMS[inputs["program"]]
    x, y = ([float(v) for v in inputs[name]] for name in ("example", "call"))
    then, now = inputs["scale"]
    dynamic = inputs["dynamic"]
    wanted, _ = program.values(y, now)
    _, ran = program.values(x, then)
    made = [
        captured("torch.jit.trace", lambda: program.trace(x, then), y, wanted),
        captured("make_fx", lambda: program.make_fx(x, then), y, wanted),
        captured("torch.export", lambda: program.export(x, then, dynamic), y, wanted),
    ]
    endings = [ENDINGS[one["verdict"]].format(one["name"], NAMES[one["name"]]) for one in made]
    say = (
        f"Recorded for {written(x)}, called with {written(y)}, where f returns {written(wanted)}: {'; '.join(endings)}."
    )
    return {"source": program.source, "ran": ran, "wanted": written(wanted), "made": made, "say": say}


def picture(result, step):
    parts = [text(line, 10, 22 + 16 * i, "mono") for i, line in enumerate(result["source"])]
    y = 34 + 16 * len(result["source"])
    shades = {"right": "pale", "wrong": "gold", "fails": "free", "none": "free"}
    for one in result["made"]:
        parts.append(text(one["name"], 10, y + 14, "bold"))
        rows = [line for line, _ in one["lines"]] or [one["error"]]
        parts += [text(line[:100], 20, y + 32 + 16 * i, "mono") for i, line in enumerate(rows)]
        y += 26 + 16 * len(rows)
        parts.append(box(20, y, 330, 22, shades[one["verdict"]], (one["result"] or "no recording")[:44]))
        y += 34
    return drawing(720, y + 4, *parts)


def sample(random):
    some = lambda: [random.randint(-3, 5) for _ in range(random.randint(1, 4))]
    example = some()
    call = random.choice([some(), [random.randint(-3, 3) for _ in example]])
    return {"example": example, "call": call}


FIGURE = Figure(
    name="three_tracers",
    title="One example, three recordings",
    inputs=(
        Choice("program", "function", "branch", {name: program.title for name, program in PROGRAMS.items()}),
        Integers("example", "example", [1, 1], low=-99, high=99, longest=4, shortest=1),
        Integers("call", "then call with", [-1, -2, -3], low=-99, high=99, longest=4, shortest=1),
        Integers(
            "scale", "scale: example, call", [2, 100], low=-99, high=100, longest=2, shortest=2, only=("program", "setting")
        ),
        Switch("dynamic", "export: rows may vary", True),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
