"""A scripted program with a loop, and what the compiler's passes make of its graph (the chapter "JIT: scripting").

In PyTorch: `torch/csrc/jit/passes/`. `tests/viz/test_script_passes.py` scripts the program with PyTorch and runs PyTorch's passes.
Constants stand where they are used, so a node is what a run executes. Names say nothing, and are not PyTorch's.
"""

import math
from dataclasses import dataclass, field

from readtorch.viz.figure_kit import Figure
from readtorch.viz.figures.fx_passes import close
from readtorch.viz.graph_programs import array_text
from readtorch.viz.inputs import Choice, Integer, Switch
from readtorch.viz.picture import drawing, text

PASSES = {
    "": "nothing",
    "inline": "inlining",
    "dead": "dead code",
    "peephole": "peephole",
    "unroll": "unrolling",
    "fold": "constants",
    "cse": "common parts",
    "careless": "careless",
}
SLOTS = ("p1", "p2", "p3", "p4", "p5", "p6")
COUNTS = ("1", "2", "3", "4", "n")
X, N = [0.5, -1.0, 2.0, 0.0], 10
UNROLLED, SMALL_BODY = 8, 32
INT_OPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "__round_to_zero_floordiv": lambda a, b: a // b,
}


@dataclass(eq=False)
class Value:
    name: str
    type: str = "Tensor"
    node: object = None  # the node that makes it; None: an input


@dataclass(eq=False)
class Block:
    ins: list = field(default_factory=list)
    nodes: list = field(default_factory=list)
    outs: list = field(default_factory=list)


@dataclass(eq=False)
class Node:
    """args: Values; int and bool are constants. key: stays as long as the node does."""

    kind: str
    args: list
    key: int
    outs: list = field(default_factory=list)
    block: Block | None = None


class Graph:
    def __init__(self):
        self.keys, self.counts = 0, {}
        self.block = Block([Value("x"), Value("n", "int")])

    def value(self, hint, type="Tensor", node=None):
        """Named as its hint, with a number behind it."""
        self.counts[hint] = self.counts.get(hint, 0) + 1
        return Value(f"{hint}.{self.counts[hint]}" if hint else str(self.counts[hint]), type, node)

    def make(self, kind, args, *outs):
        """outs: (hint, type) of each output"""
        self.keys += 1
        node = Node(kind, list(args), self.keys)
        node.outs = [self.value(hint, type, node) for hint, type in outs]
        return node

    def blocks(self):
        found = [self.block]
        for block in found:  # grows meanwhile
            found.extend(node.block for node in block.nodes if node.block)
        return found

    def nodes(self):
        return [node for block in self.blocks() for node in block.nodes]

    def replace(self, old, new):
        """What used `old` uses `new`."""
        for lists in [*(node.args for node in self.nodes()), *(block.outs for block in self.blocks())]:
            lists[:] = [new if one is old else one for one in lists]

    def used(self):
        """The values that something uses."""
        taken = [*(node.args for node in self.nodes()), *(block.outs for block in self.blocks())]
        return {one for values in taken for one in values if isinstance(one, Value)}


TENSOR, INT = ("", "Tensor"), ("", "int")


def scripted(count, a, b, write):
    """The graph of the program as torch.jit.script makes it."""
    graph = Graph()
    x, n = graph.block.ins

    def add(block, kind, args, out):
        block.nodes.append(graph.make(kind, args, out))
        return block.nodes[-1].outs[0]

    add(graph.block, "prim::CallFunction", [x], ("unused", "Tensor"))
    once = add(graph.block, "aten::t", [x], TENSOR)
    twice = add(graph.block, "aten::t", [once], TENSOR)
    start = add(graph.block, "aten::exp", [twice], ("y", "Tensor"))
    result = add(graph.block, "prim::Loop", [n if count == "n" else int(count), True, start], ("y", "Tensor"))
    body = result.node.block = Block([graph.value("i", "int"), graph.value("y")])
    power = add(body, "aten::exp", [x], TENSOR)
    product = add(body, "aten::mul", [body.ins[0], a], INT)
    factor = add(body, "aten::add", [product, b], INT)
    scaled = add(body, "aten::mul", [power, factor], TENSOR)
    body.outs = [True, add(body, "aten::add", [body.ins[1], scaled], ("y", "Tensor"))]
    if write:
        add(body, "aten::neg_", [x], TENSOR)
    graph.block.outs = [result]
    return graph


# ---- passes


def inline(graph):
    for node in graph.nodes():
        if node.kind == "prim::CallFunction":
            at = graph.block.nodes.index(node)
            made = graph.make("aten::sin", node.args, ("unused", "Tensor"))
            graph.block.nodes[at] = made


def writes(node):
    return node.kind in ("aten::neg_", "prim::CallFunction")


def remove_dead_code(graph):
    while True:
        used = graph.used()
        dead = [node for node in graph.nodes() if not (writes(node) or node.block or used & {*node.outs})]
        if not dead:
            return
        for block in graph.blocks():
            block.nodes[:] = [node for node in block.nodes if node not in dead]


def is_int(value):
    return type(value) is int or isinstance(value, Value) and value.type == "int"


def constant_of(node):
    """The constant operand of arithmetic with ints; it becomes the second one."""
    if len(node.args) != 2 or not all(map(is_int, node.args)):
        return None
    if node.kind in ("aten::mul", "aten::add") and type(node.args[0]) is int:
        node.args.reverse()
        return node.args[1]
    return node.args[1] if type(node.args[1]) is int else None


def simplify_sum(graph, node):
    constant = constant_of(node)
    if constant is None:
        return False
    if constant == 0:
        graph.replace(node.outs[0], node.args[0])
        return True
    inner = node.args[0].node if isinstance(node.args[0], Value) else None
    if not inner or inner.kind not in ("aten::add", "aten::sub"):
        return False
    other = constant_of(inner)
    if other is None:
        return False
    merged = constant + other if inner.kind == node.kind else constant - other
    if merged == 0:
        graph.replace(node.outs[0], inner.args[0])
    else:
        node.args[:] = [inner.args[0], merged]
    return True


def simplify(graph, node):
    """Looks at a node and those that make its operands."""
    if node.kind == "aten::mul":
        if constant_of(node) != 1:
            return False
        graph.replace(node.outs[0], node.args[0])
        return True
    return node.kind in ("aten::add", "aten::sub") and simplify_sum(graph, node)


def transposed_twice(graph, node):
    inner = node.args[0].node if node.kind == "aten::t" else None
    if not inner or inner.kind != "aten::t":
        return False
    graph.replace(node.outs[0], inner.args[0])
    return True


def tensor_times_one(graph, node):
    """Its first operand is the result of exp, which nothing writes to."""
    if node.kind != "aten::mul" or node.outs[0].type == "int" or node.args[1] != 1 or not is_int(node.args[1]):
        return False
    graph.replace(node.outs[0], node.args[0])
    return True


def inside_first(block):
    """Its nodes, those of a node's block before the node."""
    for node in [*block.nodes]:
        if node.block:
            yield from inside_first(node.block)
        yield node


def peephole(graph):
    changed = [
        rule(graph, node)
        for rule in (transposed_twice, tensor_times_one, simplify)
        for node in inside_first(graph.block)
    ]
    if any(changed):
        remove_dead_code(graph)


def append_copy(graph, body, inputs, target):
    """Append a copy of a body to a list of nodes; the values of its outputs."""
    own = dict(zip(body.ins, inputs))
    for node in body.nodes:
        hints = [(value.name.rpartition(".")[0], value.type) for value in node.outs]
        copy = graph.make(node.kind, [own.get(a, a) if isinstance(a, Value) else a for a in node.args], *hints)
        own.update(zip(node.outs, copy.outs))
        target.append(copy)
    return [own.get(value, value) if isinstance(value, Value) else value for value in body.outs]


def count_explicitly(graph, loop):
    """The number of the iteration becomes a carried value, which the body increases."""
    body, counter = loop.block, graph.value("c", "int")
    graph.replace(body.ins[0], counter)
    loop.args.insert(2, 0)
    loop.outs.insert(0, graph.value("c", "int", loop))
    body.ins.insert(1, counter)
    following = graph.make("aten::add", [counter, 1], ("c", "int"))
    body.nodes.append(following)
    body.outs.insert(1, following.outs[0])


def repeated(graph, loop, times, first, carried, target):
    for _ in range(times):
        carried = append_copy(graph, loop.block, [first, *carried], target)[1:]
    return carried


def unroll_completely(graph, block, loop):
    made = []
    results = repeated(graph, loop, loop.args[0], 0, loop.args[2:], made)
    at = block.nodes.index(loop)
    block.nodes[at : at + 1] = made
    for old, new in zip(loop.outs, results):
        graph.replace(old, new)


def rest_of(graph, loop):
    """A second loop behind this one, which goes on where it ends."""
    rest = graph.make("prim::Loop", loop.args, *((value.name.rpartition(".")[0], value.type) for value in loop.outs))
    rest.block = Block([graph.value(v.name.rpartition(".")[0], v.type) for v in loop.block.ins])
    rest.block.outs = append_copy(graph, loop.block, rest.block.ins, rest.block.nodes)
    for old, new in zip(loop.outs, rest.outs):
        graph.replace(old, new)
    rest.args[2:] = loop.outs
    return rest


def unroll_by_eight(graph, block, loop):
    rest = rest_of(graph, loop)
    body = loop.block
    longer = Block([graph.value(v.name.rpartition(".")[0], v.type) for v in body.ins])
    longer.outs = [True, *repeated(graph, loop, UNROLLED, longer.ins[0], longer.ins[1:], longer.nodes)]
    loop.block = longer
    at = block.nodes.index(loop)
    eighths = graph.make("aten::__round_to_zero_floordiv", [loop.args[0], UNROLLED], INT)
    done = graph.make("aten::mul", [eighths.outs[0], UNROLLED], INT)
    left = graph.make("aten::sub", [loop.args[0], done.outs[0]], INT)
    block.nodes[at : at + 1] = [eighths, done, left, loop, rest]
    loop.args[0], rest.args[0] = eighths.outs[0], left.outs[0]


def unroll(graph):
    changed = False
    for block in graph.blocks():
        for loop in [node for node in block.nodes if node.kind == "prim::Loop"]:
            if len(loop.block.nodes) > SMALL_BODY:
                continue
            if loop.block.ins[0] in graph.used():
                count_explicitly(graph, loop)
            known = type(loop.args[0]) is int
            (unroll_completely if known else unroll_by_eight)(graph, block, loop)
            changed = True
    if changed:
        remove_dead_code(graph)


def fold_constants(graph):
    changed = False
    for node in inside_first(graph.block):
        operation = INT_OPS.get(node.kind.removeprefix("aten::"))
        if operation and all(type(a) is int for a in node.args):
            graph.replace(node.outs[0], operation(*node.args))
            changed = True
    if changed:
        remove_dead_code(graph)


def touched(graph):
    """The values that may share memory with what something writes to: x and its views, if there is a write."""
    if not any(map(writes, graph.nodes())):
        return set()
    found = {graph.block.ins[0]}
    for node in graph.nodes():
        if writes(node) or node.kind == "aten::t":
            found.update(node.outs)
    return found


def merge_equal(graph, block, known, written):
    known = dict(known)
    for node in [*block.nodes]:
        if node.block:
            merge_equal(graph, node.block, known, written)
        if (
            node.block
            or node.kind == "prim::CallFunction"
            or written & {a for a in (*node.args, *node.outs) if isinstance(a, Value)}
        ):
            continue
        key = (node.kind, *(a.name if isinstance(a, Value) else repr(a) for a in node.args))
        first = known.setdefault(key, node)
        if first is not node:
            graph.replace(node.outs[0], first.outs[0])
            block.nodes.remove(node)


def merge_careless(graph):
    merge_equal(graph, graph.block, {}, set())


RUN = {
    "inline": inline,
    "dead": remove_dead_code,
    "peephole": peephole,
    "unroll": unroll,
    "fold": fold_constants,
    "cse": lambda graph: merge_equal(graph, graph.block, {}, touched(graph)),
    "careless": merge_careless,
}


# ---- what it computes


def transposed(values):
    return [values[i] for i in (0, 2, 1, 3)]


def tensor_result(node, args):
    """An array is [memory, is it seen transposed]: x and its views share the memory."""
    seen = [
        transposed(a[0]) if isinstance(a, list) and a[1] else a[0] if isinstance(a, list) else [a] * 4 for a in args
    ]
    kind = node.kind.removeprefix("aten::")
    if kind == "t":
        return [args[0][0], not args[0][1]]
    if kind == "neg_":
        args[0][0][:] = [-v for v in args[0][0]]
        return args[0]
    if kind in ("exp", "sin", "prim::CallFunction"):
        return [[(math.exp if kind == "exp" else math.sin)(v) for v in seen[0]], False]
    return [[INT_OPS[kind](a, b) for a, b in zip(*seen)], False]


class Run:
    """One call with X and N: how many operators it executes, and what it gives."""

    def __init__(self, graph):
        x, n = graph.block.ins
        self.executed = 0
        self.values = {x: [[*X], False], n: N}
        self.block(graph.block)
        result = self.get(graph.block.outs[0])
        self.outcome = [transposed(result[0]) if result[1] else result[0], self.values[x][0]]

    def get(self, arg):
        return self.values[arg] if isinstance(arg, Value) else arg

    def block(self, block):
        for node in block.nodes:
            args = [self.get(a) for a in node.args]
            if node.block:
                self.loop(node, args)
                continue
            self.executed += 1
            ints = all(type(a) is int for a in args)
            self.values[node.outs[0]] = (
                INT_OPS[node.kind.removeprefix("aten::")](*args) if ints else tensor_result(node, args)
            )

    def loop(self, node, args):
        carried = args[2:]
        for i in range(args[0]):
            self.values.update(zip(node.block.ins, [i, *carried]))
            self.block(node.block)
            carried = [self.get(value) for value in node.block.outs[1:]]
        self.values.update(zip(node.outs, carried))


# ---- what there is to see


def word(arg):
    return f"%{arg.name}" if isinstance(arg, Value) else str(arg)


def typed(values):
    return ", ".join(f"{word(v)} : {v.type}" for v in values)


def words(args):
    return ", ".join(map(word, args))


def rows_of(block, depth=1):
    """[key, depth, text] of each line."""
    rows = []
    for node in block.nodes:
        called = f"sine, {words(node.args)}" if node.kind == "prim::CallFunction" else words(node.args)
        rows.append([f"{node.key}", depth, f"{typed(node.outs)} = {node.kind}({called})"])
        if node.block:
            rows.append([f"{node.key} in", depth + 1, f"block0({typed(node.block.ins)}):"])
            rows += rows_of(node.block, depth + 2)
            rows.append([f"{node.key} out", depth + 2, f"-> ({words(node.block.outs)})"])
    return rows


def lines_of(graph):
    head = ["in", 0, f"graph({typed(graph.block.ins)}):"]
    return [head, *rows_of(graph.block), ["out", 1, f"return ({words(graph.block.outs)})"]]


def merged(before, after):
    """The lines before and after a pass in one list, by what they are lines of; what has gone stays behind its predecessor."""
    old, new = {key: line for key, _, line in before}, {key for key, _, _ in after}
    rows = [
        {
            "key": key,
            "depth": depth,
            "text": line,
            "state": "new" if key not in old else "" if old[key] == line else "changed",
        }
        for key, depth, line in after
    ]
    last = None
    for key, depth, line in before:
        if key not in new:
            at = next(i for i, row in enumerate(rows) if row["key"] == last)
            rows.insert(at + 1, {"key": key, "depth": depth, "text": line, "state": "gone"})
        last = key
    return rows


def verdict(outcome, wanted):
    if not close(outcome[0], wanted[0]):
        return "wrong"
    return "right" if close(outcome[1], wanted[1]) else "inputs"


ENDINGS = {
    "right": "The result is the same.",
    "inputs": "The result is the same, but x afterwards is not: a caller would see that.",
    "wrong": "It returns {value} instead of {wanted}: this graph is wrong.",
}


def shown(values):
    return array_text({"shape": [2, 2], "values": values})


def plural(count, what):
    return f"{count} {what}{'' if count == 1 else 's'}"


def call_text(graph, run):
    return f"{plural(len(graph.nodes()), 'node')}; a call executes {plural(run.executed, 'operator')}"


def model(inputs):
    graph = scripted(inputs["count"], inputs["a"], inputs["b"], inputs["write"])
    run = Run(graph)
    wanted, before = run.outcome, lines_of(graph)
    steps = [{"title": "scripted", "lines": merged(before, before), "verdict": "right"}]
    say = [f"As scripted: {call_text(graph, run)} and returns {shown(wanted[0])}."]
    for kind in (inputs[slot] for slot in SLOTS):
        if not kind:
            continue
        RUN[kind](graph)
        run, after = Run(graph), lines_of(graph)
        judged = verdict(run.outcome, wanted)
        steps.append({"title": PASSES[kind], "lines": merged(before, after), "verdict": judged})
        ending = ENDINGS[judged].format(value=shown(run.outcome[0]), wanted=shown(wanted[0]))
        say.append(f"{DID[kind]} {call_text(graph, run)}. {ending}")
        before = after
    return {"steps": steps, "say": say}


DID = {
    "inline": "Inlining puts the body of sine where it was called.",
    "dead": "Dead code: what nothing uses goes, unless it writes, or is a call.",
    "peephole": "Peephole: t of t, times 1, plus 0.",
    "unroll": "Unrolling writes a known number of iterations out; of an unknown one, eight become one.",
    "fold": "Constants: what follows from constants alone is computed now.",
    "cse": "Common parts: equal nodes become one, unless something writes to what they touch.",
    "careless": "Careless: equal nodes become one, and nobody asks who writes.",
}


def picture(result, step):
    lines = result["steps"][step]["lines"]
    marks = {"": " ", "new": "+", "changed": "~", "gone": "-"}
    parts = [
        text(f"{marks[row['state']]} {row['text']}", 8 + 14 * row["depth"], 18 + 17 * i, "mono")
        for i, row in enumerate(lines)
    ]
    return drawing(560, 12 + 17 * len(lines), *parts)


def sample(random):
    return {slot: random.choice([*PASSES]) for slot in SLOTS}


FIGURE = Figure(
    name="script_passes",
    title="Passes, in your order",
    inputs=(
        Choice("count", "range(…)", "3", options=COUNTS),
        Integer("a", "i * …", 2, low=-9, high=9),
        Integer("b", "+ …", 1, low=-9, high=9),
        Switch("write", "x.neg_() in the loop", False),
        *(
            Choice(slot, slot[1], default, options=PASSES)
            for slot, default in zip(SLOTS, ("inline", "dead", "peephole", "unroll", "fold", "cse"))
        ),
    ),
    model=model,
    picture=picture,
    helpers=("_pass_bar", "models/broadcasting", "models/graph_programs"),
    sample=sample,
)  # fmt: skip
