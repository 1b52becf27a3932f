"""Tensors: results of operators, and those that the function was given.

In PyTorch: `torch/_dynamo/variables/tensor.py`.
"""

import inspect

from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import SpecializeSizes, unimplemented
from readtorch._dynamo.source import AttrSource, GetItemSource
from readtorch.c10.size import Size
from readtorch.c10.sym_int import SYM_TYPES, SymBool, SymFloat, SymInt
from readtorch.fx.experimental.symbolic_shapes import ConstraintViolationError

from .base import VariableTracker
from .constant import ConstantVariable
from .lists import SizeVariable

# What a tensor says of itself without its elements.
FACTS = (
    "shape",
    "dtype",
    "device",
    "ndim",
    "requires_grad",
    "layout",
    "is_cuda",
    "is_sparse",
    "itemsize",
    "is_meta",
    "is_cpu",
)
OF_SIZES = ("shape", "size", "stride", "numel", "nelement", "is_contiguous", "storage_offset")
FACT_METHODS = (
    "size dim stride numel nelement is_contiguous is_floating_point is_complex element_size ndimension get_device "
    "storage_offset is_signed"
).split()
VIEWS = ("T", "mT", "H", "mH", "real", "imag", "data")


class TensorVariable(VariableTracker):
    """is_open: whether its sizes may be others in another call; open_sizes: of an input, the dimensions with such sizes.

    node: what it is in the graph, None for an input that no operator has used yet; example: a FakeTensor like it."""

    open_sizes = ()
    is_open = False

    def __init__(self, output, cls, node=None, example=None, source=None, original=None):
        self.output, self.cls, self.node, self._example = output, cls, node, example
        self.source, self.original = source, original

    def describe(self):
        return "TensorVariable()"

    def python_type(self):
        return self.cls

    @property
    def example(self):
        if self._example is None:
            self._example = self.output.fake(self.original)
        return self._example

    def facts(self):
        """A tensor that says what this one's shape, dtype and so on are."""
        return self.original if self._example is None else self._example

    def known_sizes(self):
        """A fact that hangs on sizes is asked for."""
        if self.is_open:
            raise SpecializeSizes(self.describe())

    def symbolic_shape(self, tx):
        """The sizes, some of which are left open: of an input they are read before the graph runs, of a result when it has run."""
        if self.source is None:
            return [SymNodeVariable(self.output, SizeOfResult(self, i), n) for i, n in enumerate(self.facts().shape)]
        shape, marked = AttrSource(self.source, "shape"), getattr(self.original, "_dynamo_dynamic_indices", ())
        sizes = enumerate(self.original.shape)
        numbers = [Number(GetItemSource(shape, i), size, marked_in=self if i in marked else None) for i, size in sizes]
        items = [SymNodeVariable(self.output, n, n.value) for n in numbers]
        return [item if i in self.open_sizes else tx.constant(item.hint) for i, item in enumerate(items)]

    @property
    def has_symbols(self):
        """Whether sizes are symbols, as they are in an export."""
        return self.output.is_export and any(isinstance(size, SYM_TYPES) for size in self.example.shape)

    def symbolic_fact(self, tx, name, args):
        """A fact of a tensor whose sizes are symbols: nodes of the graph compute it."""
        if name == "shape" or name in ("size", "stride") and not args:
            method, dims = "stride" if name == "stride" else "size", range(self.example.dim())
            items = [self.output.call_method(method, [self, tx.constant(dim)], {}) for dim in dims]
            return tx.tuple_of(items) if name == "stride" else SizeVariable(items, Size)
        return self.output.call_method(name, [self, *args], {})

    def open_fact(self, tx, name, args):
        """A fact of a tensor whose sizes are left open."""
        sizes = self.symbolic_shape(tx)
        self.output.op_count += 1
        if name == "shape" or name == "size" and not args:
            return SizeVariable(sizes, Size)
        if name == "size" and len(args) == 1:
            return SizeVariable(sizes, Size).getitem(tx, args[0].realize())
        raise SpecializeSizes(name)

    def as_proxy(self, output):
        if self.node is None:
            self.node = output.graph_input(self.source, self.example, self.original, self.open_sizes)
        return output.lift(self.node, self.example), self.example

    def reconstruct(self, codegen):
        return codegen.writer.get(self.source) if self.source is not None else codegen.graph_output(self.node)

    def var_getattr(self, tx, name):
        if name == "shape" and self.has_symbols:
            return self.symbolic_fact(tx, name, [])
        if name in OF_SIZES[:1] and self.is_open:
            return self.open_fact(tx, name, [])
        if name in FACTS:
            return tx.constant(getattr(self.facts(), name))
        if name in VIEWS:
            return self.output.call_attribute(self, name)
        if name == "__class__":
            return tx.held(self.cls)
        if (
            name == "grad"
            and self.original is not None
            and self.original.is_leaf
            and not self.output.wrote_to_tensors()
        ):
            return self.output.wrap(self.original.grad, AttrSource(self.source, "grad"))
        if name == "is_leaf" and not self.facts().requires_grad:
            return tx.constant(True)
        own = getattr(self.original, "__dict__", {})
        if name in own:
            return self.output.read(own[name], AttrSource(self.source, name))
        attribute = inspect.getattr_static(self.cls, name, None)
        if attribute is None and not hasattr(self.cls, name):
            if self.source is not None:
                self.output.guard("NO_HASATTR", self.source, name)
            raise tx.error(AttributeError, f"'{self.cls.__name__}' object has no attribute '{name}'")
        if callable(attribute) or inspect.ismethoddescriptor(attribute):
            return tx.method_of(self, name)
        self.unknown(f"attribute {name}")

    def call_method(self, tx, name, args, kwargs):
        if name == "item" and not args and self.output.capture_scalar_outputs:
            return self.call_item(tx)
        if name == "data_ptr" and not args and not kwargs:
            return DataPtrVariable(self)
        if name in OF_SIZES and self.has_symbols:
            return self.symbolic_fact(tx, name, [*args, *kwargs.values()])
        if name in OF_SIZES and self.is_open:
            return self.open_fact(tx, name, args) if not kwargs else self.known_sizes()
        if name == "stride" and self.source is None and any(size < 2 for size in self.facts().shape):
            unimplemented(
                "Unsupported Tensor.stride() call", "kernels choose the strides of dimensions with one element"
            )
        if name in FACT_METHODS and not kwargs:
            return tx.fold_call(getattr(self.facts(), name), args, kwargs)
        if name == "type" and not args and not kwargs:
            return tx.constant(self.facts().type())
        owner, _ = tx.lookup(self.cls, name)
        if owner is None or not trace_rules.is_ours(owner):
            unimplemented("Unsupported method of a subclass of Tensor", context=name)
        why = trace_rules.refused_method(name)
        if why:
            unimplemented(*why)
        return self.output.call_method(name, [self, *args], kwargs)

    def call_item(self, tx):
        """The number in a tensor: known when the graph runs, and not before."""
        self.known_sizes()
        facts = self.facts()
        if facts.numel() != 1:
            unimplemented("Data dependent operator", f"item() of a tensor with {facts.numel()} elements")
        kind = float if facts.is_floating_point() else int
        if facts.is_complex() or str(facts.dtype).endswith("bool"):
            unimplemented("Unsupported Tensor.item() call", "of a complex number or a bool")
        node = self.output.graph.call_method("item", (self.as_proxy(self.output)[0],))
        self.output.op_count += 1
        return SymNodeVariable(self.output, None, kind(1), node)

    def call_len(self, tx):
        if self.has_symbols and self.facts().dim():
            return self.symbolic_fact(tx, "size", [tx.constant(0)])
        if self.is_open and self.facts().dim():
            return self.symbolic_shape(tx)[0]
        return tx.fold(len, self.facts())

    def call_iter(self, tx):
        self.known_sizes()
        if not self.facts().dim():
            raise tx.error(TypeError, "iteration over a 0-d tensor")
        if self.output.is_export:
            items = [self.output.call_getitem(self, tx.constant(i)) for i in range(len(self.facts()))]
            return tx.iterator_over(items, self)
        return tx.iterator_of(self.output.call_method("unbind", [self, tx.constant(0)], {}))

    def call_bool(self, tx):
        if self.example.constant is not None:
            return bool(self.example.constant.item())
        unimplemented(
            "Data-dependent branching",
            "Detected data-dependent branching (e.g. `if my_tensor.sum() > 0:`). Dynamo does not support tracing dynamic control flow.",
            "TensorVariable()",
            ["Use `torch.cond` to express dynamic control flow."],
        )

    def contains(self, tx, item):
        unimplemented("Data-dependent branching", "`in` asks a tensor for its elements")

    def getitem(self, tx, key):
        return self.output.call_getitem(self, key)

    def setitem(self, tx, key, value):
        self.output.call_setitem(self, key, value)


class DataPtrVariable(VariableTracker):
    """Where the elements of a tensor lie: known when the graph has run, and read then."""

    def __init__(self, tensor):
        self.tensor = tensor

    def python_type(self):
        return int

    def describe(self):
        return "DataPtrVariable()"

    def reconstruct(self, codegen):
        return codegen.temporary(f"{codegen(self.tensor)}.data_ptr()")


class SymNodeVariable(VariableTracker):
    """A number that another call may have otherwise.

    expression: a Number, or (symbol, operand, operand) with expressions and numbers; hint: what it is in this call. A decision by it
    becomes a guard on the expression; where its value must be known, the sources are guarded by their values, as those of
    other numbers are. node: what gives it when the graph runs, with None or a SizeOfResult as expression.
    """

    def __init__(self, output, expression, hint, node=None):
        self.output, self.expression, self.hint, self.node = output, expression, hint, node

    @property
    def is_known_later(self):
        """Whether only the graph's run shows it."""
        return self.expression is None or isinstance(self.expression, SizeOfResult)

    def describe(self):
        return "SymNodeVariable()"

    def python_type(self):
        return type(self.hint)

    def as_python_constant(self):
        self.check_known()
        if isinstance(self.hint, bool):
            return self.output.decide(self.expression, self.hint)
        for number in numbers_of(self.expression):
            number.specialized()
            self.output.guard("EQUALS_MATCH", number.source, number.value)
        return self.hint

    def check_known(self):
        """Python wants it before the graph has run."""
        if isinstance(self.expression, SizeOfResult):
            raise SpecializeSizes(self.describe())
        if self.expression is None:
            unimplemented("Data-dependent branching", "a number in a tensor decides what Python does", self.describe())

    def as_constant(self):
        return ConstantVariable(self.as_python_constant())

    def as_proxy(self, output):
        value = self.as_python_constant()
        return value, value

    def as_graph_input(self, output):
        """For operators that do the same with any number."""
        if self.node is None and not self.is_known_later:
            self.node = output.number_input(self.expression, self.hint)
        if self.node is None:
            node = self.expression.new_node(self.hint)
            if output.tracer is not None:  # a node of a graph within is none further out
                return node, self.hint
            self.node = node
        return output.lift(self.node, self.hint), self.hint

    def reconstruct(self, codegen):
        if self.is_known_later:
            return codegen.graph_output(self.as_graph_input(self.output)[0])
        return codegen.writer.expression(self.expression)

    def call_bool(self, tx):
        self.check_known()
        is_truth = isinstance(self.hint, bool)
        return self.output.decide(self.expression if is_truth else ("!=", self.expression, 0), bool(self.hint))

    def var_getattr(self, tx, name):
        return self.as_constant().var_getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        return self.as_constant().call_method(tx, name, args, kwargs)

    def call_iter(self, tx):
        return self.as_constant().call_iter(tx)


class SymbolVariable(SymNodeVariable):
    """A number of an export, with a symbol in it: a SymInt, SymFloat or SymBool.

    A decision by it becomes a guard of the export's ShapeEnv.
    """

    def __init__(self, output, value, node):
        super().__init__(output, None, value, node)

    def python_type(self):
        return {SymInt: int, SymFloat: float, SymBool: bool}[type(self.hint)]

    def as_python_constant(self):
        return self.python_type()(self.hint)

    def check_known(self):
        """Whoever asks gets the number that it is now."""

    def as_proxy(self, output):
        return self.as_graph_input(output)

    def call_bool(self, tx):
        return bool(self.hint)


def numbers_of(expression):
    """All numbers that an expression reads."""
    if isinstance(expression, Number):
        return [expression]
    return [each for part in expression[1:] for each in numbers_of(part)] if isinstance(expression, tuple) else []


class Number:
    """A number that is read, in an expression. marked_in: the tensor of which it is a size, if `mark_dynamic` has named it."""

    def __init__(self, source, value, marked_in=None):
        self.source, self.value, self.marked_in = source, value, marked_in

    def specialized(self):
        """The program works for this value alone."""
        if self.marked_in is not None and getattr(self.marked_in.original, "_dynamo_must_be_dynamic", False):
            name = f"{self.marked_in.source.name}.size()[{self.source.key}]"
            raise ConstraintViolationError(CONSTRAINTS_VIOLATED.format(name=name, value=self.value))


CONSTRAINTS_VIOLATED = (
    'Constraints violated ({name})! For more information, run with TORCH_LOGS="+dynamic".\n'
    "  - You marked {name} as dynamic but your code specialized it to be a constant ({value}). If you're using mark_dynamic, "
    "either remove it or use maybe_mark_dynamic. If you're using Dim.DYNAMIC, replace it with either Dim.STATIC or Dim.AUTO."
)


class SizeOfResult:
    """A size of what an operator returns, where sizes of inputs are left open."""

    def __init__(self, tensor, dim):
        self.tensor, self.dim = tensor, dim

    def new_node(self, hint):
        output = self.tensor.output
        node = output.graph.call_method("size", (self.tensor.as_proxy(output)[0], self.dim))
        node.meta["example_value"] = hint
        return node
