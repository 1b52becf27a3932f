"""`vmap`, `grad` and `grad_and_value`: the transforms that `torch.func` and `torch.vmap` are.

In PyTorch: `torch/_functorch/apis.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import functools

from .eager_transforms import grad_and_value_impl, grad_impl
from .utils import exposed_in
from .vmap import vmap_impl


@exposed_in("readtorch.func")
def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func` for all examples of a batch at once: what it does with one example is done with whole batches.

    in_dims: which dimension of each input counts the examples, as an int or a tree that fits the inputs; None for an input that is
    the same for all. out_dims: where this dimension stands in the outputs. randomness: whether each example draws random numbers
    of its own ("different"), all draw the same ("same"), or none may ("error"). chunk_size: how many examples are computed at a time.
    Raises ValueError for what does not fit, RuntimeError for a randomness that there is not, and inside of `func` for what no
    batch can do: taking an element out of a tensor, or branching on one.
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapped(*args, **kwargs):
        return vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs)

    return wrapped


@exposed_in("readtorch.func")
def grad(func, argnums=0, has_aux=False):
    """The function that computes the gradient of `func`, whose output is a tensor of one element and no dimension.

    argnums: the argument, or a tuple of those, with respect to which. has_aux: `func` returns (output, something else), and the
    gradient comes back with the latter. Raises RuntimeError for another output.
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return grad_impl(func, argnums, has_aux, args, kwargs)

    return wrapper


@exposed_in("readtorch.func")
def grad_and_value(func, argnums=0, has_aux=False):
    """Like `grad`, for (gradient, output), or (gradient, (output, something else)) with `has_aux`."""

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        return grad_and_value_impl(func, argnums, has_aux, args, kwargs)

    return wrapper
