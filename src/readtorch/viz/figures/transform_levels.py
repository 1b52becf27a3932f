"""What `grad`, `jvp` and `vmap`, nested, do with every operator call of a function: which level has it, in which boxes,
by which rule (the chapter "Forward mode, vmap and torch.func").

In PyTorch: `aten/src/ATen/functorch/{DynamicLayer,ADInterpreters,VmapInterpreter,BatchRules*}.cpp`,
`torch/_functorch/eager_transforms.py`. `tests/viz/test_transform_levels.py` runs random compositions with `torch.func`.
"""

import math
from dataclasses import dataclass, field

from readtorch.viz.broadcasting import Error, broadcast, count_of, dependencies, places
from readtorch.viz.figure_kit import Figure
from readtorch.viz.inputs import Choice, Expression, Refusal, Text
from readtorch.viz.picture import box, drawing, text
from readtorch.viz.transform_programs import Parser, float32, nested, numbers_of, printed, shape_text

SLOTS = ["outer", "middle", "inner"]
TRANSFORMS = {"": "nothing", "grad": "grad", "jvp": "jvp", "vmap": "vmap"}
MOST = 300  # events
LARGEST = 1e9
FAR = (
    "A sine or cosine of more than 100 depends on digits that float32 does not have: this figure takes smaller numbers."
)


# ---- values: an array, or a box of a level around another value


@dataclass(eq=False)
class Array:
    shape: list
    values: list
    zero: bool = False  # a tensor of zeros without elements, that stands for a missing tangent

    level = 0


@dataclass(eq=False)
class Batched:
    level: int
    value: object  # its dimension 0 is the batch


@dataclass(eq=False)
class Tracked:
    """A GradTrackingTensor. node: its `grad_fn` at this level; tangent: a value that is in no box of this level."""

    level: int
    value: object
    node: object = None
    tangent: object = None


@dataclass(eq=False)
class Node:
    name: str
    number: int
    shape: list  # of the result
    next: list = field(default_factory=list)  # a node for each operand, or None
    back: object = None  # from the gradient to one for each operand


@dataclass(eq=False)
class Layer:
    kind: str
    level: int
    size: int = 0  # of the batch


def shape_of(value):
    """The shape that a program sees."""
    if isinstance(value, Array):
        return value.shape
    inner = shape_of(value.value)
    return inner[1:] if isinstance(value, Batched) else inner


def short(value):
    """A value in a few letters: G2[B1[3, 2]]."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Array):
        return shape_text(value.shape)
    letter = "B" if isinstance(value, Batched) else "G"
    inner = short(value.value)
    return f"{letter}{value.level}{inner if inner.startswith('[') else f'[{inner}]'}"


def written(value):
    """A value as PyTorch prints it."""
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Array):
        return printed(value.shape, value.values)
    name = "BatchedTensor" if isinstance(value, Batched) else "GradTrackingTensor"
    where = f"lvl={value.level}, bdim=0" if isinstance(value, Batched) else f"lvl={value.level}"
    inside = "\n".join(f"    {line}" if line else line for line in written(value.value).split("\n"))
    return f"{name}({where}, value=\n{inside}\n)"


def tangent_text(value):
    """The tangent of a box of jvp, which printing the box does not show."""
    tangent = value.tangent if isinstance(value, Tracked) else None
    if tangent is None:
        return ""
    return f"zeros{shape_text(tangent.shape)}" if isinstance(tangent, Array) and tangent.zero else written(tangent)


# ---- the kernels: what is done when no layer is left


def made(shape, values):
    if not all(abs(value) < LARGEST for value in values):
        raise Refusal("A number grows beyond 1,000,000,000: this figure takes smaller ones.")
    return Array([*shape], [float32(value) for value in values])


def elementwise(function):
    return lambda a: made(a.shape, [function(x) for x in a.values])


def circular(function):
    """Sine or cosine."""

    def kernel(a):
        if any(abs(x) > 100 for x in a.values):
            raise Refusal(FAR)
        return made(a.shape, [function(x) for x in a.values])

    return kernel


def pairwise(function):
    def kernel(a, b):
        shape = broadcast(a.shape, b.shape)
        left, right = places(a.shape, shape), places(b.shape, shape)
        return made(shape, [function(a.values[i], b.values[j]) for i, j in zip(left, right)])

    return kernel


def sum_kernel(a, dims, keep):
    kept = [1 if dim in dims else size for dim, size in enumerate(a.shape)]
    values = [0.0] * count_of(kept)
    for place, value in zip(places(kept, a.shape), a.values):
        values[place] += value
    return made(kept if keep else [size for dim, size in enumerate(kept) if dim not in dims], values)


def dot_kernel(a, b):
    if len(a.shape) != 1 or len(b.shape) != 1:
        raise Error(f"1D tensors expected, but got {len(a.shape)}D and {len(b.shape)}D tensors")
    if a.shape != b.shape:
        sizes = (
            f"expected tensor {shape_text(a.shape)} and src {shape_text(b.shape)} to have the same number of elements"
        )
        raise Error(f"inconsistent tensor size, {sizes}, but got {a.shape[0]} and {b.shape[0]} elements respectively")
    return made([], [sum(x * y for x, y in zip(a.values, b.values))])


def bmm_kernel(a, b):
    """[n, p, q] times [n, q, r]"""
    (n, p, q), r = a.shape, b.shape[2]
    values = [
        sum(a.values[(i * p + j) * q + k] * b.values[(i * q + k) * r + m] for k in range(q))
        for i in range(n)
        for j in range(p)
        for m in range(r)
    ]
    return made([n, p, r], values)


def transpose_kernel(a):
    """The last two dimensions exchanged."""
    *rest, p, q = a.shape
    values = [a.values[(i * p + k) * q + j] for i in range(count_of(rest)) for j in range(q) for k in range(p)]
    return Array([*rest, q, p], values)


def expand_kernel(a, shape):
    return Array([*shape], [a.values[place] for place in places(a.shape, shape)])


def view_kernel(a, shape):
    return Array([*shape], a.values, a.zero)


KERNELS = {
    "sin": circular(math.sin),
    "cos": circular(math.cos),
    "exp": elementwise(lambda x: math.exp(min(x, 50))),
    "neg": elementwise(lambda x: -x),
    "ones_like": elementwise(lambda x: 1.0),
    "zeros_like": elementwise(lambda x: 0.0),
    "mul": pairwise(lambda x, y: x * y),
    "add": pairwise(lambda x, y: x + y),
    "sub": pairwise(lambda x, y: x - y),
    "sum": sum_kernel,
    "dot": dot_kernel,
    "bmm": bmm_kernel,
    "transpose": transpose_kernel,
    "expand": expand_kernel,
    "view": view_kernel,
    "alias": lambda a: Array(a.shape, a.values, a.zero),
}
SILENT = ("view", "transpose", "expand", "alias")  # views: not shown, except in what they give


# ---- rules: of a node, of a tangent, of a batch. `call` is Machine.call


def mul_back(call, g, a, b):
    return [lambda: call("mul", g, b), lambda: call("mul", g, a)]


BACK = {
    "sin": lambda call, g, y, a: [lambda: call("mul", g, call("cos", a))],
    "cos": lambda call, g, y, a: [lambda: call("mul", g, call("neg", call("sin", a)))],
    "exp": lambda call, g, y, a: [lambda: call("mul", g, y)],
    "neg": lambda call, g, y, a: [lambda: call("neg", g)],
    "add": lambda call, g, y, a, b: [lambda: g, lambda: g],
    "sub": lambda call, g, y, a, b: [lambda: g, lambda: call("neg", g)],
    "mul": lambda call, g, y, a, b: mul_back(call, g, a, b),
    "dot": lambda call, g, y, a, b: mul_back(call, g, a, b),
    "sum": lambda call, g, y, a, dims, keep: [lambda: spread(call, g, shape_of(a), dims, keep)],
    "bmm": lambda call, g, y, a, b: [
        lambda: call("bmm", g, call("transpose", b)),
        lambda: call("bmm", call("transpose", a), g),
    ],
    "transpose": lambda call, g, y, a: [lambda: call("transpose", g)],
    "view": lambda call, g, y, a, shape: [lambda: call("view", g, shape_of(a))],
    "expand": lambda call, g, y, a, shape: [lambda: sum_to(call, g, shape_of(a))],
    "alias": lambda call, g, y, a: [lambda: g],
}
NODES = {
    "sin": "SinBackward0", "cos": "CosBackward0", "exp": "ExpBackward0", "neg": "NegBackward0", "add": "AddBackward0",
    "sub": "SubBackward0", "mul": "MulBackward0", "dot": "DotBackward0", "bmm": "BmmBackward0", "transpose": "TransposeBackward0",
    "view": "ViewBackward0", "expand": "ExpandBackward0", "alias": "AliasBackward0",
}  # fmt: skip


def spread(call, g, shape, dims, keep):
    """The gradient of a sum."""
    if not keep and len(dims) < len(shape):
        g = call("view", g, [1 if dim in dims else size for dim, size in enumerate(shape)])
    return call("expand", g, shape)


def sum_to(call, g, shape):
    """The sum over what was broadcast."""
    own = shape_of(g)
    if own == shape:
        return g
    if not shape:
        return call("sum", g, list(range(len(own))), False)
    lead = len(own) - len(shape)
    dims = [*range(lead), *(lead + dim for dim, size in enumerate(shape) if size == 1 and own[lead + dim] != 1)]
    summed = call("sum", g, dims, True)
    return call("view", summed, shape) if lead else summed


def two_products(call, name):
    """first * b + a * second, of which the one at the right is computed first."""

    def rule(a, b, at, bt, y):
        right = call(name, at, b) if name == "mul" else call(name, a, bt)
        left = call(name, bt, a) if name == "mul" else call(name, at, b)
        return call("add", left, right)

    return rule


def tangent_of(call, name, operands, tangents, y):
    """The tangent of a result, from those of the operands."""
    a, at = operands[0], tangents[0]
    if name == "sin":
        return call("mul", at, call("cos", a))
    if name == "cos":
        return call("mul", at, call("neg", call("sin", a)))
    if name == "exp":
        return call("mul", at, y)
    if name in ("add", "sub"):
        return call(name, at, tangents[1])
    if name in ("mul", "dot", "bmm"):
        return two_products(call, name)(a, operands[1], at, tangents[1], y)
    return call(name, at, *operands[1:])


class Machine:
    """The layers, and what each does with every call."""

    def __init__(self):
        self.stack, self.depth = [], 0
        self.numbers = 0
        self.events, self.indent = [], 0

    def event(self, type, level, what, given):
        if len(self.events) >= MOST:
            raise Refusal(f"More than {MOST} events: please a shorter function.")
        event = {
            "type": type,
            "level": level,
            "kind": self.stack[level - 1].kind if level else "kernel",
            "what": what,
            "given": [short(value) for value in given],
            "values": [written(value) for value in given],
            "tangents": [tangent_text(value) for value in given],
            "rule": "",
            "indent": self.indent,
            "layers": len(self.stack),
            "result": "",
            "value": "",
            "tangent": "",
        }
        self.events.append(event)
        return event

    def gives(self, event, value):
        event["result"], event["value"], event["tangent"] = short(value), written(value), tangent_text(value)
        return value

    def call(self, name, *args):
        """An operator, called where `depth` layers are left."""
        if not self.depth:
            return self.kernel(name, args)
        layer = self.stack[self.depth - 1]
        return (self.batch if layer.kind == "vmap" else self.track)(layer, name, args)

    def below(self, name, *args):
        """The same with one layer less."""
        self.depth -= 1
        try:
            return self.call(name, *args)
        finally:
            self.depth += 1

    # ---- no layer

    def kernel(self, name, args):
        tensors = [Array([], [arg]) if isinstance(arg, float) else arg for arg in args]
        zero = [isinstance(one, Array) and one.zero for one in tensors]
        if name == "mul" and any(zero):
            shape = broadcast(tensors[0].shape, tensors[1].shape)
            return Array(shape, [0.0] * count_of(shape), True)
        if name in ("add", "sub") and any(zero):
            shape = broadcast(tensors[0].shape, tensors[1].shape)
            other = tensors[1] if zero[0] else tensors[0]
            if name == "sub" and zero == [True, False]:
                other = self.kernel("mul", (other, -1.0))
            return Array(shape, expand_kernel(other, shape).values, all(zero))
        if name in SILENT:
            return KERNELS[name](*tensors)
        values = [arg for arg in args if isinstance(arg, (Array, float))]
        event = self.event("call", 0, title(name, args), values)
        result = KERNELS[name](*tensors)
        result.zero = name == "dot" and any(zero)
        return self.gives(event, result)

    # ---- grad and jvp

    def track(self, layer, name, args):
        level = layer.level
        event = None if name in SILENT else self.event("call", level, title(name, args), operands_in(args))
        own = [self.wrapped(arg, level) if isinstance(arg, (Array, Batched, Tracked)) else arg for arg in args]
        tensors = [one for one in own if isinstance(one, Tracked)]
        node = None
        if any(one.node for one in tensors) and name in BACK:
            node = Node(NODES.get(name) or sum_node(args), self.numbers, [])
            self.numbers += 1
            node.next = [one.node if isinstance(one, Tracked) else None for one in own if is_operand(one)]
        self.indent += 1
        result = Tracked(
            level, self.below(name, *(one.value if isinstance(one, Tracked) else one for one in own)), node
        )
        if node:
            node.shape = shape_of(result)
            plain = Tracked(level, result.value, node)
            node.back = lambda g: BACK[name](self.call, g, plain, *own)
        moving = any(one.tangent is not None for one in tensors)
        if moving and name in BACK:
            moved = self.tangent(level, name, own, result)
            lazy = is_zero(result) or count_of(shape_of(result)) == 1
            result.tangent = moved if lazy else solid(moved)
        self.indent -= 1
        if event:
            event["rule"] = node.name if node else "tangent" if moving and name in BACK else ""
            self.gives(event, result)
        return result

    @staticmethod
    def wrapped(value, level):
        return value if isinstance(value, Tracked) and value.level == level else Tracked(level, value)

    def tangent(self, level, name, own, result):
        uses = name in ("sin", "cos", "mul", "dot", "bmm")  # the operands themselves, without their tangents
        operands = [
            Tracked(level, self.below("alias", one.value) if uses else one.value) if isinstance(one, Tracked) else one
            for one in own
        ]
        tangents = [self.tangent_or_zero(one) for one in own if is_operand(one)]
        return tangent_of(self.call, name, operands, tangents, Tracked(level, result.value))

    @staticmethod
    def tangent_or_zero(one):
        if isinstance(one, Tracked) and one.tangent is not None:
            return one.tangent
        shape = shape_of(one) if isinstance(one, Tracked) else []
        return Array([*shape], [0.0] * count_of(shape), True)

    # ---- vmap

    def batch(self, layer, name, args):
        level = layer.level
        event = None if name in SILENT else self.event("call", level, title(name, args), operands_in(args))
        is_batched = [isinstance(arg, Batched) and arg.level == level for arg in args]
        self.indent += 1
        if any(is_batched):
            physical = [arg.value if own else arg for arg, own in zip(args, is_batched)]
            rule, value = self.batching_rule(layer, name, physical, is_batched)
            result = Batched(level, value)
        else:
            rule, result = "", self.below(name, *args)
        self.indent -= 1
        if event:
            event["rule"] = rule
            self.gives(event, result)
        return result

    def batching_rule(self, layer, name, args, own):
        """(what is said of it, the physical result) of operands of which `own` have the batch as dimension 0."""
        a, rest = args[0], args[1:]
        if name in ("add", "sub", "mul"):
            return "batch first, ranks made equal", self.below(name, *self.padded(args, own))
        if name == "sum":
            dims, keep = rest
            return "dimensions move up by one", self.below("sum", a, [dim + 1 for dim in dims], keep)
        if name == "dot":
            return self.batch_dot(args, own)
        if name == "bmm":
            return "the two batches become one", self.batch_bmm(layer, args, own)
        if name == "view":
            return "", self.below("view", a, [layer.size, *rest[0]])
        if name == "expand":
            inner, shape = shape_of(a), rest[0]
            if len(inner) - 1 < len(shape):
                a = self.below("view", a, [layer.size, *[1] * (len(shape) - len(inner) + 1), *inner[1:]])
            return "", self.below("expand", a, [layer.size, *shape])
        return "the same on the whole batch", self.below(name, a)

    def padded(self, args, own):
        """Operands whose logical ranks are made equal, for broadcasting."""
        ranks = [0 if isinstance(arg, float) else len(shape_of(arg)) - is_own for arg, is_own in zip(args, own)]
        for arg, is_own, rank in zip(args, own, ranks):
            if is_own and rank < max(ranks):
                size, *shape = shape_of(arg)
                arg = self.below("view", arg, [size, *[1] * (max(ranks) - rank), *shape])
            yield arg

    def batch_dot(self, args, own):
        ranks = [len(shape_of(arg)) - is_own for arg, is_own in zip(args, own)]
        if ranks != [1, 1]:
            raise Error("Got wrong shapes for dot")
        a, b = args
        if not all(own):
            raise Refusal("A dot of which one operand has no batch is more than this figure follows.")
        (size, n), m = shape_of(a), shape_of(b)[1]
        if n != m:
            raise Error(
                f"Expected size for first two dimensions of batch2 tensor to be: [{size}, {n}] but got: [{size}, {m}]."
            )
        product = self.below("bmm", self.below("view", a, [size, 1, n]), self.below("view", b, [size, n, 1]))
        return "dot becomes bmm", self.below("view", product, [size])

    def batch_bmm(self, layer, args, own):
        flat = []
        for arg, is_own in zip(args, own):
            shape = shape_of(arg)
            if not is_own:
                arg = self.below("expand", arg, [layer.size, *shape])
                shape = [layer.size, *shape]
            flat.append(self.below("view", arg, [shape[0] * shape[1], *shape[2:]]))
        n = shape_of(flat[0])[0] // layer.size
        product = self.below("bmm", *flat)
        return self.below("view", product, [layer.size, n, *shape_of(product)[1:]])

    # ---- transforms

    def enter(self, kind, x):
        """A new layer. Returns x as the function below sees it."""
        layer = Layer(kind, len(self.stack) + 1)
        self.stack.append(layer)
        self.depth += 1
        if kind == "vmap":
            layer.size = shape_of(x)[0]
            inner = Batched(layer.level, x)
        else:
            inner = Tracked(layer.level, x)
        event = self.event("begin", layer.level, kind, [x])
        self.gives(event, inner)
        return layer, inner

    def leave(self, layer, value):
        event = self.event("end", layer.level, layer.kind, [value])
        self.stack.pop()
        self.depth -= 1
        own = not isinstance(value, Array) and value.level == layer.level
        if layer.kind == "vmap":
            result = value.value if own else self.call("expand", value, [layer.size, *shape_of(value)])
        else:
            result = value.value if own else value
        return self.gives(event, result)

    def grad(self, function, x):
        layer, inner = self.enter("grad", x)
        inner.node = leaf = Node("AccumulateGrad", math.inf, shape_of(inner))
        y = function(inner)
        if not isinstance(y, (Array, Batched, Tracked)):
            raise Error(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(y)}")
        if shape_of(y):
            raise Error(
                "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                f"{len(shape_of(y))} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
            )
        return self.leave(layer, self.backward(y, inner, leaf))

    def backward(self, y, x, leaf):
        """torch.autograd.grad(y, x, create_graph=True)"""
        root = y.node if isinstance(y, Tracked) and y.level == x.level else None
        if not root:
            return self.call("zeros_like", x)
        needs = dependencies(root)
        buffers, queue = {root: self.call("ones_like", y)}, [root]
        while queue:
            node = max(queue, key=lambda one: one.number)
            queue.remove(node)
            if node is not leaf:
                self.run(node, buffers, needs, queue)
        return buffers[leaf]

    def run(self, node, buffers, needs, queue):
        grad = buffers.pop(node)
        event = self.event("node", self.depth, node.name, [grad])
        self.indent += 1
        grads = self.gradients(node, node.back(grad))
        grads = [sum_to(self.call, g, one.shape) if one else None for one, g in zip(node.next, grads)]
        for one, g in zip(node.next, grads):
            if not one:
                continue
            buffers[one] = self.call("add", buffers[one], g) if one in buffers else g
            needs[one] -= 1
            if not needs[one]:
                queue.append(one)
        self.indent -= 1
        event["result"] = ", ".join(short(g) for g in grads if g)

    @staticmethod
    def gradients(node, parts):
        """One for each operand, computed in the order of the operands' names: that of `other` before that of `self`."""
        grads = [None] * len(parts)
        for i in reversed(range(len(parts))) if node.name in ("MulBackward0", "BmmBackward0") else range(len(parts)):
            if node.next[i]:
                grads[i] = parts[i]()
        return grads

    def jvp(self, function, x, v):
        layer, inner = self.enter("jvp", x)
        inner.value = self.below("alias", x)
        inner.tangent = v
        y = function(inner)
        if not isinstance(y, (Array, Batched, Tracked)):
            raise Error("jvp(f, primals, tangents): Expected f to be a function that has non-empty output")
        own = isinstance(y, Tracked) and y.level == layer.level and y.tangent is not None
        return self.leave(layer, y.tangent if own else self.call("zeros_like", y))

    def vmap(self, function, x, name):
        if not shape_of(x):
            raise Error(
                f"vmap({name}, in_dims=0, ...)(<inputs>): Got in_dim=0 for some input, but that input is a Tensor of "
                "dimensionality 0 so expected in_dim to satisfy -0 <= in_dim < 0.",
                "ValueError",
            )
        layer, inner = self.enter("vmap", x)
        y = function(inner)
        if not isinstance(y, (Array, Batched, Tracked)):
            raise Error(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= "
                "to None for output?",
                "ValueError",
            )
        return self.leave(layer, y)

    def check_number(self, tree, args):
        """The tangent of x + 0.5 has dtype float64 in PyTorch, where x has no dimension."""
        numbers = any(isinstance(arg, float) for arg in args)
        scalar = any(not shape_of(arg) for arg in args if not isinstance(arg, float))
        if numbers and scalar and any(layer.kind == "jvp" for layer in self.stack):
            raise Refusal(
                "Under jvp a number beside a tensor without dimensions is promoted in ways that this figure does not follow."
            )

    def evaluate(self, tree, x):
        """The function itself."""
        if tree[0] == "x":
            return x
        if tree[0] == "number":
            return tree[1]
        args = [self.evaluate(part, x) for part in tree[1:]]
        if all(isinstance(arg, float) for arg in args):
            raise Refusal("An operator takes a tensor: numbers alone are computed by Python.")
        if tree[0] == "sub" and isinstance(args[0], float):
            raise Refusal(
                "A number minus a tensor is an operator of its own, rsub, that is not known here: write -x + 2 for 2 - x."
            )
        if tree[0] in ("add", "sub", "mul"):
            self.check_number(tree, args)
            return self.call(tree[0], *(args[::-1] if isinstance(args[0], float) else args))
        if any(isinstance(arg, float) for arg in args):
            raise Refusal("torch.dot takes two tensors.")
        if tree[0] == "sum":
            if not shape_of(args[0]):
                raise Refusal("A sum of a single number is the number: leave it out.")
            return self.call("sum", args[0], list(range(len(shape_of(args[0])))), False)
        return self.call(tree[0], *args)


def is_zero(value):
    return value.zero if isinstance(value, Array) else is_zero(value.value)


def solid(value):
    """A tensor of zeros gets its elements when it becomes the tangent of one that has several."""
    if isinstance(value, Array):
        return Array(value.shape, value.values)
    if isinstance(value, Batched):
        return Batched(value.level, solid(value.value))
    return Tracked(value.level, solid(value.value), value.node, value.tangent)


def is_operand(one):
    return isinstance(one, (Array, Batched, Tracked, float))


def operands_in(args):
    return [arg for arg in args if is_operand(arg)]


def is_whole(args):
    return args[1] == list(range(len(shape_of(args[0])))) and not args[2]


def sum_node(args):
    return "SumBackward0" if is_whole(args) else "SumBackward1"


def title(name, args):
    if name == "sum" and not is_whole(args):
        return f"sum({args[1]}{', keepdim' if args[2] else ''})"
    return name


def composed(machine, kinds, tree, v, level=0):
    """The function that the transforms from `level` on make, and its name in messages."""
    if level == len(kinds):
        return (lambda x: machine.evaluate(tree, x)), "f"
    inner, name = composed(machine, kinds, tree, v, level + 1)
    if kinds[level] == "grad":
        return (lambda x: machine.grad(inner, x)), name
    if kinds[level] == "vmap":
        return (lambda x: machine.vmap(inner, x, name)), name
    return (lambda x: machine.jvp(inner, x, tangent_like(x, v))), "<lambda>"


def has_number(tree):
    return tree[0] == "number" or any(has_number(part) for part in tree[1:] if isinstance(part, tuple))


def tangent_like(x, v):
    """The tangent for x: `v` in each row."""
    shape = shape_of(x)
    if len(v) != (shape[-1] if shape else 1):
        count = shape[-1] if shape else 1
        raise Refusal(f"v needs {count} number{'s' if count > 1 else ''} here, as many as a row of x.")
    return Array([*shape], v * (count_of(shape) // len(v)))


def model(inputs):
    kinds = [inputs[slot] for slot in SLOTS if inputs[slot]]
    tree = Parser(inputs["function"]).whole()
    shape, values = nested(inputs["x"], "x")
    if count_of(shape) > 24 or len(shape) > 3 or 0 in shape:
        raise Refusal("x has at most three dimensions and 24 elements here.")
    if kinds in (["vmap", "jvp", "jvp"], ["jvp", "jvp", "jvp"]) and has_number(tree):
        raise Refusal(
            "A number's tangent is a tensor of zeros without elements; under two more jvp this figure does not follow it."
        )
    machine = Machine()
    function, _ = composed(machine, kinds, tree, numbers_of(inputs["v"], "v"))
    error, result = "", None
    try:
        result = function(Array(shape, values))
    except Error as problem:
        error = str(problem)
    if isinstance(result, float):
        raise Refusal("f gives a number, and no tensor. Write a function of x.")
    code = code_of(kinds, len(shape))
    say = [f"The call: {code}."]
    say += [sentence(event) for event in machine.events]
    say.append(
        f"{error}{'' if error.endswith(('.', '?')) else '.'}"
        if error
        else f"The result has the shape {shape_text(shape_of(result))}."
    )
    return {
        "events": machine.events,
        "kinds": kinds,
        "code": code,
        "error": error,
        "result": written(result) if result else "",
        "say": say,
    }


def code_of(kinds, dims):
    """The call as a reader would write it; `rows` is v for each row of x."""
    text = "f"
    for i, kind in reversed(list(enumerate(kinds))):
        tangent = "rows" if dims - kinds[:i].count("vmap") > 1 else "v"
        text = f"lambda x: jvp({text}, (x,), ({tangent},))[1]" if kind == "jvp" else f"{kind}({text})"
    return f"({text})(x)" if text.startswith("lambda") else f"{text}(x)"


def sentence(event):
    """What an event is, in words."""
    level, what, rule = event["level"], event["what"], event["rule"]
    if event["type"] == "begin":
        how = {
            "grad": "x goes into a box, and requires grad at this level",
            "jvp": "x goes into a box, with v as its tangent at this level",
            "vmap": "dimension 0 of x is hidden in the box",
        }[what]
        return f"{what} puts level {level} on the stack: {how}."
    if event["type"] == "end":
        return f"{what} takes level {level} off the stack, and the result out of its box."
    if event["type"] == "node":
        return f"Backward of level {level}: {what} runs."
    if not level:
        return f"No level is left: the CPU's kernel of {what} runs."
    place = f"Level {level}, {event['kind']}, has {what}"
    if event["kind"] == "vmap":
        goes = "no operand has a batch dimension of this level, and the call goes down as it is"
        return f"{place}: {f'batching rule, {rule}' if rule else goes}."
    if rule == "tangent":
        return f"{place}: the call goes down with opened boxes, and then the kernel of Autograd computes the tangent."
    if rule:
        return f"{place}: the kernel of Autograd makes {an(rule)}, and the call goes down with opened boxes."
    return f"{place}: there is nothing to differentiate at this level, and the call goes down with opened boxes."


def an(name):
    return f"an {name}" if name[0] in "AEIOU" else f"a {name}"


def picture(result, step):
    """The last rows up to this step, with a column for each level: the top of the stack at the left."""
    levels = [*range(len(result["kinds"]), 0, -1), 0]
    shown = [event for event in result["events"][max(0, step - 10) : step]]
    parts = [
        text(f"level {level}: {result['kinds'][level - 1]}" if level else "kernel", 10 + 190 * i, 16, "dim")
        for i, level in enumerate(levels)
    ]
    for row, event in enumerate(shown):
        kind = "pick" if row == len(shown) - 1 else "plain" if event["level"] else "pale"
        words = f"{event['what']} {' '.join(event['given'])}"[:26]
        parts.append(box(6 + 190 * levels.index(event["level"]), 24 + 26 * row, 184, 22, kind, words))
    return drawing(16 + 190 * len(levels), 36 + 26 * max(1, len(shown)), *parts)


# ---- random compositions


def random_tree(random, depth=0):
    kind = random.random()
    if depth > 2 or kind < 0.25:
        return "x" if not depth or random.random() < 0.8 else random.choice(["2", "0.5", "-1"])
    if kind < 0.5:
        return f"({random_tree(random, depth + 1)} {random.choice('+*-')} {random_tree(random, depth + 1)})"
    if kind < 0.53:
        return f"torch.{random.choice(['cos', 'sum'])}({random_tree(random, depth + 1)})"
    if kind < 0.56:
        return f"-{random_tree(random, depth + 1)}"
    if kind < 0.6:
        return f"torch.dot({random_tree(random, depth + 1)}, {random_tree(random, depth + 1)})"
    inner = random_tree(random, depth + 1)
    return ("x" if inner[0] in "20-" else inner) + random.choice([".sin()", ".cos()", ".exp()", ".sum()"])


def sample(random):
    kinds = [random.choice(["grad", "jvp", "vmap"]) for _ in range(random.choice([0, 1, 2, 2, 3, 3]))]
    batch = [random.choice([1, 2, 3]) for _ in range(kinds.count("vmap"))]
    shape = [*batch, *random.choice([[2], [2], [3], [1], []])][:3]
    own = shape[len(batch) :]
    function = random_tree(random)
    if own and "grad" in kinds and random.random() < 0.8:
        function = f"({function}).sum()"
    number = lambda shape: (
        random.choice(["0.", "0.5", "1", "-1.", "1.5"])
        if not shape
        else f"[{', '.join(number(shape[1:]) for _ in range(shape[0]))}]"
    )
    rest = {"function": function, "x": number(shape), "v": number(own or [1]).strip("[]")}
    return rest | {slot: kinds[i] if i < len(kinds) else "" for i, slot in enumerate(SLOTS)}


EXAMPLES = ("(x * x.sin()).sum()", "x.exp().sum()", "torch.dot(x, x.sin())", "(2 * x - 1) * x.sum()", "x.sin()")
FIGURE = Figure(
    name="transform_levels",
    title="Nested transforms: who has each call",
    inputs=(
        Expression("function", "f(x) =", EXAMPLES[0], examples=EXAMPLES),
        Choice("outer", "outer", "vmap", options=TRANSFORMS),
        Choice("middle", "middle", "grad", options=TRANSFORMS),
        Choice("inner", "inner", "", options=TRANSFORMS),
        Text("x", "x", "[[1, 2], [3, 4], [5, 6]]", longest=200),
        Text("v", "v", "[1, 0]"),
    ),
    model=model,
    picture=picture,
    hint="G2[B1[3, 2]]: a GradTrackingTensor of level 2 around a BatchedTensor of level 1 around a tensor of the shape [3, 2].",
    helpers=("models/broadcasting", "models/transform_programs"),
    sample=sample,
)
