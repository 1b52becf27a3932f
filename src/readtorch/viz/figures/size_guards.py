"""Which sizes an exported program takes: what is declared, what the program asks, and the guards that come of both (the chapter "export and ONNX").

In PyTorch: `torch/export/dynamic_shapes.py` declares, `torch/fx/experimental/symbolic_shapes.py` answers, `torch/export/_unlift.py` writes
the guards. `tests/viz/test_size_guards.py` exports the same programs with PyTorch.
"""

import math
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Integer, Integers
from readtorch.viz.picture import box, drawing, text

COLUMNS = 3  # of the example
SIZES = [("rows", "s77"), ("columns", "s27")]  # the name of a size's Dim, and of its symbol
SPECIALIZED = "You marked {} as dynamic but your code specialized it to be a constant ({})."
BODIES = {
    "double": "return x * 2",
    "matrix": "return x @ x.new_ones(3, 2)",
    "more": "return x * 2 if x.shape[0] > 4 else -x",
    "one": "return x * 2 if x.shape[0] == 1 else -x",
    "length": "return x * len(x)",
    "dims": "return x * 2 if x.dim() == 2 else -x",
    "dtype": "return x * 2 if x.dtype == torch.float32 else -x",
}


class Failure(Exception):
    """An error of PyTorch's, by the name of its type, and what it suggests."""

    def __init__(self, kind, sentence, fix=""):
        self.lines = [f"{kind}: {sentence}", *([f"Suggested fix: {fix}"] if fix else [])]


@dataclass
class Exported:
    """ranges: symbol -> (lowest, highest). guards: (number of the size, comparison, number), in the order in which they are checked."""

    ranges: dict = field(default_factory=dict)
    guards: list = field(default_factory=list)


# ---- the export


def symbol_range(hint, name, declared, bounds):
    """(lowest, highest) of a size's symbol, None where the size gets none. Below 2 there are no symbols."""
    low, high = bounds if declared == "range" else (0, math.inf)
    if low >= high:
        raise Failure("AssertionError", f"Cannot create Dim with inconsistent min={low}, max={high}")
    if declared == "static":
        return None
    if hint < 2:
        if declared == "AUTO":
            return None
        if declared == "DYNAMIC":
            place = SIZES.index(name)
            raise Failure(
                "ValueError",
                f"Received user-specified dim hint Dim.DYNAMIC(min=None, max=None), but export 0/1 specialized due to hint of {hint} for dimension inputs['x'].shape[{place}].",
            )
        raise Failure("UserError", SPECIALIZED.format(name[0], hint), f"{name[0]} = {hint}")
    if high < 2:
        raise Failure("ValueRangeError", f"Invalid ranges [2:{high}]")
    if not max(low, 2) <= hint <= high:
        raise Failure("ConstraintViolationError", f"{hint} not in range [{max(low, 2)}, {high}]")
    return max(low, 2), high


def narrowed(program, place, hint, found):
    """The range after the program's questions about the size."""
    if (program, place) in (("length", 0), ("matrix", 1)):
        return hint, hint
    if (program, place) != ("more", 0):
        return found
    return (max(found[0], 5), found[1]) if hint > 4 else (found[0], min(found[1], 4))


def shown_range(low, high, name):
    """The range that was declared, as an error has it."""
    if high == math.inf:
        return ""
    return f" {low} <= {name} <= {high}" if low > 2 else f" {name} <= {high}"


def refuse_narrower(name, place, hint, declared, found, left):
    """Raise Failure where the program works for fewer sizes than were declared by name."""
    source = f"L['x'].size()[{place}]"
    low, high = left
    if left == found or declared == "AUTO":
        return
    if low == high:
        named = (source, "") if declared == "DYNAMIC" else (name, f"{name} = {hint}")
        raise Failure("UserError", SPECIALIZED.format(named[0], hint), named[1])
    if declared != "DYNAMIC":
        limits = ([f"min={low}"] if low > 2 else []) + ([f"max={high}"] if high < math.inf else [])
        raise Failure(
            "UserError",
            f"Not all values of {name} = {source} in the specified range{shown_range(*found, name)} satisfy the generated guard "
            f"{low} <= {source} and {source} <= {'IntInfinity()' if high == math.inf else high}",
            f"{name} = Dim('{name}', {', '.join(limits)})",
        )


def export(program, rows, place, declared, bounds):
    """What torch.export.export makes of a program. Raises Failure."""
    hints, made, asked = [rows, COLUMNS], Exported(), []
    for i, hint in enumerate(hints):
        name, symbol = SIZES[i]
        found = symbol_range(hint, SIZES[i], declared, bounds) if i == place else None
        left = found and narrowed(program, i, hint, found)
        if found is None:
            made.guards.append((i, "==", hint))
            continue
        refuse_narrower(name, i, hint, declared, found, left)
        if left != found and left[0] == left[1]:
            asked.append((i, "==", hint))
            continue
        low, high = left
        made.guards += [(i, ">=", low)] * (low > 2) + [(i, "<=", high)] * (high < math.inf)
        if left != found and hint > 4:
            asked.append((i, ">", 4))
        given = {"Dim": 0, "range": bounds[0]}.get(declared, low)
        made.ranges[symbol] = (given, high)
    made.guards += asked
    return made


# ---- a call


def value_of(program, sizes, dtype):
    """What each element is, if the input is made of ones."""
    yes = {
        "double": True,
        "more": sizes[0] > 4,
        "one": sizes[0] == 1,
        "dims": len(sizes) == 2,
        "dtype": dtype == "float32",
    }
    if program == "matrix":
        return 3
    return sizes[0] if program == "length" else 2 if yes[program] else -1


def answer(program, sizes, value):
    """The shape and the elements, or the error of the operator."""
    if program == "matrix":
        if sizes[-1] != 3:
            return "RuntimeError"
        sizes = [*sizes[:-1], 2]
    shape = f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"
    return f"shape {shape}, {f'each element {value}' if all(sizes) else 'no elements'}"


def holds(guard, sizes):
    """Whether a guard holds; None if it fails itself, for there is no such size."""
    place, comparison, number = guard
    if place >= len(sizes):
        return None
    size = sizes[place]
    return {"==": size == number, ">=": size >= number, "<=": size <= number, ">": size > number}[comparison]


def checked(guards, sizes):
    """([text, "holds", "fails", "error" or "unasked"], the error of the first that does not hold)."""
    lines, error = [], ""
    for guard in guards:
        shown = f"x.size()[{guard[0]}] {guard[1]} {guard[2]}"
        if error:
            lines.append([shown, "unasked"])
            continue
        result = holds(guard, sizes)
        lines.append([shown, "error" if result is None else "holds" if result else "fails"])
        if result is None:
            error = "IndexError: tuple index out of range"
        elif not result:
            error = f"AssertionError: Guard failed: {shown}"
    return lines, error


# ---- what there is to see

DECLARED = {"Dim": 'Dim("{}")', "range": 'Dim("{}", min={}, max={})', "DYNAMIC": "Dim.DYNAMIC", "AUTO": "Dim.AUTO"}
ENDINGS = {
    "none": "The export is refused.",
    "same": "The model and its program agree.",
    "wrong": "The model and its program differ, and no guard says so.",
    "refused": "A guard refuses what the model takes.",
    "both": "Neither the model nor its program takes it.",
}


def script(inputs, place):
    dims = ""
    if inputs["declared"] != "static":
        size = DECLARED[inputs["declared"]].format(SIZES[place][0], *inputs["bounds"])
        dims = f', dynamic_shapes={{"x": {{{place}: {size}}}}}'
    sizes = ", ".join(map(str, inputs["call"]))
    return [
        "class Model(nn.Module):",
        "    def forward(self, x):",
        f"        {BODIES[inputs['program']]}",
        f"ep = export(Model(), (torch.ones({inputs['rows']}, {COLUMNS}),){dims})",
        f"ep.module()(torch.ones({sizes}{', dtype=torch.' + inputs['dtype'] if inputs['dtype'] != 'float32' else ''}))",
    ]


def model(inputs):
    program, sizes, place = inputs["program"], inputs["call"], int(inputs["size"])
    found = {
        "source": script(inputs, place),
        "model": answer(program, sizes, value_of(program, sizes, inputs["dtype"])),
    }
    try:
        made = export(program, inputs["rows"], place, inputs["declared"], inputs["bounds"])
    except Failure as failure:
        found |= {"outcome": failure.lines, "guards": [], "program": "", "verdict": "none"}
        return {**found, "say": f"{ENDINGS['none']} {failure.lines[0].partition(':')[0]}."}
    lines, error = checked(dict.fromkeys(made.guards), sizes)
    recorded = value_of(program, [inputs["rows"], COLUMNS], "float32")
    result = error or answer(program, sizes, recorded)
    fails = found["model"] == "RuntimeError"
    verdict = "both" if fails else "refused" if error else "same" if result == found["model"] else "wrong"
    shown = ", ".join(
        f"{s}: VR[{low}, {'int_oo' if high == math.inf else high}]" for s, (low, high) in made.ranges.items()
    )
    found |= {"outcome": [f"range_constraints: {{{shown}}}"], "guards": lines, "program": result, "verdict": verdict}
    return {**found, "say": f"{ENDINGS[verdict]} Model: {found['model']}. Program: {result}."}


def picture(result, step):
    parts = [
        text(line[:100], 10, 22 + 16 * i, "mono") for i, line in enumerate([*result["source"], *result["outcome"]])
    ]
    y = 22 + 16 * len(parts)
    for line, state in result["guards"]:
        parts.append(text(f"{line}: {state}", 24, y, "mono"))
        y += 16
    for name in ("model", "program"):
        shade = "gold" if name == "program" and result["verdict"] != "same" else "pale"
        parts.append(box(10, y, 560, 24, shade, f"{name}: {result[name]}"[:90]))
        y += 30
    return drawing(640, y + 8, *parts)


def sample(random):
    """Examples of few rows, and calls near them."""
    rows = random.choice([0, 1, 2, 3, 4, 5, 6, 9])
    call = [random.choice([rows, 1, 0, 3, 5, 7]), random.choice([3, 3, 3, 1, 4]), random.choice([3, 2])]
    return {"rows": rows, "call": call[: random.choice([2, 2, 2, 1, 3])], "bounds": sorted(random.sample(range(10), 2))}


FIGURE = Figure(
    name="size_guards",
    title="Sizes and guards",
    inputs=(
        Choice("program", "forward", "one", BODIES),
        Integer("rows", "example's rows", 4, low=0, high=9),
        Choice("size", "declared size", "0", {"0": "0, the rows", "1": "1, the columns"}),
        Choice(
            "declared", "as", "Dim",
            {"static": "nothing", "Dim": "Dim(name)", "range": "Dim(name, min, max)", "DYNAMIC": "Dim.DYNAMIC", "AUTO": "Dim.AUTO"},
        ),
        Integers("bounds", "min, max", [2, 6], low=0, high=9, longest=2, shortest=2, only=("declared", "range")),
        Integers("call", "sizes of the call", [1, 3], low=0, high=9, longest=3, shortest=1),
        Choice("dtype", "its dtype", "float32", ["float32", "float64", "int64"]),
    ),
    model=model,
    picture=picture,
    sample=sample,
)  # fmt: skip
