"""Small helpers of the transforms. In PyTorch: `torch/_functorch/utils.py`."""

import contextlib
import functools

from readtorch._C import _functorch
from readtorch.autograd.graph import disable_saved_tensors_hooks


def exposed_in(module):
    """Decorator: the function says that it is of the public module."""

    def expose(function):
        function.__module__ = module
        return function

    return expose


@contextlib.contextmanager
def transform(begin, end, *arguments):
    """`with transform(begin, end, …) as level:` a transform is under way."""
    level = begin(*arguments)
    try:
        yield level
    finally:
        end()


@contextlib.contextmanager
def enable_inplace_requires_grad(enabled):
    """Whether `requires_grad_()` may be called inside the innermost transform."""
    previous = _functorch.get_inplace_requires_grad_allowed()
    _functorch.set_inplace_requires_grad_allowed(enabled)
    try:
        yield
    finally:
        _functorch.set_inplace_requires_grad_allowed(previous)


@contextlib.contextmanager
def enable_single_level_autograd_function():
    """A custom Function that was made for one level may be applied."""
    previous = _functorch.get_single_level_autograd_function_allowed()
    _functorch.set_single_level_autograd_function_allowed(True)
    try:
        yield
    finally:
        _functorch.set_single_level_autograd_function_allowed(previous)


def doesnt_support_saved_tensors_hooks(function):
    """Decorator: what saves tensors inside raises an error if there are hooks for saved tensors."""
    message = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks. Please open an issue with your use case."

    @functools.wraps(function)
    def without_hooks(*args, **kwargs):
        with disable_saved_tensors_hooks(message):
            return function(*args, **kwargs)

    return without_hooks
