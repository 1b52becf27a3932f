"""Tensors that a module registers: parameters, which are trained, and buffers, which are kept as state.

In PyTorch: `torch/nn/parameter.py`. The chapter "Parameter and Buffer" explains why a parameter is a tensor
and yet special.
"""

from collections import OrderedDict

import readtorch
from readtorch import _utils
from readtorch._C import _disabled_torch_function_impl
from readtorch._tensor import Tensor
from readtorch.csrc.autograd.python_variable import TensorBase

__all__ = [
    "Parameter",
    "UninitializedParameter",
    "is_lazy",
    "Buffer",
    "UninitializedBuffer",
    "UninitializedTensorMixin",
]


class _ParameterMeta(type(Tensor)):
    """`isinstance(t, Parameter)` is also true of a tensor subclass that carries the mark `_is_param`."""

    def __instancecheck__(self, instance) -> bool:
        if self is Parameter and isinstance(instance, Tensor) and getattr(instance, "_is_param", False):
            return True
        return super().__instancecheck__(instance)


class Parameter(Tensor, metaclass=_ParameterMeta):
    """A tensor that a module registers as its own when it is assigned to one of the module's attributes.

    data: tensor, by default an empty one; its storage is shared, its graph is not.
    requires_grad: True by default, also under `no_grad`.
    Results of operations on parameters are plain tensors.
    """

    _is_param = True
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if data is None:
            data = readtorch.empty(0)
        if type(data) is Tensor or type(data) is Parameter:
            return Tensor._make_subclass(cls, data, requires_grad)
        # A subclass of Tensor stays what it is; it gets a mark instead of the class.
        t = data.detach().requires_grad_(requires_grad)
        if type(t) is not type(data):
            raise RuntimeError(
                f"Creating a Parameter from an instance of type {type(data).__name__} "
                "requires that detach() returns an instance of the same type, but return "
                f"type {type(t).__name__} was found instead. To use the type as a "
                "Parameter, please correct the detach() semantics defined by "
                "its __torch_dispatch__() implementation."
            )
        t._is_param = True
        return t

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        copied = self.data.clone(memory_format=readtorch.preserve_format)
        memo[id(self)] = result = type(self)(copied, self.requires_grad)
        return result

    def __repr__(self) -> str:
        return "Parameter containing:\n" + super().__repr__()

    def __reduce_ex__(self, proto):
        # Hooks are not saved: they are functions of the program, not data of the model.
        args = (self.data, self.requires_grad, OrderedDict())
        if not self.__dict__:
            return _utils._rebuild_parameter, args
        return _utils._rebuild_parameter_with_state, (*args, self.__dict__)


class _BufferMeta(type(Tensor)):
    """A buffer is a plain tensor with the mark `_is_buffer`; `isinstance` looks for the mark."""

    def __instancecheck__(self, instance) -> bool:
        if self is Buffer and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False):
            return True
        return super().__instancecheck__(instance)


class Buffer(Tensor, metaclass=_BufferMeta):
    """A tensor that belongs to a module's state but is not trained; registered like a parameter.

    persistent: whether it goes into the module's `state_dict`.
    """

    def __new__(cls, data=None, *, persistent=True):
        if data is None:
            data = readtorch.empty(0)
        t = data.detach().requires_grad_(data.requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        return t


# Note [ What an uninitialized tensor refuses ]
#
# The parameters of a lazy module exist before their shape is known: an optimizer can hold them, `to` can move them.
# Such a tensor has no elements, and its class refuses whatever would look at them. `materialize` gives it elements
# and changes its class; it stays the same object, so whoever holds it now holds the real parameter.
#
# Two things refuse: the methods, all but the few in `_ALLOWED_METHODS`, and the key set, which every function reads
# before it calls the dispatcher.
#
# in PyTorch: `__torch_function__`, a hook in every Python binding of an operator, refuses both.

_ALLOWED_METHODS = {
    "size",
    "is_complex",
    "is_floating_point",
    "get_device",
    "__new__",
    "__init__",
    "__hash__",
    "__repr__",
    "__reduce_ex__",
    "__dir__",
    "_is_view",
    "_make_subclass",
    "as_subclass",
}
# These work on the empty tensor beneath.
_CONVERSIONS = ("half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to")


def _refuse(tensor, function):
    name = type(tensor).__name__
    raise ValueError(
        f"Attempted to use an uninitialized parameter in {function}. "
        "This error happens when you are using a `LazyModule` or "
        f"explicitly manipulating `torch.nn.parameter.{name}` "
        "objects. When using LazyModules Call `forward` with a dummy batch "
        "to initialize the parameters before calling torch functions"
    )


def _refusal(shown):
    def refuse(self, *args, **kwargs):
        _refuse(self, shown)

    return refuse


def _refusals():
    """Name -> method that refuses, for every method of Tensor that is not allowed."""
    methods = {}
    for cls in (TensorBase, Tensor):
        for name, member in vars(cls).items():
            if callable(member) and name not in _ALLOWED_METHODS:
                shown = f"<method '{name}' of 'torch._C.TensorBase' objects>" if cls is TensorBase else repr(member)
                methods[name] = _refusal(shown)
    return methods


def _conversion(name):
    def convert(self, *args, **kwargs):
        plain = self.data
        converted = getattr(plain, name)(*args, **kwargs)
        return self if converted is plain else self._as_converted(converted)

    convert.__name__ = name
    return convert


class UninitializedTensorMixin:
    """A tensor whose shape is not known yet. See Note [ What an uninitialized tensor refuses ].

    Raises ValueError in nearly every method and function, RuntimeError when asked for its shape.
    """

    __torch_function__ = _disabled_torch_function_impl  # the methods below refuse, and `_keys`
    locals().update(_refusals())
    locals().update({name: _conversion(name) for name in _CONVERSIONS})
    __hash__ = object.__hash__  # a class that defines `__eq__` loses it

    @property
    def _keys(self):
        _refuse(self, "an operator")

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Become a parameter (or tensor) of this shape, with uninitialized elements."""
        if device is None:
            device = self.data.device
        if dtype is None:
            dtype = self.data.dtype
        self.data = readtorch.empty(shape, device=device, dtype=dtype)
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. "
            "This error usually happens in `load_state_dict` when trying to load "
            "an uninitialized parameter into an initialized one. "
            "Call `forward` to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. "
            "Call `forward` to initialize the parameters before calling "
            "`module.share_memory()`."
        )

    def copy_(self, src, non_blocking=False):
        self.data.copy_(src.data if is_lazy(src) else src, non_blocking)
        return self

    def _as_converted(self, tensor):
        """What a conversion of this tensor returns."""
        return tensor

    def __repr__(self) -> str:
        return f"<{self.__class__.__name__}>"

    def __reduce_ex__(self, proto):
        return self.__class__, (self.requires_grad,)


def is_lazy(param) -> bool:
    """Whether `param` is an `UninitializedParameter` or an `UninitializedBuffer`."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet. device, dtype: of the parameter that it will become."""

    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        t = Parameter(readtorch.empty(0, device=device, dtype=dtype), requires_grad)
        t.__class__ = cls
        return t

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        memo[id(self)] = result = type(self)(self.requires_grad, self.data.device, self.data.dtype)
        return result


class UninitializedBuffer(UninitializedTensorMixin, Tensor):
    """A buffer whose shape is not known yet. device, dtype: of the tensor that it will become."""

    cls_to_become = Tensor

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        t = readtorch.empty(0, device=device, dtype=dtype, requires_grad=requires_grad)
        t.persistent = persistent
        t._is_buffer = True
        t.__class__ = cls
        return t

    def _as_converted(self, tensor):
        tensor.__class__ = type(self)
        return tensor
