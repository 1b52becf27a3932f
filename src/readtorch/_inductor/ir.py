"""Inductor's intermediate representation: a tensor is a function from an index to an element, until it must lie in memory.

    TensorBox -> StorageBox -> Pointwise, Reduction         not computed: `inner_fn` says how an element is
                            -> ComputedBuffer               the same, and has a name: a kernel will store it
                            -> InputBuffer, ExternKernel …  in memory
    TensorBox -> View -> StorageBox                         another way to count the same elements

A Pointwise that reads another one has that one's arithmetic in its own body. `realize()` ends this: the value becomes a buffer.

In PyTorch: `torch/_inductor/ir.py`.
"""

from typing import NamedTuple

from .sizevars import Size, Symbol, expression
from .virtualized import V

MOST_READS = 4  # of a body that several others take over
# functions that are worth a place in memory rather than being computed twice
HEAVY = {
    *("exp", "exp2", "expm1", "log", "log1p", "tanh", "sigmoid", "erf", "sin", "cos", "gelu", "gelu_tanh", "silu"),
    *("softplus", "elu_of", "pow", "gelu_backward", "gelu_tanh_backward", "silu_backward"),
}


class Layout(NamedTuple):
    """code: the type of an element as kernels call it; None for one that they do not know. dtype: readtorch's."""

    dtype: object
    code: str | None
    size: tuple
    stride: tuple

    def indexer(self, index):
        """Where the element lies."""
        position = expression(0)
        for i, stride in zip(index, self.stride):
            position = position + expression(i) * stride
        return position


# -------------------------------------------------------------------------------------------------- not in memory


class Pointwise(NamedTuple):
    """inner_fn(index) computes one element."""

    layout: Layout
    inner_fn: object
    origins: tuple  # names of the operators that it comes from

    reduction_ranges = ()

    def make_loader(self):
        return self.inner_fn

    def dims(self):
        """[(size, whether it is reduced)] in the order in which the elements are counted."""
        return [(size, False) for size in self.layout.size]


class Reduction(NamedTuple):
    """inner_fn(index of the operand) gives what is added up, or of which the greatest is taken.

    kind: "sum", "amax" or "amin". source: the operand's sizes. reduced: which of its dimensions go. layout: the result's, without these.
    """

    layout: Layout
    inner_fn: object
    origins: tuple
    kind: str
    source: tuple
    reduced: frozenset

    def dims(self):
        return [(size, d in self.reduced) for d, size in enumerate(self.source)]


# ------------------------------------------------------------------------------------------------------ in memory


class Buffer:
    """name: what the generated code calls it."""

    def __init__(self, name, layout):
        self.name, self.layout = name, layout

    def make_loader(self):
        return lambda index: V.ops.load(self.name, self.layout.indexer(index), self.layout.code)


class InputBuffer(Buffer):
    """An argument of the graph."""


class ConstantBuffer(Buffer):
    """A tensor of the module."""


class ComputedBuffer(Buffer):
    """What a generated kernel stores. data: a Pointwise or a Reduction."""

    def __init__(self, name, layout, data):
        super().__init__(name, layout)
        self.data = data


class ExternKernel(Buffer):
    """What an operator of readtorch returns: a tensor, or several.

    args, kwargs: its arguments, with a ReinterpretView or a Buffer in place of each tensor. mutates: names of buffers that it writes to.
    """

    def __init__(self, name, layout, op, args, kwargs, reads, mutates=()):
        super().__init__(name, layout)
        self.op, self.args, self.kwargs, self.reads, self.mutates = op, args, kwargs, reads, mutates


class ExternKernelOut(ExternKernel):
    """A function of arrays that writes its result into memory that it is given.

    function(*args, out=array). op: the operator that it stands for.
    """

    def __init__(self, name, layout, op, function, args, reads):
        super().__init__(name, layout, op, args, {}, reads)
        self.function = function


class MultiOutput(Buffer):
    """One of the tensors that an ExternKernel returns."""

    def __init__(self, name, layout, source, number):
        super().__init__(name, layout)
        self.source, self.number = source, number


class ReinterpretView(NamedTuple):
    """A buffer's memory with other sizes and strides."""

    buffer: Buffer
    size: tuple
    stride: tuple
    offset: int


# -------------------------------------------------------------------------------------------------------- boxes


class StorageBox:
    """What a value is now: it changes from Pointwise to ComputedBuffer when it is realized."""

    def __init__(self, data):
        self.data = data

    @property
    def layout(self):
        return self.data.layout

    def is_realized(self):
        return isinstance(self.data, Buffer)

    def realize(self):
        """Give it a place in memory; its Buffer."""
        if not self.is_realized():
            name = V.graph.new_name()
            self.data = V.graph.register(ComputedBuffer(name, self.data.layout, self.data))
        return self.data

    def mark_reuse(self, users):
        """Several values will be computed from this one: is it worth a place in memory?"""
        if users > 1 and not self.is_realized():
            reads, functions = V.graph.body_of(self.data)
            if len(reads) > MOST_READS or functions & HEAVY:
                self.realize()


class TensorBox:
    """What lowerings take and return. reindex: None, or where in the storage an element of the view is."""

    def __init__(self, data, size=None, reindex=None):
        self.data, self.reindex = data, reindex
        self.size = data.layout.size if size is None else tuple(size)

    @property
    def dtype(self):
        return self.data.layout.dtype

    @property
    def code(self):
        return self.data.layout.code

    def make_loader(self):
        load, reindex = self.data.data.make_loader(), self.reindex
        return load if reindex is None else lambda index: load(reindex(index))

    def view(self, size, reindex):
        """A view: `reindex` takes an index of it to an index of this one."""
        outer = self.reindex
        return TensorBox(self.data, size, reindex if outer is None else lambda index: outer(reindex(index)))

    def as_strided(self):
        """The realized value as a ReinterpretView, None where no strides will do."""
        buffer = self.data.realize()
        if self.reindex is None:
            return ReinterpretView(buffer, self.size, buffer.layout.stride, 0)
        symbols = [Symbol(f"d{k}", size) for k, size in enumerate(self.size)]
        position = buffer.layout.indexer(self.reindex([expression(s) for s in symbols]))
        if any(not isinstance(atom, Symbol) for atom in position.terms):
            return None
        strides = tuple(position.terms.get(symbol, 0) for symbol in symbols)
        return ReinterpretView(buffer, self.size, strides, position.constant)


def contiguous_strides(size):
    strides, step = [], 1
    for n in reversed(size):
        strides.append(step)
        step = step * (n if isinstance(n, Size) else max(n, 1))
    return tuple(reversed(strides))
