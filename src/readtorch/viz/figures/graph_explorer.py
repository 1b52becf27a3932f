"""A short program, the graph behind its tensors, and backward through it, node by node (the chapter "Autograd").

In PyTorch: `csrc/autograd/engine.cpp`, `variable.cpp`, `saved_variable.cpp`, `functions/tensor.cpp`.
`tests/viz/test_graph_explorer.py` runs random programs with PyTorch.
"""

import itertools
import math
from dataclasses import dataclass, field

from readtorch.viz.broadcasting import Error, count_of, dependencies, lines_that_run
from readtorch.viz.figure_kit import Figure
from readtorch.viz.graph_layout import layered_layout
from readtorch.viz.graph_programs import (
    ALLOWED,
    Parser,
    add,
    array,
    array_text,
    cos,
    exp,
    listed,
    mul,
    place,
    put,
    relu,
    sin,
    summed_to,
    tanh,
    zipped,
)
from readtorch.viz.inputs import Expression, Integer, Refusal, Text
from readtorch.viz.picture import box, drawing, tag, text

LONGEST = 14  # lines

LEAVES = "x = torch.tensor([1., 2., 3.], requires_grad=True); w = torch.tensor([2., -1., 0.5], requires_grad=True); "
FIRST = LEAVES + "h = (x * w).relu(); y = x.exp(); loss = (h * y).sum(); loss.backward()"
EXAMPLES = (
    FIRST,
    LEAVES + "h = (x * w).relu(); y = x.exp(); y += 1; loss = (h * y).sum(); loss.backward()",
    LEAVES + "y = x.exp(); v = y[:2]; v *= w[1:]; loss = y.sum(); loss.backward()",
    LEAVES + "y = x * w; loss = (y * y).sum(); loss.backward(); loss.backward()",
    LEAVES + "y = x * w; d = y.detach(); d += 1; loss = (y * w).sum(); loss.backward()",
)

NO_GRAPH = "element 0 of tensors does not require grad and does not have a grad_fn"
NO_SCALAR = "grad can be implicitly created only for scalar outputs"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation."
VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation."
NO_INDEX = (
    "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim tensor "
    "to a number"
)
OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory location. "
    "Please clone() the tensor before performing the operation."
)
TWICE = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
HINT = (
    "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
    "torch.autograd.set_detect_anomaly(True, check_nan=False)."
)

# ---- tensors and nodes


@dataclass(eq=False)
class Storage:
    values: list
    version: int = 0


@dataclass(eq=False)
class Saved:
    """A SavedVariable: the tensor, and its version when it was saved. output: of the node that holds it."""

    name: str
    tensor: object
    version: int
    output: bool = False


@dataclass(eq=False)
class Node:
    """`derivative`: from the gradient and the saved arrays to a gradient for each edge.

    places: of the operands in the program, for who wants to cut an edge. inner: the node that a CopySlices runs.
    """

    id: int
    name: str
    number: int | None
    line: int
    shape: list
    next: list = field(default_factory=list)
    places: list = field(default_factory=list)
    ghosts: list = field(default_factory=list)
    derivative: object = None
    saved: list = field(default_factory=list)
    variable: object = None
    inner: object = None
    label: str = ""
    released: bool = False


@dataclass(eq=False)
class Tensor:
    storage: Storage
    shape: list
    offset: int = 0
    flag: bool = False  # requires_grad of a leaf
    grad_fn: Node | None = None
    base: object = None
    made_at: int = 0  # of a view: the version for which `grad_fn` is right
    grad: dict | None = None
    accumulator: Node | None = None
    apart: bool = False  # made by .data: over the memory of another tensor, with a version counter of its own
    cut: object = None  # where it was detached: the tensor before, and the place of .detach()

    @property
    def requires_grad(self):
        return self.flag or self.grad_fn is not None or (self.base is not None and self.base.requires_grad)

    @property
    def array(self):
        return {"shape": self.shape, "values": self.storage.values[self.offset : self.offset + count_of(self.shape)]}


def new_tensor(value):
    return Tensor(Storage(list(value["values"])), value["shape"])


def data_of(t):
    """`t.data`"""
    return Tensor(Storage(t.storage.values), t.shape, t.offset, apart=True)


def wrapped(number):
    """The tensor of no dimension that PyTorch makes of a number."""
    return new_tensor(array([], [number]))


# ---- running it


class Machine:
    """The tensors and nodes of a program, line by line, and what there is to see after each step."""

    def __init__(self, lines):
        self.lines = lines
        self.names = {}
        self.nodes = []
        self.numbers = 0
        self.line = -1
        self.steps, self.say = [], []
        self.task = None  # of a backward: see begin

    # ---- autograd

    def make_node(self, name, shape, operands=(), derivative=None, places=()):
        """A node whose edges lead to the operands' graph. It gets its number before its edges are looked for."""
        node = Node(0, name, self.numbers, self.line, shape, derivative=derivative)
        self.numbers += 1
        node.next = [self.edge(t) for t in operands]
        node.places = [*places] or [None] * len(node.next)
        node.ghosts = [t.cut for t in operands]
        return node

    def add(self, node):
        """Shows the node from now on. It stands behind those to which it leads."""
        node.id = len(self.nodes)
        self.nodes.append(node)
        return node

    def edge(self, t):
        """Where a gradient of `t` goes, or None. (gradient_edge)"""
        if self.grad_fn(t) or not t.flag:
            return t.grad_fn
        if not t.accumulator:
            t.accumulator = self.add(Node(0, "AccumulateGrad", None, self.line, t.shape, variable=t))
            t.accumulator.label = self.name_of(t)
        return t.accumulator

    def grad_fn(self, t):
        """`t.grad_fn`; that of a view is made anew when its base has been written since."""
        if t.base and t.made_at != t.storage.version and (t.grad_fn or t.base.requires_grad):
            offset, shape = t.offset - t.base.offset, t.base.shape
            back = lambda grad, saved: [put(array(shape, [0] * count_of(shape)), offset, grad)]
            t.grad_fn = self.add(self.make_node("AsStridedBackward0", t.shape, [t.base], back))
            t.grad_fn.label = self.name_of(t)
            t.made_at = t.storage.version
        return t.grad_fn

    def name_of(self, t):
        return next((name for name, other in self.names.items() if other is t), "")

    def follow(self, name, value, operands, derivative, saves=(), places=()):
        """The result of an operation, with a node if an operand requires grad."""
        made = new_tensor(value)
        if any(t.requires_grad for t in operands):
            node = self.make_node(name, value["shape"], operands, derivative, places)
            self.save(node, saves, made)
            made.grad_fn = self.add(node)
        return made

    def save(self, node, saves, made):
        """saves: (attribute, tensor, the edge that needs it); None stands for the result, a function makes the tensor."""
        for name, t, edge in saves:
            if node.next[edge]:
                saved = made if t is None else t() if callable(t) else t
                node.saved.append(Saved(name, saved, saved.storage.version, t is None))

    def view(self, name, t, shape, offset, places):
        """A tensor over the same storage, which follows its base."""
        made = Tensor(t.storage, shape, offset, base=t.base or t, made_at=t.storage.version)
        if t.requires_grad:
            first, whole = offset - t.offset, t.shape
            back = lambda grad, saved: [put(array(whole, [0] * count_of(whole)), first, grad)]
            made.grad_fn = self.add(self.make_node(name, shape, [t], back, places))
        return made

    def write(self, t, name, result, operands, derivative, saves, places):
        """An in-place operation. Raises Error."""
        followed = any(one.requires_grad for one in operands)
        if followed and t.requires_grad and t.base and not t.base.grad_fn:
            raise Error(VIEW_OF_LEAF)
        if followed and t.requires_grad and not t.grad_fn:  # of a view perhaps not made yet
            raise Error(LEAF)
        node = self.make_node(name, t.shape, operands, derivative, places) if followed else None
        if node:
            self.save(node, [save for save in saves if save[1]], t)
        value = result()
        if value["shape"] != t.shape:
            raise Error(f"output with shape {t.shape} doesn't match the broadcast shape {value['shape']}")
        t.storage.values[t.offset : t.offset + count_of(t.shape)] = value["values"]
        t.storage.version += 1
        if node:
            self.rebase(t, node)
            self.save(node, [save for save in saves if not save[1]], t)
        return node

    def rebase(self, t, node):
        """What was written has another history. (rebase_history)"""
        if not t.base:
            t.grad_fn = self.add(node)
            node.label = self.name_of(t)
            return
        base, first = t.base, t.offset - t.base.offset
        copy = Node(0, "CopySlices", self.numbers, self.line, base.shape, inner=node)
        self.numbers += 1
        copy.next = [self.edge(base), *node.next[1:]]
        copy.places = [None, *node.places[1:]]
        copy.ghosts = [None, *node.ghosts[1:]]
        copy.saved, copy.label = node.saved, self.name_of(base)

        def through(grad, saved):
            part = {"shape": t.shape, "values": grad["values"][first : first + count_of(t.shape)]}
            own, *others = node.derivative(part, saved)
            return [put(grad, first, own) if own else None, *others]

        copy.derivative = through
        base.grad_fn = self.add(copy)
        self.grad_fn(t)

    # ---- expressions

    def value(self, tree):
        """A number, or a tensor."""
        kind = tree[0]
        if kind == "number":
            return tree[1]
        if kind == "name":
            if tree[1] not in self.names:
                raise Error(f"name '{tree[1]}' is not defined", "NameError")
            return self.names[tree[1]]
        if kind == "group":
            return self.value(tree[1])
        if kind in BINARY:
            return self.arithmetic(kind, tree[1], tree[2])
        return self.of_tensor(tree)

    def tensor(self, tree):
        value = self.value(tree)
        if isinstance(value, Tensor):
            return value
        raise Refusal(f"Line {self.line + 1}: a number has no graph. {ALLOWED}")

    def arithmetic(self, kind, left, right):
        a, b = self.value(left), self.value(right)
        if not isinstance(a, Tensor):  # 2 * y is y.__rmul__(2)
            a, b, left, right = b, a, right, left
        if not isinstance(a, Tensor):
            raise Refusal(f"Line {self.line + 1}: a number has no graph. {ALLOWED}")
        if not isinstance(b, Tensor):
            b = wrapped(b)
        name, derivative, saves = BINARY[kind](a, b)
        result = FORWARD[kind](a.array, b.array)
        return self.follow(name, result, [a, b], derivative, saves, [place(left), place(right)])

    def of_tensor(self, tree):
        kind, name = tree[0], tree[1]
        inner = tree[2] if kind == "method" else tree[1]
        t, places = self.tensor(inner), [place(inner)]
        if kind == "select":
            return self.select(t, tree[2], places)
        if kind == "slice":
            return self.slice(t, tree[2], tree[3], places)
        if kind == "data":
            return data_of(t)
        if name in UNARY:
            node, function, derivative, kept = UNARY[name]
            saves = [("result", None, 0) if kept == "result" else ("self", t, 0)]
            return self.follow(node, function(t.array), [t], derivative, saves, places)
        if name == "sum":
            shape = t.shape
            spread = lambda grad, saved: [array(shape, grad["values"] * count_of(shape))]
            return self.follow("SumBackward0", summed_to(t.array, []), [t], spread, (), places)
        if name == "clone":
            return self.follow("CloneBackward0", t.array, [t], lambda grad, saved: [grad], (), places)
        if name == "detach":
            end = inner[-1]
            return Tensor(
                t.storage, t.shape, t.offset, cut=(t, (self.line, end, tree[-1])) if t.requires_grad else None
            )
        if name == "view":
            return self.view("ViewBackward0", t, viewed(t, tree[3]), t.offset, places)
        raise Refusal(f"Line {self.line + 1}: .{name}() stands at the end of a line of its own. {ALLOWED}")

    def select(self, t, index, places):
        size, rest = t.shape[0] if t.shape else 0, t.shape[1:]
        if not t.shape and index == 0:
            raise Error(NO_INDEX, "IndexError")
        if not -size <= index < size:
            raise Error(f"index {index} is out of bounds for dimension 0 with size {size}", "IndexError")
        return self.view("SelectBackward0", t, rest, t.offset + index % size * count_of(rest), places)

    def slice(self, t, first, last, places):
        if not t.shape:
            raise Error("slice() cannot be applied to a 0-dim tensor.", "IndexError")
        first, last, _ = slice(first, last).indices(t.shape[0])
        if last <= first:
            raise Refusal(f"Line {self.line + 1}: a tensor has at least one element here.")
        rest = t.shape[1:]
        return self.view("SliceBackward0", t, [last - first, *rest], t.offset + first * count_of(rest), places)

    # ---- lines

    def run(self, statement):
        """Do a line. Returns what happened, as a sentence; a backward says it step by step. Raises Error."""
        kind, name, value = statement
        if kind == "backward":
            return self.backward(name, value)
        if kind == "set":
            return self.do_set(name, value)
        t = self.value(("name", name))
        if kind in ("data add", "data mul"):
            return self.write_data(t, kind, name, value)
        if kind in UNARY:
            node, function, derivative, kept = UNARY[kind]
            if t.base:
                raise Refusal(f"Line {self.line + 1}: .{kind}_() on a view is more than this figure follows.")
            saves = [("result", None, 0) if kept == "result" else ("self", lambda: self.clone(t), 0)]
            made = self.write(t, node, lambda: function(t.array), [t], derivative, saves, [("line", name)])
        else:
            made = self.do_binary(t, kind, name, value)
        return self.written(t, name, made)

    def do_set(self, name, value):
        before = len(self.nodes)
        if value[0] == "leaf":
            self.names[name] = made = new_tensor(value[1])
            made.flag = value[2]
            return f"{name} is a leaf{' that requires grad' if made.flag else ': nothing asks for its gradient'}."
        self.names[name] = made = self.tensor(value)
        if made.grad_fn and not made.grad_fn.label:
            made.grad_fn.label = name
        nodes = self.nodes[before:]
        new = [node_text(node) for node in nodes if not node.variable]
        if not new:
            cut = f" {name} shares its storage and version with what it was cut from." if made.cut else ""
            if made.apart:
                cut = f" {name} shares memory, and has a version of its own."
            return f"No node is made.{cut}"
        kept = [f"{node.name} saves {listed([saved_text(s) for s in node.saved])}" for node in nodes if node.saved]
        return f"This makes {listed(new)}.{' ' + '; '.join(kept) + '.' if kept else ''}"

    def write_data(self, t, kind, name, tree):
        """`t.data += …`: the memory is written, and the version of `t` stays."""
        if isinstance(other := self.value(tree), Tensor) and other.requires_grad:
            raise Refusal(
                f"Line {self.line + 1}: a write of what requires grad to .data is more than this figure follows."
            )
        self.do_binary(data_of(t), kind.removeprefix("data "), name, tree)
        return f"The memory of {name} is written behind its back: it is still at version {t.storage.version}."

    def do_binary(self, t, kind, name, tree):
        value = self.value(tree)
        other = value if isinstance(value, Tensor) else wrapped(value)
        node, derivative, saves = BINARY[kind](t, other)
        if kind == "mul":  # what is written over is copied first
            saves = [saves[1], ("self", lambda: self.clone(t), 1)]

        def result():
            if overlap(t, other):
                raise Error(OVERLAP)
            return FORWARD[kind](t.array, other.array)

        return self.write(t, node, result, [t, other], derivative, saves, [("line", name), place(tree)])

    def clone(self, t):
        """A copy that a kernel makes with grad mode on: its node has a number, too."""
        self.numbers += t.requires_grad
        return new_tensor(t.array)

    def written(self, t, name, node):
        words = f"{name} is written: version {t.storage.version}."
        if not node:
            return f"{words} No node is made."
        if not t.base:
            return f"{words} Its grad_fn is now {node_text(node)}."
        base = self.name_of(t.base) or "its base"
        return (
            f"{words} {name} is a view: the grad_fn of {base} is now {node_text(t.base.grad_fn)}, which holds {node.name}, "
            f"and that of {name} {node_text(t.grad_fn)}."
        )

    # ---- backward

    def backward(self, tree, keep):
        t = self.tensor(tree)
        if not t.requires_grad:
            raise Error(NO_GRAPH)
        if count_of(t.shape) != 1:
            raise Error(NO_SCALAR)
        root = self.edge(t)
        self.begin(root, array(t.shape, [1]))
        self.see(f"backward() begins at {node_text(root)} with the gradient 1. {self.waiting()}")
        while self.task["queue"]:
            self.see(f"{self.run_node(self.next_ready(), keep)} {self.waiting()}".strip())
        return None

    def begin(self, root, grad):
        """A graph task: how many gradients each node waits for, what has arrived, and who is ready."""
        needs = dependencies(root)
        self.task = {"needs": needs, "buffers": {root: grad}, "queue": [root], "done": [], "running": None, "out": []}

    def next_ready(self):
        """The ready node with the largest number. An AccumulateGrad comes before all."""
        queue = self.task["queue"]
        node = max(queue, key=lambda one: math.inf if one.variable else one.number)
        queue.remove(node)
        return node

    def run_node(self, node, keep):
        """evaluate_function. Returns what happened. Raises Error."""
        task = self.task
        task["running"], task["out"] = node, []
        grad = task["buffers"].pop(node)
        task["in"] = grad
        if node.variable:
            words = self.accumulate(node.variable, grad)
        else:
            saved = self.unpack(node)
            out = node.derivative(grad, saved)
            if not keep:
                self.release(node)
            task["out"] = [summed_to(g, one.shape) if one else None for one, g in zip(node.next, out)]
            words = f"{node_text(node)} runs with {array_text(grad)}{self.send(node)}."
        task["done"].append(node)
        return words

    def accumulate(self, variable, grad):
        name = self.name_of(variable) or "a leaf"
        if variable.grad:
            variable.grad = add(variable.grad, grad)
            return f"AccumulateGrad adds {array_text(grad)} to {name}.grad."
        variable.grad = grad
        return f"AccumulateGrad writes {array_text(grad)} to {name}.grad."

    def send(self, node):
        """Gradients go into the buffers of the next nodes; who has all of its own is ready."""
        task, parts = self.task, []
        for one, grad in zip(node.next, task["out"]):
            if not one:
                continue
            had = task["buffers"].get(one)
            task["buffers"][one] = add(had, grad) if had else grad
            task["needs"][one] -= 1
            if not task["needs"][one]:
                task["queue"].append(one)
            parts.append(f"{array_text(grad)} to {node_text(one)}{', where it is added' if had else ''}")
        return f" and sends {listed(parts)}" if parts else ""

    def waiting(self):
        task = self.task
        late = [f"{node_text(n)} waits for {task['needs'][n]} more" for n in task["buffers"] if task["needs"][n]]
        if not task["queue"]:
            return "The queue is empty: backward() returns."
        ready = f"Ready: {', '.join(map(node_text, task['queue']))}."
        return f"{ready} {'; '.join(late)}." if late else ready

    def unpack(self, node):
        """The arrays that the node has saved. Raises Error. (SavedVariable::unpack)"""
        if node.released:
            raise Error(TWICE)
        for saved in sorted(node.saved, key=lambda one: one.name):
            t, now = saved.tensor, saved.tensor.storage.version
            if now != saved.version:
                maker = node if saved.output else self.grad_fn(t)
                which = f", which is output 0 of {maker.name.removesuffix('Backward0')}," if maker else ""
                raise Error(
                    "one of the variables needed for gradient computation has been modified by an inplace operation: "
                    f"[torch.FloatTensor {t.shape}]{which} is at version {now}; expected version {saved.version} instead. {HINT}"
                )
        return {saved.name: saved.tensor.array for saved in node.saved}

    @staticmethod
    def release(node):
        if node.saved or node.inner:
            node.saved, node.released = [], True

    # ---- what there is to see

    def see(self, sentence, error=False):
        alive = self.alive()
        self.say.append(sentence)
        self.steps.append({
            "line": self.line,
            "error": error,
            "tensors": [self.tensor_seen(name, t) for name, t in self.names.items()],
            "nodes": [self.node_seen(node, alive) for node in self.nodes],
            "queue": [node.id for node in self.task["queue"]] if self.task else [],
        })  # fmt: skip

    def alive(self):
        """The nodes that can be reached from a name."""
        found = []
        stack = [t.grad_fn for t in self.names.values()]
        while stack:
            node = stack.pop()
            if node and node not in found:
                found.append(node)
                stack += node.next
        return found

    @staticmethod
    def tensor_seen(name, t):
        return {
            "name": name,
            "value": array_text(t.array),
            "version": t.storage.version,
            "requires_grad": t.requires_grad,
            "node": t.grad_fn.id if t.grad_fn else None,
            "stale": bool(t.base and t.grad_fn and t.made_at != t.storage.version),
            "grad": array_text(t.grad) if t.grad else "",
        }

    def node_seen(self, node, alive):
        task = self.task or {"needs": {}, "buffers": {}, "queue": [], "done": [], "running": None, "out": []}
        running = node is task["running"]
        state = (
            "running" if running
            else "done" if node in task["done"]
            else "ready" if node in task["queue"]
            else "waits" if node in task["needs"]
            else "idle" if node in alive
            else "dropped"
        )  # fmt: skip
        buffer = task["in"] if running else task["buffers"].get(node)
        return {
            "state": state,
            "needs": task["needs"].get(node, 0),
            "place": task["done"].index(node) + 1 if node in task["done"] else 0,
            "buffer": array_text(buffer) if buffer else "",
            "out": ["" if grad is None else array_text(grad) for grad in task["out"]] if running else [],
            "saved": [
                {
                    "name": s.name,
                    "value": array_text(s.tensor.array),
                    "version": s.version,
                    "now": s.tensor.storage.version,
                }
                for s in node.saved
            ],
            "released": node.released,
        }

    def node_drawn(self, node):
        edges = list(zip(node.next, node.places, node.ghosts))
        return {
            "name": node.name,
            "number": node.number,
            "label": node.label,
            "line": node.line,
            "shape": node.shape,
            "inner": node.inner.name if node.inner else "",
            "leaf": node.variable is not None,
            "next": [one.id if one else None for one in node.next],
            "cut": [self.cut(node.line, at) if one else "" for one, at, _ in edges],
            "ghosts": [self.ghost(cut) for one, _, cut in edges if cut and not one],
        }

    def cut(self, line, at):
        """The program with .detach() on the operand there, or "" if the edge has none."""
        if at is None:
            return ""
        lines = [*self.lines]
        if at[0] == "line":  # of an in-place operation
            lines.insert(line, f"{at[1]} = {at[1]}.detach()")
        else:
            bare, start, end = at
            old = lines[line]
            operand = old[start:end] if bare else f"({old[start:end]})"
            lines[line] = f"{old[:start]}{operand}.detach(){old[end:]}"
        return "; ".join(lines)

    def ghost(self, cut):
        """An edge that is not there, because its operand was detached: where it would lead, and the program with it."""
        t, (line, start, end) = cut
        lines = [*self.lines]
        lines[line] = lines[line][:start] + lines[line][end:]
        to = t.grad_fn or t.accumulator
        return {"to": to.id if to else None, "join": "; ".join(lines)}


def overlap(a, b):
    """Whether they share elements and are not the same in all."""
    apart = a.offset + count_of(a.shape) <= b.offset or b.offset + count_of(b.shape) <= a.offset
    return a.storage.values is b.storage.values and not apart and (a.offset, a.shape) != (b.offset, b.shape)


def viewed(t, sizes):
    """The shape that view(*sizes) gives. Raises Error."""
    count, known = count_of(t.shape), count_of([size for size in sizes if size >= 0])
    if sizes.count(-1) > 1:
        raise Error("only one dimension can be inferred")
    if any(size < -1 for size in sizes):
        raise Error(f"invalid shape dimension {next(size for size in sizes if size < -1)}")
    fits = known and count % known == 0 if -1 in sizes else known == count
    if not fits:
        raise Error(f"shape '{sizes}' is invalid for input of size {count}")
    return [count // known if size == -1 else size for size in sizes]


def node_text(node):
    if node.variable:
        return f"AccumulateGrad of {node.label}" if node.label else "AccumulateGrad"
    return f"{node.name} ({node.number})"


def saved_text(saved):
    return f"{saved.name} at version {saved.version}"


def add_rule(a, b):
    return "AddBackward0", lambda grad, saved: [grad, grad], ()


def mul_rule(a, b):
    def back(grad, saved):
        return [mul(grad, saved[key]) if key in saved else None for key in ("other", "self")]

    return "MulBackward0", back, (("self", a, 1), ("other", b, 0))


def exp_back(grad, saved):
    return [mul(grad, saved["result"])]


def sin_back(grad, saved):
    return [mul(grad, cos(saved["self"]))]


def tanh_back(grad, saved):
    return [zipped(grad, saved["result"], lambda g, y: g * (1 - y * y))]


def relu_back(grad, saved):
    return [zipped(grad, saved["result"], lambda g, y: g if y > 0 else 0)]


BINARY = {"add": add_rule, "mul": mul_rule}
FORWARD = {"add": add, "mul": mul}
UNARY = {  # node, function, derivative, what is saved
    "exp": ("ExpBackward0", exp, exp_back, "result"),
    "sin": ("SinBackward0", sin, sin_back, "self"),
    "tanh": ("TanhBackward0", tanh, tanh_back, "result"),
    "relu": ("ReluBackward0", relu, relu_back, "result"),
}


def model(inputs):
    lines = [line.strip(" ") for line in inputs["program"].split(";") if line.strip(" ")]
    if len(lines) > LONGEST:
        raise Refusal(f"A program has at most {LONGEST} lines.")
    statements = [Parser(line, at).statement() for at, line in enumerate(lines)]
    machine = Machine(lines)
    machine.see("Before the first line." if lines else f"An empty program. {ALLOWED}")
    failed = False
    for machine.line, statement in enumerate(statements):
        machine.task = None
        try:
            sentence = machine.run(statement)
        except Error as error:
            rest = " What follows is not run." if machine.line + 1 < len(lines) else ""
            machine.see(f"{error}{'' if str(error).endswith('.') else '.'}{rest}", True)
            failed = True
            break
        if sentence:
            machine.see(sentence)
    nodes = [machine.node_drawn(node) for node in machine.nodes]
    return {"lines": lines, "nodes": nodes, "steps": machine.steps, "say": machine.say, "failed": failed}


STATES = {"running": "pick", "done": "pale", "ready": "gold", "waits": "plain", "idle": "plain", "dropped": "free"}


def picture(result, step):
    """The graph at this step; the nodes that are not made yet have their places already."""
    nodes, seen = result["nodes"], result["steps"][step]["nodes"]
    if not seen:
        return drawing(320, 30, text("no node yet", 10, 20, "dim"))
    edges = [(i, to) for i, node in enumerate(nodes) for to in node["next"] if to is not None]
    layout = layered_layout([(title_of(node),) for node in nodes], edges)
    parts = [
        tag("path", d="M" + " L".join(f"{x},{y}" for x, y in path), class_="bare")
        for (start, _), path in zip(edges, layout.paths)
        if start < len(seen)
    ]
    for node, state, (x, y, width, height, _) in zip(nodes, seen, layout.boxes):
        parts.append(box(x - width / 2, y - height / 2, width, height, STATES[state["state"]], title_of(node)))
    return drawing(layout.width, layout.height, *parts)


def title_of(node):
    name = node["name"].removesuffix("0").removesuffix("Backward")
    return f"{name} {node['label']}" if node["leaf"] else f"{name} ({node['number']})"


# ---- random programs


def random_tree(random, names, depth=0):
    kind = random.random()
    if depth > 2 or kind < 0.25:
        return random.choice(names)
    inner = random_tree(random, names, depth + 1)
    if kind < 0.6:
        other = random.choice(["2", "-1", "0.5", *[random_tree(random, names, depth + 1)] * 5])
        pair = f"{inner} {random.choice('+*')} {other}"
        return pair if random.random() < 0.3 else f"({pair})"
    endings = [
        ".exp()", ".sin()", ".tanh()", ".relu()", ".sum()", ".clone()", ".detach()", ".data", ".view(2, 2)", ".view(-1)", "[0]", "[-1]", "[1:]",
        "[:2]", "[0:3]",
    ]  # fmt: skip
    return inner + random.choice(endings)


def random_line(random, names):
    kind = random.choice(
        ["set"] * 5 + ["add", "add", "mul", "mul", "exp_", "sin_", "tanh_", "relu_", "data", "backward", "backward"]
    )
    name = random.choice(names)
    if kind == "set":
        return f"{random.choice('abcdx')} = {random_tree(random, names)}"
    if kind in ("add", "mul"):
        value = random.choice(["1", "2", random.choice(names), random_tree(random, names, 1)])
        return f"{name} {'+' if kind == 'add' else '*'}= {value}"
    if kind == "data":
        return f"{name}.data {random.choice(['+', '*'])}= {random.choice(['1', '2', random.choice(names)])}"
    if kind == "backward":
        keep = random.choice(["", "", "retain_graph=True", "retain_graph=False"])
        return f"({random_tree(random, names)}).sum().backward({keep})"
    return f"{name}.{kind}()"


def sample(random):
    """A program of lines of which all, or all but the last, can be run."""
    count = random.choice([2, 3, 3, 4])
    lines = []
    for name in "xw":
        values = ", ".join(random.choice(["1.", "2.", "-1.", "0.5", "3"]) for _ in range(count))
        grad = random.choice(["", ", requires_grad=True", ", requires_grad=True", ", requires_grad=True"])
        maker = random.choice([f"tensor([{values}, 1.]"] * 4 + [f"ones({count + 1}", f"zeros({count + 1}"])
        lines.append(f"{name} = torch.{maker}{grad})")
    machine = Machine(lines)

    def run(line):
        machine.run(Parser(line, 0).statement())

    for line in lines:
        run(line)
    draws = random.randint(4, 60)
    more = lines_that_run(random, (random_line(random, list(machine.names)) for _ in range(draws)), run)
    return {"program": "; ".join(itertools.islice(itertools.chain(lines, more), LONGEST))}


FIGURE = Figure(
    name="graph_explorer",
    title="A program, its graph, and backward",
    inputs=(
        Expression("program", "program", FIRST, longest=1200, examples=EXAMPLES),
        Integer("node", "node", -1, low=-1, high=99, hidden=True),
        Text("tensor", "tensor", "", longest=8, hidden=True),
    ),
    model=model,
    picture=picture,
    helpers=("_layered", "models/broadcasting", "models/graph_programs"),
    sample=sample,
)
