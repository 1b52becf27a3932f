"""A tensor as one level of differentiation sees it: another tensor, with a history and a tangent of its own.

In PyTorch: `aten/src/ATen/functorch/TensorWrapper.h`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.operator_entry import set_fallback
from readtorch.c10.dispatch_key import BATCHED, GRAD_WRAPPER
from readtorch.c10.tensor_impl import TensorImpl, host_array, key_set, new

from .batched_tensor_impl import WrappedImpl, wrapper_with


class TensorWrapperImpl(WrappedImpl):
    """value: what is wrapped. layer: the transform that wrapped it."""

    __slots__ = ()
    name = "TensorWrapper"

    def host_array(self, array):
        if key_set(self.value) & BATCHED:
            raise RuntimeError(NO_NUMBER)
        return host_array(self.value)


NO_NUMBER = (
    "vmap: It looks like you're either (1) calling .item() on a Tensor or (2) attempting to use a Tensor in some data-dependent "
    "control flow or (3) encountering this error in PyTorch internals. For (1): we don't support vmap over calling .item() on a "
    "Tensor, please try to rewrite what you're doing with other operations. For (2): we don't support data-dependent control flow in "
    "vmap yet, please file an issue at https://github.com/pytorch/pytorch/issues . For (3): please file an issue."
)


def make_tensor_wrapper(value, layer):
    """`value` as the transform `layer` sees it: without what other levels know of its history."""
    impl = new(TensorWrapperImpl)
    impl.value, impl.layer = value, layer
    return wrapper_with(impl, value._array, GRAD_WRAPPER)


def is_wrapper(t):
    return bool(key_set(t) & GRAD_WRAPPER)


def unwrap_if_dead(t):
    """What a wrapper of a transform that is over stands for: the tensor in it."""
    while key_set(t) & GRAD_WRAPPER and not t._storage_impl.layer.alive:
        t = t._storage_impl.value
    return t


def make_dead_wrapper_kernel(operator, keys):
    """The kernel of the key FuncTorchGradWrapper, which calls reach only with wrappers that outlived their transform."""

    def unwrapped_call(*arguments):
        alive = without_dead(arguments)
        assert alive is not arguments, "a wrapper of a transform that is under way, below that transform"
        return operator.call(*alive)

    return unwrapped_call


def without_dead(arguments):
    """The arguments with dead wrappers unwrapped; themselves if there are none."""
    alive = [_alive(a) for a in arguments]
    return arguments if all([a is b for a, b in zip(alive, arguments)]) else alive


def _alive(argument):
    if isinstance(argument, TensorImpl):
        return unwrap_if_dead(argument)
    if isinstance(argument, (list, tuple)) and any([isinstance(a, TensorImpl) for a in argument]):
        alive = [_alive(a) for a in argument]
        return argument if all([a is b for a, b in zip(alive, argument)]) else type(argument)(alive)
    return argument


set_fallback(GRAD_WRAPPER, make_dead_wrapper_kernel, written=True)
