"""Operators as Python objects: `torch.ops.aten` is a namespace, `torch.ops.aten.add` the packet of all operators of that name,
`torch.ops.aten.add.Tensor` one operator (an *overload*), which is called with the arguments of its schema.

Each object is made once, when it is first asked for. Operators of other namespaces come from `library.py`.

In PyTorch: `torch/_ops.py`. Explained in the chapter "One operator call".
"""

import importlib
import inspect
import sys
from functools import cached_property
from types import ModuleType

from ._tensor import Tensor
from .aten import python_fallback_kernel
from .aten.dispatcher import registry
from .aten.functorch.interpreter import TransformType
from .aten.python_arg_parser import default_of
from .aten.torch_function import and_elements, handle_torch_function, is_overridden, overloaded_args
from .c10.dispatch_key import BACKENDS, NAMES
from .c10.local_dispatch_key_set import tls
from .csrc.utils import python_dispatch
from .csrc.utils.python_dispatch import bind, call_boxed
from .utils._python_dispatch import TorchDispatchMode

refused_libraries = []  # what `load_library` was asked for: their operators do not exist


class OperatorBase:
    """What operators of the dispatcher and operators that take functions (`HigherOrderOperator`) have in common: Python
    implementations for dispatch keys and for modes.
    """

    def __init__(self):
        self.py_kernels = {}  # DispatchKey -> function
        self.python_key_table = {}  # class of modes or tensors -> function
        self.functorch_table = {}

    def __call__(self, *args, **kwargs):
        raise NotImplementedError

    def name(self):
        raise NotImplementedError

    def has_kernel_for_dispatch_key(self, k):
        return k in self.py_kernels

    def has_kernel_for_any_dispatch_key(self, ks):
        return any(ks.has(k) for k in self.py_kernels)

    def py_impl(self, k):
        """Decorator: the function is what the operator does for a DispatchKey, for a class of modes or tensors, or under a kind of
        transforms."""

        def register(function):
            if inspect.isclass(k) and issubclass(k, (TorchDispatchMode, Tensor)):
                if k in self.python_key_table:
                    raise AssertionError(f"{k} already registered in python_key_table")
                self.python_key_table[k] = function
                return function
            if isinstance(k, TransformType):
                if k in self.functorch_table:
                    raise AssertionError(f"{k} already registered in functorch_table")
                self.functorch_table[k] = function
                return function
            self._register_for_key(k, function)
            return function

        return register

    def _register_for_key(self, k, function):
        from ._C import DispatchKey

        if not isinstance(k, DispatchKey):
            raise AssertionError(f"expected DispatchKey, got {type(k)}")
        if k == DispatchKey.Python:
            raise AssertionError("Please register a mode for the DispatchKey.Python key instead.")
        if k in self.py_kernels:
            raise RuntimeError(f"Trying to override a python impl for {k} on operator {self.name()}")
        self.py_kernels[k] = function


class OpOverload(OperatorBase):
    """One operator, called with its schema's arguments. Made by `OpOverloadPacket`, once an operator.

    Raises RuntimeError for arguments that do not fit the schema.
    """

    def __init__(self, overloadpacket, operator):
        super().__init__()
        schema = operator.schema
        self._operator = operator
        self._op = _function_of(self)
        self._overloadpacket = overloadpacket
        self._overloadname = schema.overload or "default"
        self._namespace, self._opname = schema.namespace, schema.name
        self._name = schema.full_name
        self.__name__ = f"{schema.name}.{self._overloadname}"
        self.__qualname__ = self._name
        self.__module__ = self._op.__module__ = overloadpacket.__module__
        self._defined_in_python = python_dispatch.is_defined_in_python(operator)
        self._rest = _defaults_after_tensors(schema)

    @cached_property
    def _schema(self):
        return python_dispatch.function_schema(self._operator)

    @cached_property
    def _tags(self):
        return python_dispatch.tags_of(self._operator)

    @property
    def tags(self):
        return self._tags

    @property
    def is_view(self):
        """Whether it has arguments that results share memory with, and writes to none of these."""
        writes = [a.is_write for a in self._schema.arguments if a.alias_info is not None]
        return bool(writes) and not any(writes)

    @cached_property
    def _handle(self):
        return python_dispatch.OperatorHandle(self._operator)

    def __call__(self, /, *args, **kwargs):
        rest = None if kwargs else self._rest.get(len(args))
        if rest is not None and not tls.function_modes:
            for a in args:
                if type(a) is not Tensor:
                    break
            else:  # plain tensors alone need no binding: the way of most calls from a dispatch mode
                return self._operator.call(*args, *rest)
        return self._op(*args, **kwargs)

    def redispatch(self, /, keyset, *args, **kwargs):
        """The kernel for the highest key of `keyset` (a DispatchKeySet), whatever the keys of the arguments."""
        return self._handle.redispatch_boxed(keyset, *args, **kwargs)

    def _op_dk(self, key, *args, **kwargs):
        """The kernel that is registered for one DispatchKey."""
        return python_dispatch.call_for_key(self._operator, key, bind(self._operator.schema, args, kwargs))

    def has_kernel_for_dispatch_key(self, k):
        from ._C import _dispatch_has_kernel_for_dispatch_key

        return super().has_kernel_for_dispatch_key(k) or _dispatch_has_kernel_for_dispatch_key(self._name, k)

    def has_kernel_for_any_dispatch_key(self, ks):
        from ._C import _dispatch_has_kernel_for_any_dispatch_key

        registered = _dispatch_has_kernel_for_any_dispatch_key(self._name, ks)
        return registered or super().has_kernel_for_any_dispatch_key(ks)

    def _can_decompose(self):
        from ._C import DispatchKey

        return self.has_kernel_for_dispatch_key(DispatchKey.CompositeImplicitAutograd)

    def decompose(self, *args, **kwargs):
        """What it is composed of, called with the arguments; NotImplemented if it is not composed of operators."""
        from ._C import DispatchKey

        key = DispatchKey.CompositeImplicitAutograd
        if key in self.py_kernels:
            return self.py_kernels[key](*args, **kwargs)
        return self._op_dk(key, *args, **kwargs) if self._can_decompose() else NotImplemented

    def name(self):
        return self._name

    @property
    def namespace(self):
        return self._namespace

    @property
    def overloadpacket(self):
        return self._overloadpacket

    @property
    def op(self):
        return self._op

    def keys(self):
        """The names of the keys that this operator has a kernel for."""
        return operator_keys(self._operator)

    def __deepcopy__(self, memo=None):
        return self

    def __hash__(self):
        return hash(self._op)

    def __str__(self):
        return f"{self._namespace}.{self._opname}.{self._overloadname}"

    def __repr__(self):
        return f"<OpOverload(op='{self._namespace}.{self._opname}', overload='{self._overloadname}')>"


def _defaults_after_tensors(schema):
    """Number of arguments, all of them tensors -> what stands for the others. Of operators that return one tensor."""
    if [(r.type.is_tensor, r.type.is_list) for r in schema.returns] != [(True, False)]:
        return {}
    rest = {}
    for count, a in enumerate(schema.arguments, 1):
        if not a.type.is_tensor or a.type.is_list or a.keyword_only:
            break
        others = schema.arguments[count:]
        if all(other.has_default for other in others):
            rest[count] = tuple([default_of(other) for other in others])
    return rest


def _function_of(overload):
    """The function that binds arguments to the schema and calls the operator."""
    operator = overload._operator

    def op(*args, **kwargs):
        if is_overridden(_elements(args, kwargs)):
            return _ask_overriders(overload, args, kwargs)
        return call_boxed(operator, bind(operator.schema, args, kwargs))

    op.__name__ = op.__qualname__ = operator.schema.name
    return op


def _elements(args, kwargs):
    return and_elements((*args, *kwargs.values()))


def _ask_overriders(op, args, kwargs):
    """What `__torch_function__` of a mode or of an argument's class answers. op: an OpOverload or a packet."""
    name = f"torch.ops.{op._namespace}.{op._opname}"
    return handle_torch_function(op, overloaded_args(_elements(args, kwargs)), args, kwargs, name, always=True)


class OpOverloadPacket:
    """All operators of one name. A call goes to the first whose schema the arguments fit."""

    __file__ = "torch.ops"

    def __init__(self, qualified_op_name, op_name):
        self._qualified_op_name = qualified_op_name
        self._namespace, self._opname = qualified_op_name.split("::")
        self.__name__ = op_name
        self._dir = []

    @property
    def _operators(self):
        return _operators_by_name()[self._qualified_op_name]

    @property
    def _overload_names(self):
        return [operator.schema.overload for operator in self._operators]

    @cached_property
    def _op(self):
        def op(*args, **kwargs):
            if is_overridden(_elements(args, kwargs)):
                return _ask_overriders(self, args, kwargs)
            return _call_first_that_fits(self._operators, args, kwargs)

        op.__name__ = op.__qualname__ = self.__name__
        return op

    @property
    def op(self):
        return self._op

    @property
    def _schemas(self):
        return {operator.schema.overload: python_dispatch.function_schema(operator) for operator in self._operators}

    def __getattr__(self, key):
        if key.startswith("__"):
            raise AttributeError(
                f"'{self}' can't have an overload name beginning with '__' and the underlying op {self._op} has no attribute "
                f"{key} either."
            )
        overload = "" if key == "default" else f".{key}"
        operator = registry.get(f"{self._qualified_op_name}{overload}")
        if operator is None:
            raise AttributeError(f"The underlying op of '{self}' has no overload name '{key}'")
        made = OpOverload(self, operator)
        setattr(self, key, made)
        self._dir.append(key)
        return made

    def __call__(self, /, *args, **kwargs):
        return self._op(*args, **kwargs)

    def overloads(self):
        return [name or "default" for name in self._overload_names]

    def op_overloads(self):
        return [getattr(self, name) for name in self.overloads()]

    def __iter__(self):
        return iter(self._dir)

    def __deepcopy__(self, memo=None):
        return self

    def __hash__(self):
        return hash(self._op)

    def __str__(self):
        return self._qualified_op_name.replace("::", ".")

    def __repr__(self):
        return f"<OpOverloadPacket(op='{self}')>"


def _call_first_that_fits(operators, args, kwargs):
    """In PyTorch: `getOpWithStack`."""
    if len(operators) == 1:
        return call_boxed(operators[0], bind(operators[0].schema, args, kwargs))
    failures = []
    for operator in operators:
        try:
            bound = bind(operator.schema, args, kwargs)
        except RuntimeError as error:
            failures.append(str(error))
            continue
        return call_boxed(operator, bound)
    raise RuntimeError(
        "Overloaded torch operator invoked from Python failed to match any schema:\n" + "\n\n".join(failures) + "\n\n"
    )


class HigherOrderOperator(OperatorBase):
    """An operator that takes functions, such as `cond`: `torch.ops.higher_order.NAME`. Written in Python, a subclass each.

    A subclass calls `super().__call__`, or overrides `__call__`. There is no kernel but those of `py_impl`.
    """

    def __init__(self, name, *, cacheable=False):
        super().__init__()
        if type(self) is HigherOrderOperator:
            raise RuntimeError("Direct instantiation of HigherOrderOperator is not allowed. Please subclass it.")
        self._name = self.__name__ = name
        self._ns = "higher_order"
        self.__module__ = "readtorch.ops.higher_order"
        self._cacheable = cacheable
        _higher_order_ops[name] = self

    def name(self):
        return self._name

    def __str__(self):
        return self._name

    def __deepcopy__(self, memo=None):
        return self


_higher_order_ops = {}  # name -> HigherOrderOperator


class _HigherOrderNamespace(ModuleType):
    __file__ = "torch.ops"

    def __init__(self):
        super().__init__("torch.ops.higher_order")

    def __getattr__(self, name):
        if name not in _higher_order_ops:
            raise AttributeError(f"'_HigherOrderNamespace' 'torch.ops.higher_order' object has no attribute '{name}'")
        return _higher_order_ops[name]


class _OpNamespace(ModuleType):
    """The operators of one namespace: `torch.ops.aten`."""

    __file__ = "torch.ops"

    def __init__(self, name):
        super().__init__(f"torch.ops.{name}")
        self.name = name
        self._dir = []

    def __iter__(self):
        return iter(self._dir)

    def __dir__(self):
        known = [name.partition("::") for name in _operators_by_name()]
        return sorted({*super().__dir__(), *(name for space, _, name in known if space == self.name)})

    def __getattr__(self, op_name):
        if op_name in ("__origin__", "__self__"):
            raise AttributeError(f"Invalid attribute '{op_name}' for '_OpNamespace' '{self.name}'")
        qualified_op_name = f"{self.name}::{op_name}"
        if qualified_op_name not in _operators_by_name():
            raise AttributeError(f"'_OpNamespace' '{self.name}' object has no attribute '{op_name}'")
        packet = OpOverloadPacket(qualified_op_name, op_name)
        packet.__module__ = f"{self.__module__}.{self.name}"
        setattr(self, op_name, packet)
        self._dir.append(op_name)
        return packet


class _Ops(ModuleType):
    """`torch.ops`: a namespace for each name that is asked for."""

    __file__ = "_ops.py"

    def __init__(self):
        super().__init__("torch.ops")
        self.loaded_libraries = set()
        self.higher_order = _HigherOrderNamespace()
        self._dir = []

    def __getattr__(self, name):
        if name.startswith("__"):  # Python's own questions to a module
            raise AttributeError(name)
        namespace = _OpNamespace(name)
        setattr(self, name, namespace)
        self._dir.append(name)
        return namespace

    def __iter__(self):
        return iter(self._dir)

    def import_module(self, module):
        """Imports the module of this name, which registers operators."""
        importlib.import_module(module)

    def load_library(self, path):
        """In PyTorch: loads a shared library whose start registers operators that are written in C++. Refused here, with the
        type of error that PyTorch has for libraries that cannot be loaded: there is no C++ dispatcher to register with."""
        refused_libraries.append(path)
        raise OSError(
            f"torch.ops.load_library('{path}'): operators that are written in C++ cannot be loaded here; write them in Python, "
            "with torch.library"
        )

    def listing(self):
        """All operators as (schema text, key names), sorted by name."""
        return [(str(op.schema), operator_keys(op)) for _, op in sorted(registry.items())]


_by_name = {}  # "aten::add" -> its operators, in order of registration
_indexed = None


def _operators_by_name():
    global _indexed
    state = len(registry), next(reversed(registry)), python_dispatch.changes
    if state != _indexed:
        _by_name.clear()
        for operator in list(registry.values()):  # a Library that is collected meanwhile takes its operators out
            _by_name.setdefault(operator.schema.qualified_name, []).append(operator)
        _indexed = state
    return _by_name


def overload_of(operator):
    """The OpOverload of an operator of the dispatcher: what modes and subclasses are handed."""
    schema = operator.schema
    return getattr(getattr(getattr(ops, schema.namespace), schema.name), schema.overload or "default")


def operator_keys(operator):
    """What calls of `operator` can reach: kernels by backend, a composite, and Autograd if it has a
    derivative.
    """
    keys = [NAMES[key] for key in operator.kernels if key & BACKENDS]
    if operator.composite is not None:
        keys.append("CompositeImplicitAutograd")
    if (operator.variant_of or operator).derivative is not None:
        keys.append("Autograd")
    return keys


ops = _Ops()
sys.modules[f"{__package__}.ops"] = ops  # so that `from readtorch.ops import aten` finds it
python_dispatch.torch_api_function = python_fallback_kernel.op_overload = overload_of
