"""Where the elements of a tensor lie in its storage, for sizes, strides, an offset and a program of view operations (the
chapter "Tensor and Storage").

Note [ Cells and elements ]
The storage is drawn in cells, one for each element that it has room for, and a cell shows its own number. Element [i, j]
is in cell offset + i * stride[0] + j * stride[1]; its first byte is that times the bytes of an element.

Note [ Marks ]
A reader writes a mark into an element. In a cell of the first storage it is there before the program runs (`marks`), so
that a copy takes it along; in a copy it is written afterwards (`copied_marks`), and belongs to the program that made the
copy (`copied_by`). A cell that shows number n has the value -1 - n when it is marked.
"""

from __future__ import annotations

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Integer, Integers, Refusal
from readtorch.viz.picture import box, drawing, text
from readtorch.viz.view_operations import (
    ITEMSIZES,
    MOST_DIMENSIONS,
    MOST_ELEMENTS,
    OPERATIONS,
    Strided,
    bracketed,
    carry_out,
    groups_of,
    is_contiguous,
    placed,
    steps_of,
)
from readtorch.viz.wording import counted


def model(inputs):
    """Stages of the program, what is said about the last, and the picked element of it."""
    stages = run(inputs)
    name, x = stages[-1]
    mark_copy(inputs, x)
    index = picked(inputs["index"], x.sizes)
    used = sorted(set(x.cells()))
    return {
        "stages": [described(name, stage) for name, stage in stages],
        "places": x.places,
        "itemsize": ITEMSIZES[x.dtype],
        "index": index,
        "cell": x.cell(index) if x.numel() else None,
        "used": used,
        "facts": [
            ["contiguous", about_contiguity(x)],
            ["view", about_view(x)],
            ["memory", about_memory(x, len(used))],
            ["write", about_write(stages, index)],
        ],
        "say": said(name, x, index, len(stages)),
    }


def run(inputs):
    places = [-1 - cell if cell in inputs["marks"] else cell for cell in range(inputs["count"])]
    x = placed(Strided(inputs["sizes"], inputs["strides"], inputs["offset"], 0, places, inputs["dtype"]))
    name, stages = "x", [("x", small(x))]
    for step in steps_of(inputs["program"]):
        try:
            x = small(carry_out(x, step))
        except Refusal as refusal:
            raise Refusal(str(refusal), instead={"program": name}) from None
        name += step[0]
        stages.append((name, x))
    return stages


def mark_copy(inputs, x):
    """``Note [ Marks ]``"""
    if x.storage and inputs["copied_by"] == inputs["program"]:
        for cell in {cell for cell in inputs["copied_marks"] if cell < len(x.places)}:
            if x.places[cell] >= 0:
                x.places[cell] = -1 - x.places[cell]


def small(x):
    if len(x.sizes) > MOST_DIMENSIONS:
        raise Refusal(f"The figure draws {MOST_DIMENSIONS} dimensions; this tensor has {len(x.sizes)}.")
    if x.numel() > MOST_ELEMENTS:
        raise Refusal(f"The figure draws {MOST_ELEMENTS} elements; this tensor has {x.numel()}.")
    return x


def described(name, x):
    return {
        "name": name,
        "sizes": x.sizes,
        "strides": x.strides,
        "offset": x.offset,
        "storage": x.storage,
        "values": [x.places[cell] for cell in x.cells()],
    }


def picked(index, sizes):
    """The nearest index that these sizes have."""
    if len(index) != len(sizes) or 0 in sizes:
        return [0] * len(sizes)
    return [min(i, size - 1) for i, size in zip(index, sizes)]


# ---- sentences


def tupled(numbers) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


def said(name, x, index, stages):
    strides = f"{'After' if stages > 1 else 'For'} {name} the strides are {tupled(x.strides)}"
    if not x.numel():
        return f"{strides}; the sizes are {tupled(x.sizes)}, so there are no elements."
    copy = " of a new storage" if x.storage else ""
    terms = "".join(f" + {i}·{stride}" for i, stride in zip(index, x.strides))
    total = f"{x.offset}{terms} = {x.cell(index)}" if index else f"{x.offset}"
    return f"{strides}; element {bracketed(index)} is in cell {total}{copy}."


def about_contiguity(x):
    if is_contiguous(x):
        return "yes: the elements follow one another in the order of their indices."
    step = 1
    for d in reversed(range(len(x.sizes))):
        if x.sizes[d] != 1 and x.strides[d] != step:
            return (
                f"no: the stride of dimension {d} is {x.strides[d]}, and elements without gaps, in order, need {step}."
            )
        step *= x.sizes[d]


def about_view(x):
    """Which dimensions merge, so that view may cut their elements anew."""
    numel = x.numel()
    if not numel or len(x.sizes) < 2:
        return f"any shape with {counted(numel, 'element')}."
    # of dimensions with one index nothing is to be cut
    groups = [group for group in groups_of(x.sizes, x.strides) if any(x.sizes[d] != 1 for d in group)]
    if len(groups) < 2:
        return f"any shape with {counted(numel, 'element')}: all dimensions merge{example_of_merging(x, groups)}."
    cut = " | ".join(bracketed(x.sizes[d] for d in group) for group in groups)
    last, end = groups[-1], groups[-1][-1]
    count = product_of(x.sizes[d] for d in last)
    return (
        f"only shapes that keep the cut {cut}: dimensions {last[0] - 1} and {last[0]} do not merge, because the stride "
        f"{x.strides[last[0] - 1]} is not {count}·{x.strides[end]} = {count * x.strides[end]}."
    )


def example_of_merging(x, groups):
    for group in groups:
        first, rest = next((d, group[i + 1 :]) for i, d in enumerate(group) if x.sizes[d] != 1)
        if rest:
            count = product_of(x.sizes[d] for d in rest)
            return f", as the stride {x.strides[first]} is {count}·{x.strides[group[-1]]}"
    return ""


def product_of(numbers):
    result = 1
    for number in numbers:
        result *= number
    return result


def about_memory(x, cells):
    itemsize, numel = ITEMSIZES[x.dtype], x.numel()
    elements = f"{counted(numel, 'element')} of {counted(itemsize, 'byte')}"
    shared = (
        f"{elements} in {counted(cells, 'cell')}: some share a cell."
        if cells < numel
        else f"{elements}, each in a cell of its own."
    )
    return f"{shared} The storage has {len(x.places) * itemsize} bytes."


def about_write(stages, index):
    """Where else a value is seen that is written to the picked element."""
    (first, base), (name, x) = stages[0], stages[-1]
    if not x.numel():
        return "there is nothing to write to."
    if x.storage:
        return (
            f"what is written to {name}{bracketed(index) if index else ''} stays in the new storage; x does not see it."
        )
    cell = x.cell(index)
    seen = [first + bracketed(at) if at else first for at in map(list, base.indices()) if base.cell(at) == cell]
    if len(stages) > 1:
        seen += [name + bracketed(at) if at else name for at in map(list, x.indices()) if x.cell(at) == cell]
    others = f" and {len(seen) - 4} more" if len(seen) > 4 else ""
    return f"cell {cell} is seen as {', '.join(seen[:4])}{others}."


# ---- the picture of a page without JavaScript


def picture(result, step):
    last = result["stages"][-1]
    parts = [text("storage", 8, 18, "dim")]
    for cell, place in enumerate(result["places"][:24]):
        role = "pick" if cell == result["cell"] else "pale" if cell in result["used"] else "free"
        parts.append(box(8 + 30 * (cell % 12), 26 + 30 * (cell // 12), 28, 26, role, shown(place)))
    top = 26 + 30 * (1 + (min(len(result["places"]), 24) - 1) // 12) + 22
    parts.append(text(last["name"], 8, top, "mono"))
    parts.append(text(f"sizes {bracketed(last['sizes'])}, strides {bracketed(last['strides'])}", 8, top + 18, "dim"))
    columns = last["sizes"][-1] if last["sizes"] else 1
    at = product_of(last["sizes"]) and place_of(result["index"], last["sizes"])
    for number, value in enumerate(last["values"]):
        x, y = 8 + 30 * (number % columns), top + 28 + 30 * (number // columns)
        parts.append(box(x, y, 28, 26, "pick" if number == at else "plain", shown(value)))
    rows = -(-len(last["values"]) // max(columns, 1))
    return drawing(max(376, 16 + 30 * columns), top + 40 + 30 * rows, *parts)


def shown(place):
    return "✱" if place < 0 else str(place)


def place_of(index, sizes):
    """The place of an index in row-major order."""
    at = 0
    for i, size in zip(index, sizes):
        at = at * size + i
    return at


# ---- random inputs for the test of the models


def sample(random):
    sizes = [random.randint(1, 4) for _ in range(random.randint(0, 3))]
    strides = [random.randint(0, 6) for _ in sizes]
    if random.random() < 0.5:
        strides = [product_of(sizes[d + 1 :]) for d in range(len(sizes))]
    if random.random() < 0.1:
        sizes = [0, *sizes[1:]]
    program = "x" + "".join(random_step(random) for _ in range(random.randint(0, 3)))
    return {
        "count": random.randint(16, 64),
        "sizes": sizes,
        "strides": strides,
        "offset": random.randint(0, 3),
        "program": program,
        "marks": random.sample(range(64), random.randint(0, 3)),
        "copied_marks": random.sample(range(24), random.randint(0, 3)),
        "copied_by": random.choice(["", program]),
    }


ITEMS = "0|-1|:|1:|::2|:, 1|None|..., 0|:-1|2|0, 0|1:3:2|..., None|:, ::3".split("|")
ARGUMENTS = {
    "view": "-1|2, -1|-1, 3|4, -1|-1, 1|12|3, 4|(6, 2)|1, -1, 2|-1, 2, 2".split("|"),
    "reshape": "-1|2, -1|-1, 3|4, -1|(12)|[6, 2]|1, -1, 2|2, 3, -1".split("|"),
    "permute": "1, 0|0|2, 0, 1|0, 2, 1|-1, 0|1, 1|".split("|"),
    "expand": "2, -1|2, -1, -1|4|-1|3, 4|2, 3, 4|-1, 2, 2".split("|"),
    "flip": "0|1|-1|0, 1|0, 0|(1, 0)".split("|"),
    "as_strided": "(2, 2), (1, 3)|(3, 2), (1, 1), 4|[4], [5]|(2,), (-1,)|(2, 2), (1,)|(9, 9), (9, 1)".split("|"),
}


def random_step(random):
    if random.random() < 0.2:
        return f"[{random.choice(ITEMS)}]"
    name = random.choice(list(OPERATIONS))
    if random.random() < 0.05:
        return ".T"
    if name in ARGUMENTS:
        return f".{name}({random.choice(ARGUMENTS[name])})"
    numbers = (random.choice([-1, 0, 0, 1, 1, 2, 3]) for _ in range(OPERATIONS[name][3]))
    return f".{name}({', '.join(map(str, numbers))})"


FIGURE = Figure(
    name="strides",
    title="Tensor and storage",
    inputs=(
        Integer("count", "elements", 12, low=1, high=128, hint="how many the storage has room for"),
        Choice("dtype", "dtype", "float32", options=list(ITEMSIZES)),
        Integers("sizes", "sizes", [3, 4], low=0, high=16, longest=4),
        Integers("strides", "strides", [4, 1], low=0, high=128, longest=4),
        Integer("offset", "offset", 0, low=0, high=128),
        Expression(
            "program",
            "program",
            "x.t()",
            examples=("x", "x.t()", "x[1:, ::2]", "x.t().view(12)", "x.t().reshape(12)", "x.diagonal()", "x.clone()"),
        ),
        Integers("index", "index", [1, 0], low=0, high=128, longest=MOST_DIMENSIONS, hidden=True),
        Integers("marks", "marked cells", [], low=0, high=128, longest=128, hidden=True, undone=True),
        Integers("copied_marks", "marked cells of a copy", [], low=0, high=128, longest=128, hidden=True, undone=True),
        Expression("copied_by", "program of that copy", "", hidden=True),
    ),
    model=model,
    picture=picture,
    helpers=("models/view_operations",),
    sample=sample,
    hint="A press on the picked element, or Enter, writes ✱ there. Arrows move in the tensor and in the storage; in a field of numbers, up and down change the one at the caret.",
)
