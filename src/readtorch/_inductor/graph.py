"""A graph of operators becomes buffers: each node is lowered, what must lie in memory is realized.

In PyTorch: `torch/_inductor/graph.py`.
"""

import operator
from itertools import count

from readtorch._tensor import Tensor
from readtorch.c10.sym_int import SYM_TYPES, SymInt
from readtorch.csrc.jit.tensorexpr.loop_nest import CODES
from readtorch.fx import Interpreter, Node
from readtorch.utils._pytree import tree_leaves, tree_map

from .dependencies import extract_reads
from .ir import (
    ConstantBuffer,
    ExternKernel,
    ExternKernelOut,
    InputBuffer,
    Layout,
    MultiOutput,
    Pointwise,
    StorageBox,
    TensorBox,
    contiguous_strides,
)
from .lowering import Fallback, boxed, layout_of, loader, lower
from .sizevars import Symbol, expression, size_of, sizes_of
from .virtualized import V

REALIZED_FOR = 30  # a body that reads more than this is not made longer


class GraphLowering(Interpreter):
    """buffers: in the order in which they were realized. outputs: for each result a ReinterpretView, or None or a number.

    visible_outputs: how many of them the caller gets; those after them are saved for backward. constants: name -> tensor. fallbacks: names of operators that stay calls, with the reason why.
    sizes: the name of a symbol -> the text that reads it from the inputs. ranges, hints: {symbol: what it can be, what it is in the trace}.
    """

    def __init__(self, module):
        super().__init__(module, garbage_collect_values=False)
        self.buffers, self.constants, self.outputs, self.fallbacks = [], {}, [], {}
        self.graph_inputs, self.numbers = [], count()
        self.input_layouts = {}
        self.sizes, self.ranges, self.hints = {}, {}, {}

    def lower(self):
        with V.set_graph_handler(self):
            self.run(*self.module.graph.find_nodes(op="placeholder"))
        return self

    def new_name(self):
        return f"buf{next(self.numbers)}"

    def register(self, buffer):
        self.buffers.append(buffer)
        return buffer

    def body_of(self, data):
        """(reads, functions) of a Loops."""
        sizes = [size for size, _ in data.dims()]
        return extract_reads(data.inner_fn, [expression(Symbol(f"d{k}", n)) for k, n in enumerate(sizes)])

    # -- nodes

    def placeholder(self, target, args, kwargs):
        node = super().placeholder(target, args, kwargs)
        name = f"arg{len(self.graph_inputs)}_1"
        self.graph_inputs.append(name)
        value = node.meta.get("val")
        if isinstance(value, SYM_TYPES):
            self.note_sizes([value], name)
            return size_of(value)
        if not isinstance(value, Tensor):
            return ScalarInput(name)
        self.note_sizes(value.shape, f"{name}._array.shape[{{}}]")
        self.input_layouts[name] = plain_layout(value)
        return TensorBox(StorageBox(InputBuffer(name, self.input_layouts[name])))

    def note_sizes(self, numbers, text):
        """How the symbols among these numbers are read, where nothing before has them."""
        for i, number in enumerate(numbers):
            if isinstance(number, SymInt):
                env, symbol = number.node.shape_env, number.node.expr.symbol
                self.ranges, self.hints = env.var_to_range, env.backed_var_to_val
                if symbol is not None:
                    self.sizes.setdefault(symbol.name, text.format(i))

    def get_attr(self, target, args, kwargs):
        tensor = super().get_attr(target, args, kwargs)
        if not isinstance(tensor, Tensor):
            return tensor
        code = CODES.get(tensor.dtype.numpy)
        if tensor.dim() == 0 and code is not None:
            value, layout = tensor._array.item(), Layout(tensor.dtype, code, (), ())
            return boxed(Pointwise(layout, lambda index: V.ops.constant(value, code), ("constant",)))
        name = f"constant{len(self.constants)}"
        self.constants[name] = tensor
        return TensorBox(StorageBox(ConstantBuffer(name, plain_layout(tensor))))

    def run_node(self, n):
        self.node = n
        result = super().run_node(n)
        self.consider_realizing(result, n)
        return result

    def consider_realizing(self, result, node):
        """What many read, or reads much, gets a place in memory."""
        if isinstance(result, TensorBox) and not result.data.is_realized():
            result.data.mark_reuse(len(node.users))
        if isinstance(result, TensorBox) and not result.data.is_realized():
            if len(self.body_of(result.data.data)[0]) > REALIZED_FOR:
                result.data.realize()

    def call_function(self, target, args, kwargs):
        if target is operator.getitem:
            return args[0][args[1]]
        if isinstance(self.node.meta.get("val"), SYM_TYPES):
            return size_of(self.node.meta["val"])
        try:
            return lower(self.node, args, kwargs)
        except Fallback as reason:
            self.fallbacks[str(target)] = str(reason)
            return self.extern_kernel(target, args, kwargs)

    def extern_kernel(self, target, args, kwargs):
        """The operator itself will be called."""
        mutated = self.mutated_by(target, args)
        for name in mutated:
            self.realize_readers(name)
        reads = []
        args, kwargs = tree_map(lambda a: self.as_argument(a, reads), (list(args), dict(kwargs)))
        value = self.node.meta.get("val")
        layout = plain_layout(value) if isinstance(value, Tensor) else None
        kernel = ExternKernel(self.new_name(), layout, target, args, kwargs, reads, mutated)
        self.register(kernel)
        if isinstance(value, list | tuple):
            return tuple(self.part_of(kernel, k, part) for k, part in enumerate(value))
        return TensorBox(StorageBox(kernel))

    def extern_kernel_out(self, function, args, layout):
        """`function(*args, out=…)` will be called, with arrays."""
        reads = []
        views = tree_map(lambda a: self.as_argument(a, reads), list(args))
        kernel = ExternKernelOut(self.new_name(), layout, self.node.target, function, views, reads)
        return TensorBox(StorageBox(self.register(kernel)))

    def part_of(self, kernel, k, value):
        if not isinstance(value, Tensor):
            return None
        return TensorBox(StorageBox(self.register(MultiOutput(self.new_name(), plain_layout(value), kernel, k))))

    def mutated_by(self, target, args):
        """Names of the buffers that the operator writes to."""
        written = [a.alias_info is not None and a.is_write for a in target._schema.arguments]
        boxes = tree_leaves([a for a, write in zip(args, written) if write])
        return [box.data.realize().name for box in boxes if isinstance(box, TensorBox)]

    def realize_readers(self, name):
        """Whatever still has to be computed from a buffer that is about to be written."""
        for box in tree_leaves(list(self.env.values())):
            if isinstance(box, TensorBox) and not box.data.is_realized():
                if any(read.name == name for read in self.body_of(box.data.data)[0]):
                    box.data.realize()

    def as_argument(self, value, reads):
        """A tensor as the memory that an operator can take."""
        if not isinstance(value, TensorBox):
            return value
        view = value.as_strided() or self.materialized(value).as_strided()
        reads.append(view.buffer.name)
        return view

    def materialized(self, box, stride=None):
        """A copy of a view that strides cannot express."""
        layout = box.data.layout._replace(size=box.size, stride=stride or contiguous_strides(box.size))
        return boxed(Pointwise(layout, loader(box, layout.code, box.size), ("copy",)))

    def output(self, target, args, kwargs):
        nodes = self.node.args[0]
        self.visible_outputs = self.node.meta.get("visible_outputs", len(nodes))
        self.outputs = [self.as_output(value, node) for value, node in zip(args[0], nodes)]
        return self.outputs

    def as_output(self, value, node):
        """The memory that is returned, with the strides that the operators would give it."""
        if not isinstance(value, TensorBox):
            return value
        wanted = node.meta["val"] if isinstance(node, Node) and "val" in node.meta else None
        view = value.as_strided()
        if view is None or (wanted is not None and not same_strides(view, wanted)):
            stride = layout_of(wanted).stride if wanted is not None else None
            view = self.materialized(value, stride).as_strided()
        return view


class ScalarInput(str):
    """A number that the graph is called with: its name in the code."""


def plain_layout(value):
    """The Layout of a tensor as it is; its code is None where kernels do not know the type."""
    code = CODES.get(value.dtype.numpy) if value.device.type == "cpu" else None
    return Layout(value.dtype, code, sizes_of(value.shape), sizes_of(value.stride()))


def same_strides(view, wanted):
    pairs = zip(view.size, view.stride, sizes_of(wanted.stride()))
    return all(n == 1 or ours == theirs for n, ours, theirs in pairs)
