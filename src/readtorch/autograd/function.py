"""Custom functions: a forward with a backward of your own.

In PyTorch: `torch/autograd/function.py`. Explained in the chapter "Autograd".
"""

import functools
import inspect
import warnings

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd import python_function
from readtorch.csrc.autograd.node import Error
from readtorch.csrc.autograd.python_function import PyNode
from readtorch.csrc.autograd.variable import set_history

from .grad_mode import no_grad


class FunctionCtx:
    """What `forward`, `setup_context` and `backward` may do with their `ctx`."""

    def save_for_backward(self, *tensors):
        """Keep tensors for backward; they come back as `ctx.saved_tensors`, checked for in-place writes."""
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for `jvp`."""
        for t in tensors:
            if not isinstance(t, TensorImpl) and t is not None:
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save "
                    "non-tensors as attributes on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Mark the inputs that `forward` wrote to in place; each must also be returned."""
        self.dirty_tensors = args

    def mark_shared_storage(self, *pairs):
        """Deprecated: views share storage by themselves."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically "
            "tracked. Note that calls to `set_()` are not tracked",
            FutureWarning,
            stacklevel=2,
        )

    def mark_non_differentiable(self, *args):
        """Mark the outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (True, the default) or None where no gradient arrived."""
        self.materialize_grads = value


class BackwardCFunction(PyNode, FunctionCtx):
    """The node of one call of a Function; every Function has its own subclass, named after it."""

    __slots__ = ()

    def run_backward(self, *grads):
        function = self._forward_cls
        if function.backward is not Function.backward and function.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not "
                "allowed. You should only implement one of them."
            )
        user = function.vjp if function.vjp is not Function.vjp else function.backward
        return user(self, *grads)


class FunctionMeta(type):
    """Gives each Function its node class: `class Exp(Function)` has nodes named `ExpBackward`."""

    def __init__(cls, name, bases, attributes):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__slots__": ()})
        super().__init__(name, bases, attributes)


class Function(metaclass=FunctionMeta):
    """Subclass it with static methods `forward` (and `setup_context`) and `backward`; call `YourFunction.apply(...)`."""

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all "
            "static, so you should invoke them on the class itself. Instantiating an autograd "
            "function will raise an error in a future version of PyTorch.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please "
            "use new-style autograd function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args, **kwargs):
        """`forward(ctx, *args)`, or `forward(*args)` beside a `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        """Save for backward here when `forward` has no ctx."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """The gradient of each argument of `forward` (None for what has none), from those of its outputs."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        """The derivative in a direction; forward-mode differentiation is not part of readtorch."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run `forward` and record this Function's node behind what it returns."""
        separate = cls.setup_context is not Function.setup_context
        if separate and kwargs or kwargs:
            signature = inspect.signature(cls.forward)
            bound = signature.bind(*args, **kwargs) if separate else signature.bind(None, *args, **kwargs)
            bound.apply_defaults()
            args = bound.args if separate else bound.args[1:]
        return python_function.apply(cls._backward_cls(), cls.forward, cls.setup_context if separate else None, args)


class InplaceFunction(Function):
    """Kept for old code: a Function with an `inplace` flag."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def once_differentiable(function):
    """Decorator for `backward`: differentiating it again raises an error instead of giving a wrong result."""

    @functools.wraps(function)
    def wrapper(ctx, *args):
        from .grad_mode import is_grad_enabled

        with no_grad():
            outputs = function(ctx, *args)
        if not is_grad_enabled() or not any(isinstance(a, TensorImpl) and a.requires_grad for a in args):
            return outputs
        many = isinstance(outputs, tuple)
        node = Error(())
        node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
        guarded = [_behind(node, o) for o in (outputs if many else (outputs,))]
        return tuple(guarded) if many else guarded[0]

    return wrapper


def _behind(node, output):
    """`output` as a result of `node`, so that backward through it raises the node's error."""
    if output is None:
        return None
    guarded = output.detach()
    node._shape, node._dtype = guarded._array.shape, guarded._array.dtype
    set_history(guarded, (node, 0))
    return guarded
