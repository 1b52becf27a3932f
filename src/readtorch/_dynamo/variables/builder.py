"""VariableBuilder: from an object and its source to a variable, with the guards that this needs.

In PyTorch: `torch/_dynamo/variables/builder.py`.
"""

import collections
import enum
import functools
import types
import weakref

import readtorch
from readtorch._dynamo import trace_rules
from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.guards import TensorFacts
from readtorch._dynamo.source import AttrSource, ConstantSource, GetItemSource, LocalSource, is_held, root_of
from readtorch._ops import HigherOrderOperator
from readtorch.amp.autocast_mode import autocast
from readtorch.c10.device import device
from readtorch.c10.layout import strided
from readtorch.c10.module_names import room_of
from readtorch.c10.size import Size
from readtorch.c10.sym_int import SymInt
from readtorch.nn.parameter import Buffer, Parameter

from . import higher_order_ops, optimizer
from .base import VariableTracker
from .builtin import BuiltinVariable, is_hashable_builtin
from .constant import ConstantVariable, EnumVariable
from .ctx_manager import AutocastModeVariable, GradModeVariable
from .dicts import ConstDictVariable, HashableTracker, SetVariable
from .functions import FunctoolsPartialVariable, SkipFunctionVariable, UserFunctionVariable, UserMethodVariable
from .iter import RangeIteratorVariable
from .lists import DequeVariable, ListVariable, NamedTupleVariable, SizeVariable, TupleVariable
from .misc import CellVariable, GetAttrVariable, PythonModuleVariable, UnknownVariable, WeakRefVariable
from .nn_module import UnspecializedNNModuleVariable
from .tensor import Number, SymbolVariable, SymNodeVariable, TensorVariable
from .torch import FUNCTIONS, GRAD_DECORATORS, TorchInGraphFunctionVariable, call_no_grad, call_set_grad_enabled
from .user_defined import UserDefinedClassVariable, UserDefinedObjectVariable

NUMBERS = (int, float, complex, str, bytes)
KEYS = (*trace_rules.PLAIN, tuple, type, enum.Enum, types.FunctionType, *trace_rules.ONE_OF_A_KIND)
OF_C = (BaseException, dict, list, tuple, str, int, float, set, frozenset, types.GeneratorType, bytes)
METHOD_KINDS = (
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MethodWrapperType,
)


WITH_RULES = (functools._lru_cache_wrapper, types.MethodType, HigherOrderOperator)
RULES = FUNCTIONS | optimizer.FUNCTIONS | higher_order_ops.FUNCTIONS


class LibraryVariable(ConstantVariable):
    """A function or class of the library with a rule of its own."""

    def __init__(self, value, rule):
        super().__init__(value)
        self.rule = rule

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return self.rule(tx, *args, **kwargs)


def variable_of_callable(value):
    """The variable of a function or class, whose identity is guarded or held."""
    try:
        if value in RULES:
            return LibraryVariable(value, RULES[value])
    except TypeError:
        pass
    if value in GRAD_DECORATORS if isinstance(value, type) else False:
        return LibraryVariable(value, lambda tx, *args: call_no_grad(tx, value, args))
    if value is readtorch.set_grad_enabled:
        return LibraryVariable(value, call_set_grad_enabled)
    if trace_rules.is_operator(value):
        return TorchInGraphFunctionVariable(value)
    if isinstance(value, (type, types.BuiltinFunctionType)) and is_hashable_builtin(value):
        return BuiltinVariable(value)
    if isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return MethodDescriptorVariable(value)
    if value in (Size, device):
        return BuiltinVariable(value)
    if isinstance(value, type):
        return UserDefinedClassVariable(value)
    return SkipFunctionVariable(value)


class MethodDescriptorVariable(ConstantVariable):
    """`list.append`, `Tensor.add` in C: a method without an object."""

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        owner = args[0].realize()
        if isinstance(owner, UserDefinedObjectVariable):
            return owner.call_builtin_method(tx, self.value.__objclass__, self.value.__name__, args[1:], kwargs)
        return owner.call_method(tx, self.value.__name__, args[1:], kwargs)


def variable_of_constant(value):
    """The variable of a value that the program has computed, or that stands in its code."""
    if isinstance(value, VariableTracker):
        return value
    kind = type(value)
    if kind is tuple or kind is list:
        return (TupleVariable if kind is tuple else ListVariable)([variable_of_constant(each) for each in value])
    if kind is Size:
        return SizeVariable([ConstantVariable(each) for each in value], Size)
    if kind in (dict, collections.OrderedDict):
        return ConstDictVariable({key: variable_of_constant(each) for key, each in value.items()}, kind)
    if kind in (set, frozenset):
        return SetVariable(set(value), kind)
    if isinstance(value, enum.Enum):
        return EnumVariable(value)
    if kind in trace_rules.PLAIN or isinstance(value, (device, types.CodeType, types.MappingProxyType)):
        return ConstantVariable(value)
    if isinstance(value, trace_rules.ONE_OF_A_KIND):
        return ConstantVariable(value)
    if isinstance(value, types.ModuleType):
        return PythonModuleVariable(value)
    if isinstance(value, types.FunctionType):
        return function_variable(value, ConstantSource(value))
    if isinstance(value, (type, types.BuiltinFunctionType, *METHOD_KINDS)):
        return variable_of_callable(value)
    if isinstance(value, tuple) and (hasattr(value, "_fields") or type(value).__module__.endswith("return_types")):
        return NamedTupleVariable([variable_of_constant(each) for each in value], kind)
    return unimplemented("Unsupported value", f"Dynamo has no variable for a {kind.__name__}")


def function_variable(value, source):
    made = variable_of_callable(value)
    return UserFunctionVariable(value, source) if isinstance(made, SkipFunctionVariable) else made


def is_found_by_identity(key):
    """Whether equality of such keys is identity."""
    kind = type(key)
    if isinstance(key, readtorch.Tensor):
        return kind in (readtorch.Tensor, Parameter, Buffer)
    return kind.__eq__ is object.__eq__ and kind.__hash__ is object.__hash__ and bool(kind.__flags__ & (1 << 9))


def is_argument(source):
    """Whether a value is an argument, or an element of one."""
    while isinstance(source, GetItemSource):
        source = source.base
    return isinstance(source, LocalSource) and source.key != "__closure"


class VariableBuilder:
    """Called with (value, source)."""

    def __init__(self, output):
        self.output, self.guard, self.wrap = output, output.guard, output.wrap

    def __call__(self, value, source):
        made = self.constant(value, source)
        if made is not None:
            return made
        tracked = self.output.tracked.get(id(value))
        if tracked is not None:
            if tracked.source != source and tracked.source is not None and source is not None:
                self.guard("DUPLICATE_INPUT", source, tracked.source)
            return tracked
        made = self.tracked(value, source)
        self.output.tracked[id(value)] = made
        self.output.keep.append(value)
        return made

    # -------------------------------------------------------------------------- values that are known by themselves

    def constant(self, value, source):
        """By type and value what is a number or the like, by identity what there is one of; None for other values."""
        kind = type(value)
        if kind is SymInt:
            return SymbolVariable(self.output, value, self.output.number_input(Number(source, value), value))
        if (kind is int or kind is float) and self.output.is_dynamic(source, value):
            self.guard("TYPE_MATCH", source, kind)
            number = Number(source, value)
            if kind is float:  # nan, which is not equal to itself, is always a constant
                self.guard("SHAPE_ENV", None, (("==", number, number), True))
            return SymNodeVariable(self.output, number, value)
        if kind in NUMBERS:
            self.guard("EQUALS_MATCH", source, value)
            return ConstantVariable(value, source if kind not in (int, str) else None)
        if value is None or kind is bool or value is Ellipsis or value is NotImplemented:
            self.guard("ID_MATCH", source, value)
            return ConstantVariable(value)
        if isinstance(value, enum.Enum):
            self.guard("ID_MATCH", source, value)
            return EnumVariable(value)
        if isinstance(value, trace_rules.ONE_OF_A_KIND):
            self.guard("ID_MATCH", source, value)
            return ConstantVariable(value)
        if kind in (slice, range) or isinstance(value, device):
            self.guard("EQUALS_MATCH", source, value)
            return ConstantVariable(value, source)
        if isinstance(value, types.ModuleType):
            self.guard("ID_MATCH", source, value)
            is_given = isinstance(root_of(source), LocalSource) and room_of(value.__name__) is None
            return PythonModuleVariable(value, source if is_given else None)
        if self.is_function_of_c(value) or isinstance(value, type):
            self.guard("ID_MATCH", source, value)
            return variable_of_callable(value)
        if kind is types.FunctionType:
            return self.function(value, source)
        return self.operator(value, source)

    def is_function_of_c(self, value):
        """A function of a module in C; a method that is bound to an object is made anew each time it is read."""
        if isinstance(value, METHOD_KINDS[:2]):
            return True
        if not isinstance(value, types.BuiltinFunctionType):
            return False
        owner = value.__self__
        return owner is None or isinstance(owner, (types.ModuleType, type))

    def function(self, value, source):
        if self.is_known_by_code(value, source):
            self.guard("TYPE_MATCH", source, type(value))
            self.guard("ID_MATCH", AttrSource(source, "__code__"), value.__code__)
            self.guard("ID_MATCH", AttrSource(source, "__globals__"), value.__globals__)
            return function_variable(value, source)
        self.guard("ID_MATCH", source, value)
        return function_variable(value, ConstantSource(value))

    def is_known_by_code(self, value, source):
        """Whether another function with this code may stand there in another call: one with a closure, or one that is made for a call
        (`f(lambda x: …)`) and comes as an argument or in one."""
        if is_held(source) or trace_rules.is_operator(value):
            return False
        return bool(value.__closure__) or not trace_rules.is_ours(value) and not value.__dict__ and is_argument(source)

    def operator(self, value, source):
        """Callable objects that are operators: those of `torch.ops`, custom ones, what `boolean_dispatch` has made. And functions with
        a rule that keep what they have returned, or belong to an object.
        """
        if isinstance(value, WITH_RULES) and value in RULES:
            if not isinstance(value, types.MethodType):
                self.guard("ID_MATCH", source, value)
            else:
                self.guard("TYPE_MATCH", source, types.MethodType)
                self.guard("ID_MATCH", AttrSource(source, "__func__"), value.__func__)
                self.guard("ID_MATCH", AttrSource(source, "__self__"), value.__self__)
            return variable_of_callable(value)
        if callable(value) and trace_rules.is_operator(value):
            self.guard("ID_MATCH", source, value)
            return TorchInGraphFunctionVariable(value)
        return None

    # ------------------------------------------------------------------------------- objects that have an identity

    def tracked(self, value, source):
        kind = type(value)
        if isinstance(value, readtorch.Tensor):
            return self.tensor(value, source)
        maker = MAKERS.get(kind)
        if maker is not None:
            return maker(self, value, source)
        if issubclass(kind, tuple) and (hasattr(kind, "_fields") or hasattr(kind, "__match_args__")):
            return self.named_tuple(value, source)
        if kind in GRAD_DECORATORS or kind is readtorch.set_grad_enabled:
            return self.grad_mode(value, source)
        if isinstance(value, readtorch.nn.Module) and kind.__getattribute__ is object.__getattribute__:
            self.guard("TYPE_MATCH", source, kind)
            self.output.guard_class(kind)
            self.output.module_sources.add(source)
            return UnspecializedNNModuleVariable(kind, source, value)
        if not self.is_plain_object(value):
            return UnknownVariable(value, source)
        self.guard("TYPE_MATCH", source, kind)
        self.output.guard_class(kind)
        return UserDefinedObjectVariable(kind, source, value)

    def is_plain_object(self, value):
        """Whether Python's rules alone say what its attributes are."""
        kind = type(value)
        if kind is types.SimpleNamespace:
            return True
        if issubclass(kind, OF_C) or not kind.__flags__ & (1 << 9) or kind in (staticmethod, classmethod, property):
            return False
        return kind.__getattribute__ is object.__getattribute__

    def tensor(self, value, source):
        kind = type(value)
        if kind not in (readtorch.Tensor, Parameter, Buffer) or value.layout is not strided or value.is_quantized:
            return UnknownVariable(value, source)
        if self.output.is_export:
            return TensorVariable(self.output, kind, None, self.output.fake(value), source, value)
        open_sizes = self.output.open_sizes(source, value)
        self.guard("TENSOR_MATCH", source, TensorFacts(value, open_sizes))
        made = TensorVariable(self.output, kind, None, None, source, value)
        made.open_sizes, made.is_open = open_sizes, bool(open_sizes)
        return made

    def sequence(self, value, source):
        kind = type(value)
        self.guard("TYPE_MATCH", source, kind)
        self.guard("SEQUENCE_LENGTH", source, len(value))
        items = [self.wrap(each, GetItemSource(source, i)) for i, each in enumerate(value)]
        if kind is collections.deque:
            self.guard(
                "EQUALS_MATCH" if value.maxlen is not None else "ID_MATCH", AttrSource(source, "maxlen"), value.maxlen
            )
            return DequeVariable(items, value.maxlen, source, value)
        return (ListVariable if kind is list else TupleVariable)(items, source, value)

    def named_tuple(self, value, source):
        self.guard("TYPE_MATCH", source, type(value))
        self.guard("SEQUENCE_LENGTH", source, len(value))
        items = [self.wrap(each, GetItemSource(source, i)) for i, each in enumerate(value)]
        return NamedTupleVariable(items, type(value), source, value)

    def size(self, value, source):
        self.guard("EQUALS_MATCH", source, value)
        return SizeVariable([ConstantVariable(each) for each in value], Size, source, value)

    def dictionary(self, value, source):
        if not all(isinstance(key, KEYS) or is_found_by_identity(key) for key in value):
            return UnknownVariable(value, source)
        self.guard("TYPE_MATCH", source, type(value))
        items = {self.key(key): self.wrap(each, GetItemSource(source, key)) for key, each in value.items()}
        factory = None
        if type(value) is collections.defaultdict and value.default_factory is not None:
            factory = self.wrap(value.default_factory, AttrSource(source, "default_factory"))
        return ConstDictVariable(items, type(value), source, value, factory)

    def key(self, key):
        if isinstance(key, KEYS):
            return key
        return HashableTracker(self.wrap(key, ConstantSource(key)).realize())

    def set(self, value, source):
        if not all(isinstance(key, KEYS) for key in value):
            return UnknownVariable(value, source)
        self.guard("EQUALS_MATCH", source, type(value)(value))
        return SetVariable(set(value), type(value), source, value)

    def range_iterator(self, value, source):
        """The iterator of a loop that a graph break has left: nobody else sees how far it is."""
        if not (isinstance(source, LocalSource) and source.shown.startswith("__stack")):
            return UnknownVariable(value, source)
        _, (over,), index = value.__reduce__()  # since 3.12 what remains, and no index
        self.guard("RANGE_ITERATOR_MATCH", source, ((over,), index))
        return RangeIteratorVariable(ConstantVariable(over), index or 0)

    def cell(self, value, source):
        try:
            content = self.wrap(value.cell_contents, AttrSource(source, "cell_contents"))
        except ValueError:
            self.guard("EMPTY_CELL", source)
            content = None
        return CellVariable(content, source, value)

    def method(self, value, source):
        self.guard("TYPE_MATCH", source, types.MethodType)
        function = self.wrap(value.__func__, AttrSource(source, "__func__"))
        owner = self.wrap(value.__self__, AttrSource(source, "__self__")).realize()
        if isinstance(owner, GradModeVariable):
            function.realize()
            return GetAttrVariable(owner, value.__func__.__name__, source)
        return UserMethodVariable(owner, function, source)

    def weak_reference(self, value, source):
        self.guard("TYPE_MATCH", source, weakref.ReferenceType)
        return WeakRefVariable(value, source)

    def partial(self, value, source):
        self.guard("TYPE_MATCH", source, functools.partial)
        args = self.wrap(value.args, AttrSource(source, "args")).realize().items
        kwargs = self.wrap(value.keywords, AttrSource(source, "keywords")).realize()
        kwargs.guard_keys(self.output)
        function = self.wrap(value.func, AttrSource(source, "func"))
        return FunctoolsPartialVariable(function, list(args), dict(kwargs.items), source)

    def grad_mode(self, value, source):
        self.guard("TYPE_MATCH", source, type(value))
        self.guard("ID_MATCH", AttrSource(source, "mode"), value.mode)
        made = GradModeVariable(type(value), value.mode, source)
        if "previous" in vars(value):
            self.guard("ID_MATCH", AttrSource(source, "previous"), value.previous)
            made.previous = value.previous
        return made

    def autocast(self, value, source):
        self.guard("TYPE_MATCH", source, autocast)
        fields = ("device", "fast_dtype", "_enabled", "_cache_enabled")
        for name in fields:
            self.wrap(getattr(value, name), AttrSource(source, name)).realize()
        return AutocastModeVariable(tuple(getattr(value, name) for name in fields), source)


MAKERS = {
    autocast: VariableBuilder.autocast,
    list: VariableBuilder.sequence,
    tuple: VariableBuilder.sequence,
    collections.deque: VariableBuilder.sequence,
    Size: VariableBuilder.size,
    dict: VariableBuilder.dictionary,
    collections.OrderedDict: VariableBuilder.dictionary,
    collections.defaultdict: VariableBuilder.dictionary,
    set: VariableBuilder.set,
    frozenset: VariableBuilder.set,
    types.CellType: VariableBuilder.cell,
    types.MethodType: VariableBuilder.method,
    functools.partial: VariableBuilder.partial,
    weakref.ReferenceType: VariableBuilder.weak_reference,
    type(iter(range(0))): VariableBuilder.range_iterator,
}
