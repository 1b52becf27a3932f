"""vmap as autograd uses it: over whole tensors, with None for what has no gradient.

In PyTorch: `torch/_vmap_internals.py`, the prototype of `torch.vmap`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import functools
import warnings

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.functorch import init as functorch


def vmap(func, in_dims=0, out_dims=0):
    """Deprecated: `torch.vmap`."""
    warnings.warn("Please use `torch.vmap` instead of `torch._vmap_internals.vmap`.", FutureWarning, stacklevel=2)
    return _vmap(func, in_dims, out_dims)


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """`func` for all examples at a time: each sees one entry of dimension `in_dims` of the tensors among its arguments.

    in_dims: a number, or one for each argument (tuples may nest), None for what is the same for all. The results, a tensor or a
    tuple of tensors, have the examples in dimension `out_dims`; None is let through with allow_none_pass_through.
    Raises ValueError for anything else.
    """

    @functools.wraps(func)
    def wrapped(*args):
        call = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
        if not args:
            raise ValueError(
                f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over "
                "a function with no inputs. The latter is unsupported."
            )
        sizes = []
        _check(args, in_dims, call, sizes)
        if any(size != sizes[0] for size in sizes):
            raise ValueError(
                f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
            )
        level = functorch._vmapmode_increment_nesting(sizes[0])
        try:
            results = func(*_batched(args, in_dims, level))
            if not allow_none_pass_through:
                _check_results(results, func)
            return _whole(results, out_dims, level, sizes[0], func)
        finally:
            functorch._vmapmode_decrement_nesting()

    return wrapped


def _dims_of(values, dims):
    return dims if isinstance(dims, tuple) else [dims] * len(values)


def _check(value, dim, call, sizes):
    """Refuse what cannot be batched; note the number of examples of each tensor that can."""
    if isinstance(value, (tuple, list)):
        for element, of_element in zip(value, _dims_of(value, dim)):
            _check(element, of_element, call, sizes)
    elif dim is not None and not isinstance(value, TensorImpl):
        raise ValueError(
            f"{call}Got in_dim={dim} for an input but the input is of type {type(value)}. We cannot vmap over non-Tensor arguments, "
            "please use None as the respective in_dim"
        )
    elif dim is not None and not 0 <= dim < value.dim():
        raise ValueError(
            f"{call}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {value.dim()} so expected in_dim "
            f"to satisfy 0 <= in_dim < {value.dim()}."
        )
    elif dim is not None:
        sizes.append(value.size(dim))


def _batched(value, dim, level):
    if isinstance(value, (tuple, list)):
        return type(value)([_batched(v, d, level) for v, d in zip(value, _dims_of(value, dim))])
    return value if dim is None else functorch._add_batch_dim(value, dim, level)


def _check_results(results, func):
    name = _get_name(func)
    if isinstance(results, TensorImpl):
        return
    if not isinstance(results, tuple):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(results)} as the return."
        )
    for i, result in enumerate(results):
        if not isinstance(result, TensorImpl):
            raise ValueError(
                f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(result)} for return {i}."
            )


def _whole(results, out_dims, level, batch_size, func):
    if isinstance(results, TensorImpl):
        return functorch._remove_batch_dim(results, level, batch_size, out_dims)
    dims = _dims_of(results, out_dims)
    if len(dims) != len(results):
        raise ValueError(
            f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must have one dim per output (got {len(results)} outputs) "
            f"of {_get_name(func)}."
        )
    remove = functorch._remove_batch_dim
    return tuple([None if r is None else remove(r, level, batch_size, d) for r, d in zip(results, dims)])


def _get_name(func):
    return func.__name__ if hasattr(func, "__name__") else repr(func)
