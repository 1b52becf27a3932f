"""Tensors with a mark that says what a module shall do with them: train them, or keep them as state.

In PyTorch: `torch/nn/parameter.py`. Chapter 6 explains why a parameter is a tensor and yet special.
"""
from collections import OrderedDict

import readtorch
from readtorch import _utils
from readtorch._tensor import Tensor

__all__ = ["Parameter", "Buffer"]


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
