"""What a group computes for one element: assignments in order, each with its type.

A group is a graph of operators on tensors. Its values get types from a *profile*: one unfused run that
notes the dtype and shape of every value, so no rule of promotion is written twice. Each node then becomes
one line such as

    v3 = tanh(v2, ())

with casts where an operand has another type than the operator computes in.

In PyTorch: the loops and stores of `torch/csrc/jit/tensorexpr/loopnest.cpp`, which `TensorExprKernel::computeValue` in
`torch/csrc/jit/tensorexpr/kernel.cpp` writes; types come from the profiling executor.
"""

from typing import NamedTuple

import numpy as np

from readtorch.aten.native.tensor_iterator import result_type, scalar_tensor
from readtorch.aten.native_function import below_autograd
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.ir.type import TensorType

from .lowerings import OPEN_ENDS, lowering_of, reduction_of

CODES = {
    np.dtype(np.float32): "f32",
    np.dtype(np.float64): "f64",
    np.dtype(np.bool_): "b1",
    np.dtype(np.int64): "i64",
    np.dtype(np.int32): "i32",
}
FLOATS = ("f32", "f64")
NUMBER_CODES = {float: "f64", int: "i64", bool: "b1"}


class Unfusable(Exception):
    """Why a group cannot be one kernel for the operands at hand."""


class Profile:
    """One unfused run of a group: `values` has what each Value was worth."""

    def __init__(self, graph, arguments):
        self.values = dict(zip(graph.inputs(), arguments))
        with below_autograd():
            for node in graph.nodes():
                if node.kind() == "prim::Constant":
                    self.values[node.output()] = node.constant_value()
                elif node.kind() == "prim::ListConstruct":
                    self.values[node.output()] = [self.values[v] for v in node.inputs()]
                else:
                    result = node.getOperator().operation(node)(*[self.values[v] for v in node.inputs()])
                    self.values[node.output()] = result

    def outputs(self, graph):
        return [self.values[v] for v in graph.outputs()]

    def code(self, value):
        """The type of a value: "f32" and so on. Raises Unfusable for types that kernels do not know."""
        worth = self.values[value]
        if not isinstance(worth, TensorImpl):
            return NUMBER_CODES[type(worth)]
        if worth._array.dtype not in CODES:
            raise Unfusable(f"an operand or result has dtype {worth.dtype}")
        return CODES[worth._array.dtype]


class Input(NamedTuple):
    name: str
    code: str
    is_tensor: bool


class Assignment(NamedTuple):
    """target = cast(function(operands…, numbers)); `text` is that line, `node` where it comes from."""

    target: str
    text: str
    node: object


class Output(NamedTuple):
    name: str
    code: str
    reduction: str | None  # "sum", "mean", "amax"
    over_all: bool
    node: object


class LoopNest:
    """inputs, assignments and outputs of a group, for one Profile. functions: the names that it calls."""

    def __init__(self, graph, profile):
        self.profile = profile
        self.functions = set()
        self.inputs = []
        self.assignments = []
        self.names = {}  # Value -> its text inside the loop
        self.codes = {}
        for i, value in enumerate(graph.inputs()):
            self._input(i, value)
        self.shape = _common_shape(graph, profile)
        reduced = {}
        for node in graph.nodes():
            if reduction_of(node) is not None:
                reduced[node.output()] = node
            elif lowering_of(node) is not None:
                self._assign(node)
            elif node.kind() == "prim::Constant":
                self._constant(node)
        self.outputs = [self._output(value, reduced.get(value)) for value in graph.outputs()]

    def _input(self, i, value):
        is_tensor = isinstance(value.type(), TensorType)
        name = f"x{i}" if is_tensor else f"s{i}"
        self.inputs.append(Input(name, self.profile.code(value), is_tensor))
        self.names[value], self.codes[value] = (f"v{i}" if is_tensor else name), self.profile.code(value)

    def _constant(self, node):
        """A number as text; a tensor without dimensions is as good as one."""
        worth = node.constant_value()
        if isinstance(worth, TensorImpl):
            if worth._array.ndim:
                raise Unfusable("a constant tensor with dimensions")
            self.codes[node.output()] = self.profile.code(node.output())
            worth = worth._array.item()
        elif type(worth) in NUMBER_CODES:
            self.codes[node.output()] = NUMBER_CODES[type(worth)]
        self.names[node.output()] = repr(worth)

    def _assign(self, node):
        lowering, target = lowering_of(node), f"v{len(self.inputs) + len(self.assignments)}"
        code = self.profile.code(node.output())
        wanted = self._operand_codes(node, lowering, code)
        if not lowering.integers and any(c not in FLOATS for c in wanted):
            raise Unfusable(f"{node.kind()} of whole numbers")
        operands = [self._cast(node.namedInput(name), c) for name, c in zip(lowering.operands, wanted)]
        numbers = self._numbers(node, lowering)
        text = f"{lowering.function}({', '.join(operands)}, {numbers})"
        made = {"compare": "b1", "logical": "b1"}.get(lowering.rule, wanted[0] if lowering.rule == "cast" else code)
        self.functions.add(lowering.function)
        self.names[node.output()], self.codes[node.output()] = target, code
        self.assignments.append(Assignment(target, cast_text(text, made, code), node))

    def _operand_codes(self, node, lowering, code):
        """The type in which each operand enters."""
        values = [node.namedInput(name) for name in lowering.operands]
        if lowering.rule == "compare":
            return [self._common(values)] * len(values)
        if lowering.rule == "bools" and code != "b1":
            raise Unfusable(f"{node.kind()} of whole numbers")
        if lowering.rule in ("logical", "bools"):
            return ["b1"] * len(values)
        if lowering.rule == "where":
            return ["b1", code, code]
        if lowering.rule == "masked":
            return [code, "b1", code]
        if lowering.rule == "cast":
            if self.codes[values[0]] in FLOATS and code not in (*FLOATS, "b1"):
                raise Unfusable("a cast from floating point to whole numbers")
            return [self.codes[values[0]]]
        if code == "b1" and lowering.function != "copy":
            raise Unfusable(f"{node.kind()} of bools")
        return [code] * len(values)

    def _common(self, values):
        worths = [self.profile.values[v] for v in values]
        common = result_type(*[w if isinstance(w, TensorImpl) else scalar_tensor(w) for w in worths]).numpy
        if common not in CODES:
            raise Unfusable(f"a comparison in {common}")
        return CODES[common]

    def _cast(self, value, code):
        if value.isConstant():
            return literal(self.names[value], code)
        return cast_text(self.names[value], self.codes[value], code)

    def _numbers(self, node, lowering):
        """The last argument of a scalar function: a tuple."""
        names = [a.name for a in node.maybeSchema().arguments]
        texts = [self._number(node, name) if name in names else "1.0" for name in lowering.numbers]
        return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"

    def _number(self, node, name):
        value = node.namedInput(name)
        if value.mustBeNone():
            return f"{OPEN_ENDS[name]}"
        return self.names[value] if not value.isConstant() else f"{float(value.toIValue())}"

    def _output(self, value, node):
        if node is None:
            if tuple(self.profile.values[value]._array.shape) != self.shape:
                raise Unfusable("a result is smaller than another one: it would be written several times")
            return Output(self.names[value], self.codes[value], None, False, value.node())
        reduction, dim = reduction_of(node)
        operand = node.input(0)
        rank = self.profile.values[operand]._array.ndim
        if self.profile.code(operand) not in FLOATS or self.profile.values[operand]._array.shape != self.shape:
            raise Unfusable("a reduction of whole numbers, or of a smaller tensor")
        if dim is not None and rank and dim % rank != rank - 1:
            raise Unfusable("a reduction over another dimension than the last")
        if reduction.name == "amax" and not self.profile.values[operand]._array.size:
            raise Unfusable("the maximum of no elements")
        return Output(self.names[operand], self.profile.code(operand), reduction.name, dim is None or rank < 2, node)


def _common_shape(graph, profile):
    """The shape that all tensors of the group broadcast to."""
    values = [*graph.inputs(), *[n.output() for n in graph.nodes() if lowering_of(n) is not None]]
    worths = [profile.values[v] for v in values]
    return np.broadcast_shapes(*[w._array.shape for w in worths if isinstance(w, TensorImpl)])


def cast_text(text, have, want):
    """A text of type `have` as one of type `want`."""
    if have == want:
        return text
    return f"({text} != 0)" if want == "b1" else f"{want}({text})"


def literal(number, code):
    """A constant, of the type in which it is used."""
    if code == "b1":
        return f"{number not in ('0', '0.0', 'False')}"
    if code in FLOATS or number not in ("inf", "-inf", "nan"):
        return f"{code}({number})"
    raise Unfusable("an infinite whole number")
