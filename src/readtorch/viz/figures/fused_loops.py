"""A short program, the values that get a place in memory, and the kernels that compute them (the chapter "Inductor: loops, fusion,
code").

The rules are those of the chapter: `_inductor` has more of them. `tests/viz/test_fused_loops.py` compares the kernels with PyTorch's.
"""

import math
from typing import NamedTuple

from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Expression, Integer, Number, Refusal, Switch
from readtorch.viz.line_programs import Language, is_number
from readtorch.viz.picture import box, drawing, text
from readtorch.viz.wording import counted, size_text

FIRST = "h = x @ w; e = exp(h - amax(h)); y = e / sum(e)"
EXAMPLES = (
    "s = sqrt(x); y = s * flip(s)",
    "e = exp(x); y = e * flip(e)",
    "y = tanh(x * 2 + z) * sin(x) - relu(z)",
    "m = sum(x) * 0.5; y = (x - m) * exp(z)",
    "e = exp(x); y = e * (e @ w)",
)
INPUTS = ("x", "z", "w", "b")
LARGEST, MOST_OPERATORS, ELEMENT = 8192, 16, 4  # of a size; of a program; bytes
HEAVY = ("exp", "tanh")  # worth a place in memory if several values are computed from them
WORK = {"exp": 20, "tanh": 20, "sin": 20, "sqrt": 5}  # operations for an element; of others one
REDUCTIONS, VIEWS = ("sum", "amax"), ("t", "flip")
FUNCTIONS = ("exp", "tanh", "sin", "sqrt", "relu", *REDUCTIONS, *VIEWS)
NAMES = {"+": "add", "-": "sub", "*": "mul", "/": "div", "@": "mm"}
LANGUAGE = Language(
    dict.fromkeys(FUNCTIONS, 0),
    (*INPUTS, "R", "C"),
    MOST_OPERATORS,
    "Allowed: name = …, with x and z of R rows and C columns, w of C and C, b of C, your names, numbers, + - * / @, parentheses, "
    "exp(…), tanh(…), sin(…), sqrt(…), relu(…), sum(…) and amax(…) of each row, flip(…) of the rows, t(…). The last line is what "
    "is returned.",
)

# ---- a value is a function of its index (row i, column j)


class Place(NamedTuple):
    """Row and column of an element, each a·i + b·j + c."""

    row: tuple
    column: tuple

    def within(self, outer):
        """This place, where `outer` says what i and j are."""
        return Place(*[combined(part, outer) for part in self])


def combined(part, outer):
    a, b, c = part
    each = [a * r + b * s for r, s in zip(outer.row, outer.column)]
    return (each[0], each[1], each[2] + c)


HERE = Place((1, 0, 0), (0, 1, 0))


class Value:
    """shape: rows, columns. reads, steps: {(name, Place)} of memory and of operators. total: whether it is a row's."""

    def __init__(self, shape, reads=(), steps=(), total=False):
        self.shape, self.reads, self.steps = shape, dict.fromkeys(reads), dict.fromkeys(steps)
        self.total, self.buffer = total, None

    def at(self, place):
        """(reads, steps) for an element of another value."""
        if self.buffer is not None:
            return [(self.buffer, place)], []
        return [(n, p.within(place)) for n, p in self.reads], [(n, p.within(place)) for n, p in self.steps]


def broadcast(shape, wider):
    row, column = HERE
    return Place((0, 0, 0) if shape[0] < wider[0] else row, (0, 0, 0) if shape[1] < wider[1] else column)


def shape_text(shape):
    return f"{shape[0]} × {shape[1]}"


class Lowering:
    """buffers: name -> Value, in order. operators: name -> (operator, shape of what it works on, shape of its result, operands' names)."""

    def __init__(self, lines, sizes):
        self.sizes, self.buffers, self.operators, self.places = sizes, {}, {}, {}
        self.inputs = {"x": sizes, "z": sizes, "w": (sizes[1], sizes[1]), "b": (1, sizes[1])}
        for name, shape in self.inputs.items():
            value = self.places[name] = Value(shape)
            value.buffer = name
        self.users = self.count_users(lines)
        known = {name: name for name in INPUTS}
        for name, tree in lines:
            known[name] = self.node(tree, known)
        self.output = self.places[known[lines[-1][0]]]
        if self.output.buffer in self.inputs:
            raise Refusal("The last line computes nothing: end with an operator.")
        self.realize(self.output)
        self.drop_dead()

    def count_users(self, lines):
        """How many operators use the result of each, by the order in which they are made."""
        counts, names, made = {}, {name: name for name in INPUTS}, 0

        def visit(tree):
            nonlocal made
            if is_number(tree):
                return None
            if isinstance(tree, str):
                return names[tree] if tree in names else LANGUAGE.unknown(tree)
            parts = {visit(part) for part in tree[1:]} - {None}
            made += 1
            for part in parts:
                counts[part] = counts.get(part, 0) + 1
            return made

        for name, tree in lines:
            names[name] = visit(tree)
            if names[name] is None:
                raise Refusal(f"{name} is a number: write it where it is used.")
        last = names[lines[-1][0]]
        counts[last] = counts.get(last, 0) + 1
        return counts

    def node(self, tree, known):
        """The name of the operator, or input, that a tree is the result of; a number as it is."""
        if is_number(tree):
            return tree
        if isinstance(tree, str):
            return known[tree]
        operands = [self.node(part, known) for part in tree[1:]]
        kind = NAMES.get(tree[0], tree[0])
        name = self.free_name(kind)
        self.operators[name] = None  # the place of its name
        value, worked = self.value(kind, name, operands)
        self.operators[name] = (kind, worked, value.shape, [one for one in operands if not is_number(one)])
        self.places[name] = value
        if value.buffer is None and (value.total or self.is_worth_it(value, name)):
            self.realize(value)
        return name

    def free_name(self, kind):
        taken = sum(name == kind or name.startswith(f"{kind}_") for name in self.operators)
        return f"{kind}_{taken}" if taken else kind

    def is_worth_it(self, value, name):
        heavy = any(self.operators[n][0] in HEAVY for n, _ in value.steps)
        return self.users.get(len(self.operators), 0) > 1 and heavy

    def value(self, kind, name, operands):
        """(the Value, the shape that is worked on)"""
        if any(map(is_number, operands)) and kind in ("mm", *FUNCTIONS):
            raise Refusal(f"{kind} of a number: a tensor is wanted.")
        if all(map(is_number, operands)):
            raise Refusal("Python computes numbers among themselves before any tensor sees them.")
        values = [self.places[one] for one in operands if not is_number(one)]
        if kind == "mm":
            return self.product(name, *values)
        if kind in VIEWS:
            return self.view(kind, name, values[0])
        if kind in REDUCTIONS:
            return self.total(name, values[0])
        shape = tuple(max(sizes) for sizes in zip(*[v.shape for v in values]))
        if any(n not in (1, m) for v in values for n, m in zip(v.shape, shape)):
            raise Refusal(f"{' and '.join(shape_text(v.shape) for v in values)}: these sizes do not broadcast.")
        return self.computed(name, shape, [(v, broadcast(v.shape, shape)) for v in values]), shape

    def computed(self, name, shape, operands, total=False):
        reads, steps = [], []
        for value, place in operands:
            more = value.at(place)
            reads, steps = reads + more[0], steps + more[1]
        return Value(shape, reads, [*steps, (name, HERE)], total)

    def view(self, kind, name, x):
        rows, columns = x.shape
        if kind == "t":
            reads, steps = x.at(Place((0, 1, 0), (1, 0, 0)))
            return Value((columns, rows), reads, steps), (columns, rows)
        reads, steps = x.at(Place((-1, 0, rows - 1), HERE.column))
        return Value(x.shape, reads, [*steps, (name, HERE)]), x.shape

    def total(self, name, x):
        if x.shape[1] == 1:
            raise Refusal("A row of one element is its own sum: this figure adds up longer ones.")
        value = self.computed(name, (x.shape[0], 1), [(x, HERE)], total=True)
        value.ranges = x.shape
        return value, x.shape

    def product(self, name, a, b):
        if 1 in (*a.shape, *b.shape) or a.shape[1] != b.shape[0]:
            raise Refusal(
                f"{shape_text(a.shape)} @ {shape_text(b.shape)}: the columns of the one are not the rows of the other."
            )
        reads = [(self.in_memory(operand), None) for operand in (a, b)]
        value = Value((a.shape[0], b.shape[1]), reads, [(name, HERE)])
        self.store(value)
        return value, (*a.shape, b.shape[1])

    def in_memory(self, value):
        """The buffer that a product reads; a transposed one will do as it is."""
        if value.buffer is None and not value.steps:
            ((name, place),) = value.reads
            if place == Place((0, 1, 0), (1, 0, 0)):
                return name
        return self.realize(value).buffer

    def realize(self, value):
        if value.buffer is None:
            self.store(value)
        return value

    def store(self, value):
        value.buffer = f"buf{len(self.buffers)}"
        self.buffers[value.buffer] = value

    def drop_dead(self):
        """Without what nothing needs."""
        needed = {self.output.buffer}
        for name in reversed(list(self.buffers)):
            if name in needed:
                needed |= {n for n, _ in self.buffers[name].reads}
        self.buffers = {name: value for name, value in self.buffers.items() if name in needed}
        self.shapes = self.inputs | {name: value.shape for name, value in self.buffers.items()}

    def bytes_of(self, name):
        return ELEMENT * math.prod(self.shapes[name])


# ---- which values one kernel computes


class Apart(Exception):
    """Why two groups stay two."""


OTHER_SIZES = "their loops are of different sizes"


class Kernel:
    """values: names of buffers. levels: how many passes over a row come before each one's."""

    def __init__(self, lowering, names):
        self.lowering, self.names = lowering, names
        self.values = {name: lowering.buffers[name] for name in names}
        self.read = {n: None for value in self.values.values() for n, _ in value.reads}
        self.is_call = any(place is None for value in self.values.values() for _, place in value.reads)
        self.ranges = self.common_ranges()
        self.levels = {} if self.is_call else self.find_levels()

    def common_ranges(self):
        totals = [v for v in self.values.values() if v.total]
        if not totals:
            shapes = {v.shape for v in self.values.values()}
            if len(shapes) > 1:
                raise Apart(OTHER_SIZES)
            return shapes.pop()
        ranges = {v.ranges for v in totals}
        if len(ranges) > 1 or any(v.shape not in (totals[0].ranges, totals[0].shape) for v in self.values.values()):
            raise Apart(OTHER_SIZES)
        return ranges.pop()

    def find_levels(self):
        levels = {}
        for name, value in self.values.items():
            level = 0
            for source, place in value.reads:
                made = self.values.get(source)
                if made is None:
                    continue
                if not same_element(place, made.shape, value.ranges if value.total else value.shape):
                    raise Apart(f"it reads {source} at another index than the one just written")
                one_a_row = made.shape != self.ranges
                now_one_a_row = value.shape != self.ranges and not value.total
                if now_one_a_row and not one_a_row:
                    raise Apart(f"it needs one element of each row of {source}")
                level = max(level, levels[source] + (one_a_row and not now_one_a_row))
            levels[name] = level
        return levels

    def needs(self, other):
        return any(name in other.values for name in self.read)


def same_element(place, made, ranges):
    """Whether the element that is read is the one that has been written in the same iteration."""
    for part, here, size, loop in zip(place, HERE, made, ranges):
        if size == loop and size > 1 and part != here:
            return False
        if size == 1 and part[2] != 0:
            return False
    return all(size in (1, loop) for size, loop in zip(made, ranges))


def leads_to(target, start, kernels):
    """Whether `start` needs `target` by way of a third."""
    between = [k for k in kernels if k is not target and k is not start and start.needs(k)]
    return any(k.needs(target) or leads_to(target, k, kernels) for k in between)


def fused(first, second, kernels):
    """Both as one. Raises Apart."""
    if first.is_call or second.is_call:
        raise Apart("a product is a call, not a loop")
    both = Kernel(first.lowering, first.names + second.names)
    if leads_to(first, second, kernels) or leads_to(second, first, kernels):
        raise Apart("another kernel has to run between them")
    return both


def saved(first, second):
    common = [name for name in [*first.read, *first.values] if name in second.read]
    return sum(map(first.lowering.bytes_of, dict.fromkeys(common)))


def schedule(lowering, together):
    """The kernels, in an order in which they can run. together: whether to fuse."""
    kernels = [Kernel(lowering, [name]) for name in lowering.buffers]
    while together:
        best = best_pair(kernels)
        if best is None:
            break
        a, b, both = best
        kernels = ordered([both if k is a else k for k in kernels if k is not b])
    return kernels


def best_pair(kernels):
    best, most = None, 0
    for k, first in enumerate(kernels):
        for second in kernels[k + 1 :]:
            if saved(first, second) > most:
                try:
                    best, most = (first, second, fused(first, second, kernels)), saved(first, second)
                except Apart:
                    continue
    return best


def ordered(kernels):
    done = []
    while kernels:
        ready = next(k for k in kernels if not any(k.needs(other) for other in kernels if other is not k))
        done.append(ready)
        kernels = [k for k in kernels if k is not ready]
    return done


# ---- bytes, operations, time


def work_of(kind, worked):
    count = math.prod(worked)
    return 2 * count if kind == "mm" else 0 if kind in VIEWS else WORK.get(kind, 1) * count


def cost_of(reads, writes, operations, inputs):
    """µs: to launch, and then what takes longer, to move the bytes or to compute."""
    moved = reads + writes
    time = inputs["launch"] + max(moved / (inputs["bandwidth"] * 1000), operations / (inputs["peak"] * 1000))
    return {"bytes": moved, "operations": operations, "time": time}


def steps_of(kernel):
    """(operator, sizes of its loops) for whatever is computed: in one pass over a row an equal line is written once."""
    seen = {}
    for name, value in kernel.values.items():
        ranges = value.ranges if value.total else value.shape
        for step in value.steps:
            seen[kernel.levels.get(name, 0), ranges, step] = (step[0], ranges)
    return seen.values()


def described(kernel, kernels, lowering, inputs):
    elsewhere = {name for other in kernels if other is not kernel for name in other.read} | {lowering.output.buffer}
    reads = [name for name in kernel.read if name not in kernel.values]
    writes = [name for name in kernel.values if name in elsewhere]
    operations, computed, values = 0, {}, []
    for operator, ranges in steps_of(kernel):
        kind, worked = lowering.operators[operator][:2]
        operations += work_of(kind, worked if kind == "mm" else ranges)
        computed[operator] = computed.get(operator, 0) + (kind not in VIEWS)
    for name, value in kernel.values.items():
        steps = {}
        for operator, _ in value.steps:
            is_view = lowering.operators[operator][0] in VIEWS
            steps[operator] = 1 if is_view else steps.get(operator, 0) + 1
        users = [other for other, v in kernel.values.items() if any(n == name for n, _ in v.reads)]
        later = any(kernel.levels[other] > kernel.levels[name] for other in users)
        where = (
            "memory"
            if name in elsewhere
            else "row"
            if later and not value.total and value.shape == kernel.ranges
            else "register"
        )
        values.append(
            {
                "name": name,
                "steps": [[n, times] for n, times in steps.items()],
                "where": where,
                "pass": kernel.levels.get(name, 0) + 1,
            }
        )
    cost = cost_of(sum(map(lowering.bytes_of, reads)), sum(map(lowering.bytes_of, writes)), operations, inputs)
    apart = []
    for other in kernels:
        if other is not kernel and kernel.needs(other):
            apart.append([kernels.index(other) + 1, why_apart(other, kernel, kernels)])
    return {
        "call": kernel.is_call,
        "ranges": list(kernel.ranges),
        "reads": reads,
        "writes": writes,
        "values": values,
        "computed": [[operator, times] for operator, times in computed.items()],
        "apart": apart,
    } | cost


def why_apart(first, second, kernels):
    try:
        fused(first, second, kernels)
    except Apart as reason:
        return str(reason)
    return ""


def eagerly(lowering, inputs):
    """Each operator reads its operands and writes its result; a transposed tensor is a view."""
    rows = []
    for kind, worked, shape, operands in lowering.operators.values():
        if kind != "t":
            reads = sum(ELEMENT * math.prod(lowering.places[name].shape) for name in dict.fromkeys(operands))
            rows.append(cost_of(reads, ELEMENT * math.prod(shape), work_of(kind, worked), inputs))
    return rows


def row(title, costs):
    return {"title": title, "kernels": len(costs)} | {
        key: sum(c[key] for c in costs) for key in ("bytes", "operations", "time")
    }


def model(inputs):
    lowering = Lowering(LANGUAGE.read(inputs["program"]), (inputs["rows"], inputs["columns"]))
    found = schedule(lowering, inputs["together"])
    kernels = [described(kernel, found, lowering, inputs) for kernel in found]
    rows = [row("one by one", eagerly(lowering, inputs)), row("fused" if inputs["together"] else "not fused", kernels)]
    return {"kernels": kernels, "rows": rows, "output": lowering.output.buffer, "say": told(rows, kernels)}


# ---- words


def digits(x):
    """Three digits or so, the same in both languages."""
    if x >= 100:
        return f"{int(x + 0.5):,}"
    tenths = int(10 * x + 0.5)
    return f"{tenths // 10}.{tenths % 10}"


def told(rows, kernels):
    eager, ours = rows
    times_of = {}
    for name, times in [pair for k in kernels for pair in k["computed"]]:
        times_of[name] = times_of.get(name, 0) + times
    again = [name for name, times in times_of.items() if times > 1]
    said = f"{counted(eager['kernels'], 'operator')}, {counted(len(kernels), 'kernel')}: {size_text(ours['bytes'])} moved instead of {size_text(eager['bytes'])}, "
    said += f"{digits(ours['time'])} µs instead of {digits(eager['time'])} by this estimate."
    if again:
        said += f" Computed more than once for an element: {', '.join(again)}."
    return said


# ---- the still picture


def picture(result, step):
    parts, y = [], 10
    for number, kernel in enumerate(result["kernels"], 1):
        height = 22 + 18 * len(kernel["values"])
        parts.append(box(8, y, 384, height, "plain"))
        parts.append(
            text(
                f"{number}: {'call' if kernel['call'] else 'loop over ' + ' × '.join(map(str, kernel['ranges']))}",
                14,
                y + 15,
                "dim",
            )
        )
        for k, value in enumerate(kernel["values"]):
            steps = ", ".join(f"{n}{' twice' if times > 1 else ''}" for n, times in value["steps"])
            parts.append(text(f"{value['name']} = {steps}"[:60], 22, y + 33 + 18 * k))
        y += height + 10
    return drawing(400, y, *parts)


# ---- random programs


def random_tree(random, names, depth=0):
    kind = random.random()
    if depth > 2 or kind < 0.2:
        return random.choice(names)
    inner = random_tree(random, names, depth + 1)
    if kind < 0.55:
        other = random.choice(["2", "0.5", "b", *[random_tree(random, names, depth + 1)] * 5])
        return f"({inner} {random.choice('+-*/')} {other})"
    if kind < 0.62:
        return f"({inner} @ w)"
    return f"{random.choice(FUNCTIONS)}({inner})" if kind < 0.95 else f"t(t({inner}))"


def sample(random):
    """A program of a few lines, most of which can be run."""
    names, lines = ["x", "x", "z"], []
    for _ in range(random.randint(0, 3)):
        name = random.choice("acdh")
        lines.append(f"{name} = {random_tree(random, names)}")
        names += [name, name]
    lines.append(f"y = {random_tree(random, names)} {random.choice('+*')} {random.choice(names)}")
    rows, columns = random.choice([(6, 4), (8, 8), (512, 256), (4096, 2)])
    return {"program": "; ".join(lines), "rows": rows, "columns": columns, "together": random.random() < 0.8}


FIGURE = Figure(
    name="fused_loops",
    title="Which operators share a loop",
    inputs=(
        Expression("program", "program", FIRST, longest=300, examples=EXAMPLES),
        Integer("rows", "rows R", 2048, low=2, high=LARGEST),
        Integer("columns", "columns C", 256, low=2, high=LARGEST),
        Switch("together", "fuse loops", True, hint="off: a kernel for each value that lies in memory"),
        Number("bandwidth", "memory, GB/s", 20.0, low=1, high=10000),
        Number("peak", "arithmetic, Gop/s", 100.0, low=1, high=1000000),
        Number("launch", "a call, µs", 2.0, low=0, high=1000),
    ),
    model=model,
    picture=picture,
    hint="Estimated: an element of exp, tanh, sin counts as 20 operations, of sqrt as 5; a kernel takes as long as its bytes or its operations, whichever is longer, and a call.",
    helpers=("models/line_programs",),
    sample=sample,
)  # fmt: skip
