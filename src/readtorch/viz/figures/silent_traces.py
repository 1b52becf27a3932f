"""Ten programs whose trace answers otherwise than the function, and of which the tracer says nothing (the chapter "JIT: tracing").

In PyTorch: `torch/jit/_trace.py`. `tests/viz/test_silent_traces.py` runs the same programs with PyTorch.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integers
from readtorch.viz.picture import box, drawing, text

ROWS, BRANCH = "the rows", "the branch"


@dataclass
class Answer:
    """What a call returns, and the gradient of its sum for the input; None where none arrives. Or the error."""

    values: object = None
    gradient: list | None = None
    error: str = ""


@dataclass
class Case:
    """A program, traced for an example and then called.

    before, body, after: its lines before the function, the function, and what changes between trace and call.
    ran: the numbers of the body's lines that run for the example. lines: the graph's, [text, what of the example stands in it].
    """

    body: list
    ran: list
    lines: list
    function: Answer
    trace: Answer
    why: str
    before: list = field(default_factory=list)
    traced: str = "f"
    after: list = field(default_factory=list)


# ---- the lines of a graph


def tensor_type(x):
    return f"Float({len(x)})"


def constant(number, kind, value, note=""):
    return [f"%{number} : {kind} = prim::Constant[value={value}]()", note]


def product(x, first, number, note="", of="%x", branch=""):
    """The input, or another value, times a number."""
    made = f"%{first + 1} : {tensor_type(x)} = aten::mul({of}, %{first})"
    return [constant(first, "Long()", f"{{{number}}}", note or branch), [made, branch], [f"return (%{first + 1})", ""]]


def negative(x, number):
    return [[f"%{number} : {tensor_type(x)} = aten::neg(%x)", BRANCH], [f"return (%{number})", ""]]


def elements(x):
    """A tensor's elements as a graph prints them, in columns as wide as the widest and its sign."""
    if len(x) == 1:
        return f"{{{x[0]:g}}}"
    wide = 1 + max(len(f"{abs(v):g}") for v in x)
    return f"{' '.join(f'{v:>{wide}g}' for v in x)} [ CPUFloatType{{{len(x)}}} ]"


# ---- the programs: from the example, the input of the call and the other inputs


def times(x, number):
    return Answer([number * v for v in x], [float(number)] * len(x))


def doubled_or_flipped(x, doubles):
    return times(x, 2 if doubles else -1)


def row_lines(rows):
    """Two constants, a row and an addition, for each row; the first addition is to the number 0."""
    lines, at, before = [], 4, None
    for i in range(rows):
        row = at + 2
        lines += [constant(at, "int", 0), constant(at + 1, "int", i, ROWS)]
        lines.append([f"%{row} : Float() = aten::select(%x, %{at}, %{at + 1})", ROWS])
        if i == 0:
            lines.append(constant(at + 3, "Long()", "{0}"))
        alpha = at + 3 + (i == 0)
        lines.append(constant(alpha, "int", 1))
        left = rows - 2 - i  # totals that are still to be named after this one
        made = f"%{alpha + 1}" if left < 0 else f"%total.{2 * i + 1}" if left else "%total"
        operands = f"%{row}, %{at + 3}" if i == 0 else f"{before}, %{row}"
        lines.append([f"{made} : Float() = aten::add({operands}, %{alpha})", ROWS])
        before, at = made, alpha + 2
    return [*lines, [f"return ({before})", ""]]


def rows(x, y, inputs):
    used = min(len(x), len(y))
    trace = Answer(sum(y[:used]), [1.0] * used + [0.0] * (len(y) - used))
    if len(y) < len(x):
        error = f"RuntimeError: select(): index {len(y)} out of range for tensor of size [{len(y)}] at dimension 0"
        trace = Answer(error=error)
    return Case(
        [
            "def f(x):",
            "    total = 0",
            "    for i in range(x.shape[0]):",
            "        total = total + x[i]",
            "    return total",
        ],
        [1, 2, 3, 4],
        row_lines(len(x)),
        Answer(sum(y), [1.0] * len(y)),
        trace,
        "range() takes a Python int from x.shape[0], so the loop is recorded row by row, for the rows of the example.",
    )


def equal(x, y, inputs):
    positive = lambda x: all(v >= 0 for v in x)
    return Case(
        ["def f(x):", "    if torch.equal(x.abs(), x):", "        return x * 2", "    return -x"],
        [1, 2] if positive(x) else [1, 3],
        product(x, 2, 2, branch=BRANCH) if positive(x) else negative(x, 2),
        doubled_or_flipped(y, positive(y)),
        doubled_or_flipped(y, positive(x)),
        "torch.equal returns a bool and no tensor, so it has no node: only the branch that ran is recorded.",
    )


def split(x, y, inputs):
    return Case(
        ["def f(x):", "    pieces = x.split(1)", "    return x * len(pieces)"],
        [1, 2],
        product(x, len(x) + 4, len(x), "the pieces"),
        times(y, len(y)),
        times(y, len(x)),
        "The length of the list that split returns is a number of Python, like that of any list: nothing is converted.",
    )


def number(x, y, inputs):
    then, now = inputs["scale"]
    return Case(
        ["def f(x):", "    return x * scale"],
        [1],
        product(x, 1, then, "scale"),
        times(y, now),
        times(y, then),
        "A number of Python never was a tensor: the trace has the value of that moment.",
        before=[f"scale = {then}"],
        after=[f"scale = {now}"],
    )


def flag(x, y, inputs):
    then, now = inputs["modes"].split("-")
    return Case(
        ["class Net(torch.nn.Module):", "    def forward(self, x):", "        if self.training:", "            return x * 2", "        return -x"],
        [2, 3] if then == "train" else [2, 4],
        product(x, 4, 2, branch=BRANCH) if then == "train" else negative(x, 4),
        doubled_or_flipped(y, now == "train"),
        doubled_or_flipped(y, then == "train"),
        "self.training is a bool of Python: the branch is recorded, and no node reads the attribute that train() and eval() set.",
        traced=f"f = Net().{then}(); f",
        after=[f"f.{now}(); traced.{now}()"],
    )  # fmt: skip


def outside(x, y, inputs):
    new, flat = inputs["change"] == "new", inputs["change"] == "number"
    plus = lambda number: Answer([v + number for v in y], [1.0] * len(y))
    why = "bias is neither an input nor a parameter, so it is a constant, and the constant is the tensor itself: "
    why += "a new tensor under its name is not seen." if new else "a write to it is seen."
    if flat:
        why = "At its first run, which was the check's, a trace makes numbers of constants without dimensions. "
        why += "The graph shows the write, and what runs does not."
    return Case(
        ["def f(x):", "    return x + bias"],
        [1],
        [
            constant(1, "Float()" if flat else "Float(1)", "{0}" if new else "{5}", "bias"),
            constant(2, "int", 1),
            [f"%3 : {tensor_type(x)} = aten::add(%x, %1, %2)", ""],
            ["return (%3)", ""],
        ],
        plus(5),
        plus(0 if new or flat else 5),
        why,
        before=[f"bias = torch.zeros({'()' if flat else 1})"],
        after=["bias = torch.full((1,), 5.0)" if new else "bias.fill_(5)"],
    )


def grad_mode(x, y, inputs):
    tripled = [3 * v for v in y]
    return Case(
        ["def f(x):", "    with torch.no_grad():", "        y = x * 2", "    return y + x"],
        [1, 2, 3],
        [
            constant(1, "Long()", "{2}"),
            [f"%y : {tensor_type(x)} = aten::mul(%x, %1)", ""],
            constant(3, "int", 1),
            [f"%4 : {tensor_type(x)} = aten::add(%y, %x, %3)", ""],
            ["return (%4)", ""],
        ],
        Answer(tripled, [1.0] * len(y)),
        Answer(tripled, [3.0] * len(y)),
        "no_grad() is no operator: of it the graph has nothing, and Autograd records the multiplication as well.",
    )


def hook(x, y, inputs):
    return Case(
        [
            "def f(x):",
            "    y = x * 2",
            "    if y.requires_grad:",
            "        y.register_hook(lambda g: g * 100)",
            "    return y",
        ],
        [1, 2, 4],
        product(x, 1, 2),
        Answer(times(y, 2).values, [200.0] * len(y)),
        times(y, 2),
        "register_hook is no operator, so the trace knows no hook, whether or not the example requires a gradient.",
    )


def data(x, y, inputs):
    doubled = lambda x: Answer([2 * v for v in x])
    return Case(
        ["def f(x):", "    return x.data * 2"],
        [1],
        [constant(1, tensor_type(x), elements(x), "the example"), *product(x, 2, 2, of="%1")],
        doubled(y),
        doubled(x),
        "x.data is a tensor that the trace has not seen: it is a constant, with the example's elements, and x is not used.",
    )


def thread(x, y, inputs):
    trace = Answer([4 * v for v in x])
    return Case(
        [
            "def f(x):",
            "    with ThreadPoolExecutor(1) as other:",
            "        y = other.submit(torch.add, x, x).result()",
            "    return y * 2",
        ],
        [1, 2, 3],
        [constant(1, tensor_type(x), elements([2 * v for v in x]), "the example"), *product(x, 2, 2, of="%1")],
        times(y, 4),
        trace,
        "The key is switched on for one thread. What another computes is not recorded: its result is a constant, and x is not used.",
        before=["from concurrent.futures import ThreadPoolExecutor"],
    )


@dataclass
class Program:
    title: str
    case: Callable


PROGRAMS = {
    "rows": Program("1: range(x.shape[0])", rows),
    "equal": Program("2: torch.equal", equal),
    "split": Program("3: x.split", split),
    "number": Program("4: scale", number),
    "flag": Program("5: self.training", flag),
    "outside": Program("6: bias", outside),
    "grad_mode": Program("7: no_grad()", grad_mode),
    "hook": Program("7: register_hook", hook),
    "data": Program("8: x.data", data),
    "thread": Program("9: ThreadPoolExecutor", thread),
}

# ---- what there is to see


def written(value):
    """As tolist() prints it."""
    if isinstance(value, list):
        return f"[{', '.join(f'{v:.1f}' for v in value)}]"
    return f"{value:.1f}"


def shown(answer):
    """The lines that print an answer."""
    if answer.error:
        return [answer.error]
    gradient = "no gradient" if answer.gradient is None else f"gradient {written(answer.gradient)}"
    return [f"returns {written(answer.values)}", gradient]


def verdict(function, trace):
    if trace.error:
        return "fails"
    if trace.values != function.values:
        return "wrong"
    return "right" if trace.gradient == function.gradient else "gradient"


ENDINGS = {
    "right": "the trace returns the same",
    "wrong": "the trace returns {}",
    "gradient": "the trace returns the same, but another gradient",
    "fails": "the trace fails",
}


def script(case):
    """The whole program as [text, "", "ran" or "missed"]."""
    marks = [
        "" if i == 0 or line.lstrip().startswith("def ") else "ran" if i in case.ran else "missed"
        for i, line in enumerate(case.body)
    ]
    setup, _, name = case.traced.rpartition("; ")
    plain = [*([setup] if setup else []), f"traced = torch.jit.trace({name}, example)", *case.after]
    return (
        [[line, ""] for line in case.before] + list(map(list, zip(case.body, marks))) + [[line, ""] for line in plain]
    )


def model(inputs):
    x, y = ([float(v) for v in inputs[name]] for name in ("example", "call"))
    case = PROGRAMS[inputs["program"]].case(x, y, inputs)
    ending = verdict(case.function, case.trace)
    then = ENDINGS[ending].format(written(case.trace.values) if ending == "wrong" else "")
    say = f"Traced for {written(x)} without a warning. For {written(y)} the function returns {written(case.function.values)}; {then}."
    answers = {"function": shown(case.function), "trace": shown(case.trace)}
    return {"source": script(case), "lines": case.lines, **answers, "verdict": ending, "why": case.why, "say": say}


def picture(result, step):
    y, parts = 22, []
    for line, mark in result["source"]:
        parts.append(text(line, 10, y, "mono dim" if mark == "missed" else "mono"))
        y += 16
    for line, _ in result["lines"]:
        parts.append(text(line[:100], 24, y + 8, "mono"))
        y += 16
    for name in ("function", "trace"):
        shade = "pale" if name == "function" or result["verdict"] == "right" else "gold"
        parts.append(box(10, y + 12, 560, 24, shade, f"{name}: {'; '.join(result[name])}"[:78]))
        y += 32
    return drawing(580, y + 20, *parts)


def sample(random):
    some = lambda longest: [random.randint(-99, 99) for _ in range(random.randint(1, longest))]
    example = some(3)
    call = random.choice([some(4), [random.randint(0, 9) for _ in example]])
    return {"example": example, "call": call}


FIGURE = Figure(
    name="silent_traces",
    title="Wrong without a warning",
    inputs=(
        Choice("program", "program", "equal", {name: program.title for name, program in PROGRAMS.items()}),
        Integers("example", "example", [1, 1], low=-99, high=99, longest=3, shortest=1),
        Integers("call", "then call with", [-1, -2, -3], low=-99, high=99, longest=4, shortest=1),
        Integers("scale", "scale: then, now", [2, 100], low=-99, high=100, longest=2, shortest=2, only=("program", "number")),
        Choice(
            "modes", "mode: then, now", "train-eval",
            {f"{a}-{b}": f"{a}, then {b}" for a in ("train", "eval") for b in ("eval", "train")},
            only=("program", "flag"),
        ),
        Choice(
            "change", "bias", "new",
            {"new": "becomes a new tensor", "write": "is written to", "number": "is written to, and has no dimensions"},
            only=("program", "outside"),
        ),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
