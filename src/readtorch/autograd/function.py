"""Custom functions: a forward with a backward of your own.

In PyTorch: `torch/autograd/function.py`. Explained in the chapter "Autograd".
"""

import functools
import inspect
import warnings

from readtorch.aten.record_function import FUNCTION, is_observed
from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl
from readtorch.csrc.autograd import python_function
from readtorch.csrc.autograd.node import Error
from readtorch.csrc.autograd.python_function import PyNode
from readtorch.csrc.autograd.variable import gradient_edge, set_history
from readtorch.csrc.functorch.init import CustomFunctions, are_transforms_active

from .grad_mode import no_grad

__all__ = [
    "FunctionCtx",
    "BackwardCFunction",
    "FunctionMeta",
    "Function",
    "once_differentiable",
    "InplaceFunction",
    "NestedIOFunction",
]


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

    def apply_boxed(self, *grads):
        """`backward` of the Function with these arguments; what it was called with is not put into a list here."""
        function = self._forward_cls
        if function.backward is not Function.backward and function.vjp is not Function.vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not "
                "allowed. You should only implement one of them."
            )
        user = function.vjp if function.vjp is not Function.vjp else function.backward
        return user(self, *grads)

    run_backward = apply_boxed

    def apply_jvp(self, *tangents):
        """`jvp` of the Function."""
        return self._forward_cls.jvp(self, *tangents)

    run_jvp = apply_jvp


class FunctionMeta(type):
    """Gives each Function its node class: `class Exp(Function)` has nodes named `ExpBackward`."""

    def __init__(cls, name, bases, attributes):
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"_forward_cls": cls, "__slots__": ()})
        super().__init__(name, bases, attributes)


class _SingleLevelFunction(metaclass=FunctionMeta):
    """A Function that knows nothing of transforms: those make such ones, each for a level of its own."""

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
        """The tangent of each output of `forward`, from those of its arguments (None for what is no tensor)."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args):
        """Run `forward` and record this Function's node behind what it returns."""
        setup_context = cls.setup_context if _is_setup_context_defined(cls.setup_context) else None
        return python_function.apply(cls._backward_cls(), cls.forward, setup_context, args)


_NO_SETUP = _SingleLevelFunction.setup_context


def _is_setup_context_defined(fn):
    return fn is not _NO_SETUP


class Function(_SingleLevelFunction):
    """Subclass it with static methods `forward` (and `setup_context`) and `backward`; call `YourFunction.apply(...)`.

    Under the transforms of `torch.func` it needs a `setup_context`, for forward mode a `jvp`, for `torch.vmap` a `vmap` or
    `generate_vmap_rule = True`: then forward, backward and jvp are themselves run under vmap.
    """

    generate_vmap_rule = False

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
    def vmap(info, in_dims, *args):
        """What the Function does with whole batches: returns (outputs, their batch dimensions).

        info: `batch_size` and `randomness` of the vmap. in_dims: the batch dimension of each of `args`, None for what is the same for all
        examples or no tensor.
        """
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set generate_vmap_rule=True."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run `forward` and record this Function's node behind what it returns."""
        separate = cls.setup_context is not _NO_SETUP
        if kwargs or separate and cls.forward.__defaults__:
            signature = inspect.signature(cls.forward)
            bound = signature.bind(*args, **kwargs) if separate else signature.bind(None, *args, **kwargs)
            bound.apply_defaults()
            args, kwargs = bound.args if separate else bound.args[1:], bound.kwargs
        if threads_with_modes and are_transforms_active():
            if not separate:
                raise RuntimeError(
                    "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override the "
                    "setup_context staticmethod. For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"
                )
            return CustomFunctions.call(cls, *args, **kwargs)
        node, setup_context = cls._backward_cls(), cls.setup_context if separate else None
        if is_observed():
            run = lambda *args: python_function.apply(node, cls.forward, setup_context, args)  # noqa: E731
            return tls.around(cls.__name__, node._seq_nr, FUNCTION, run, args)
        return python_function.apply(node, cls.forward, setup_context, args)


class InplaceFunction(Function):
    """Kept for old code: a Function with an `inplace` flag."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for old code: a Function whose arguments and results were nested lists. It cannot be called any more."""

    def save_for_backward(self, *args):
        """Keep tensors that are anywhere in nested lists."""
        self.to_save, self._to_save_nested = tuple(_tensors_in(args)), args

    @property
    def saved_tensors(self):
        """What was kept, nested as it was."""
        return self._to_save_nested

    def mark_dirty(self, *args, **kwargs):
        """These tensors were written to."""
        self.dirty_tensors = tuple(_tensors_in((args, kwargs)))

    def mark_non_differentiable(self, *args, **kwargs):
        """These results have no gradient."""
        self.non_differentiable = tuple(_tensors_in((args, kwargs)))

    def forward_extended(self, *input):
        raise NotImplementedError

    def backward_extended(self, *grad_output):
        raise NotImplementedError


def _tensors_in(nested):
    """The tensors in lists, tuples and dictionaries, in order. Raises ValueError for what is neither, nor None."""
    if isinstance(nested, TensorImpl):
        yield nested
    elif isinstance(nested, (list, tuple)):
        for part in nested:
            yield from _tensors_in(part)
    elif isinstance(nested, dict):
        yield from _tensors_in(list(nested.values()))
    elif nested is not None:
        raise ValueError(
            f"Auto nesting doesn't know how to process an input object of type {type(nested).__module__}."
            f"{type(nested).__qualname__}. Accepted types: Tensors, or lists/tuples of them"
        )


def once_differentiable(fn):
    """Decorator for `backward`: differentiating it again raises an error instead of giving a wrong result."""

    @functools.wraps(fn)
    def wrapper(ctx, *args):
        from .grad_mode import is_grad_enabled

        with no_grad():
            outputs = fn(ctx, *args)
        if not is_grad_enabled() or not any(isinstance(a, TensorImpl) and a.requires_grad for a in args):
            return outputs
        guarded = _behind_error(outputs if isinstance(outputs, tuple) else (outputs,))
        return guarded if isinstance(outputs, tuple) and len(guarded) > 1 else guarded[0]

    return wrapper


def _behind_error(outputs):
    """`outputs` as results of one node, so that backward through them raises its error. In PyTorch: `DelayedError`."""
    leaves = [None if o is None else o.detach().requires_grad_() for o in outputs]
    node = Error(tuple([NO_EDGE if leaf is None else gradient_edge(leaf) for leaf in leaves]))
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    node._shape = [() if leaf is None else leaf._array.shape for leaf in leaves]
    node._dtype = [None if leaf is None else leaf._array.dtype for leaf in leaves]
    guarded = [None if leaf is None else leaf.detach() for leaf in leaves]
    for nr, t in enumerate(guarded):
        if t is not None:
            set_history(t, (node, nr))
    return tuple(guarded)
