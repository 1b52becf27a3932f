"""`vmap` from Python's side: which dimension of which argument is hidden, and where it comes back in the results.

In PyTorch: `torch/_functorch/vmap.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import functools
import itertools

import readtorch
from readtorch._C import _functorch
from readtorch._tensor import Tensor
from readtorch.utils._pytree import _broadcast_to_and_flatten, tree_flatten, tree_map_, tree_unflatten

from .utils import transform


def vmap_impl(func, in_dims, out_dims, randomness, chunk_size, *args, **kwargs):
    """One call of what `vmap` returns. chunk_size: how many examples at once; None for all of them."""
    check_out_dims(out_dims, func)
    batch_size, flat_in_dims, flat_args, args_spec = process_inputs(in_dims, args, func)
    if chunk_size is None:
        return flat_vmap(func, batch_size, flat_in_dims, flat_args, args_spec, out_dims, randomness, kwargs)
    chunks = chunked_inputs(flat_args, flat_in_dims, batch_size, chunk_size)
    return chunked_vmap(func, flat_in_dims, chunks, args_spec, out_dims, randomness, kwargs)


def flat_vmap(func, batch_size, flat_in_dims, flat_args, args_spec, out_dims, randomness, kwargs):
    with transform(
        _functorch._vmap_increment_nesting, _functorch._vmap_decrement_nesting, batch_size, randomness
    ) as level:
        batched = func(*batched_inputs(flat_in_dims, flat_args, level, args_spec), **kwargs)
        return unwrapped_outputs(batched, out_dims, level, batch_size, func)


# ------------------------------------------------------------------------------------------------------- inputs


def process_inputs(in_dims, args, func):
    """(batch size, the hidden dimension of each leaf or None, the leaves, their tree). ValueError for what does not fit."""
    call = f"vmap({get_name(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{call}expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
            "function with no inputs. The latter is unsupported."
        )
    flat_args, args_spec = tree_flatten(args)
    flat_in_dims = _broadcast_to_and_flatten(in_dims, args_spec)
    if flat_in_dims is None:
        raise ValueError(
            f"{call}in_dims is not compatible with the structure of `inputs`. in_dims has structure {tree_flatten(in_dims)[1]} but "
            f"inputs has structure {args_spec}."
        )
    flat_in_dims = [_checked_in_dim(arg, dim, call) for arg, dim in zip(flat_args, flat_in_dims)]
    return batch_size_of(flat_in_dims, flat_args), flat_in_dims, flat_args, args_spec


def _checked_in_dim(arg, in_dim, call):
    """A hidden dimension counted from the front."""
    if in_dim is None:
        return None
    if not isinstance(in_dim, int):
        raise ValueError(
            f"{call}Got in_dim={in_dim} for an input but in_dim must be either an integer dimension or None."
        )
    if not isinstance(arg, Tensor):
        raise ValueError(
            f"{call}Got in_dim={in_dim} for an input but the input is of type {type(arg)}. We cannot vmap over non-Tensor arguments, "
            "please use None as the respective in_dim"
        )
    rank = arg.dim()
    if not -rank <= in_dim < rank:
        raise ValueError(
            f"{call}Got in_dim={in_dim} for some input, but that input is a Tensor of dimensionality {rank} so expected in_dim to "
            f"satisfy -{rank} <= in_dim < {rank}."
        )
    return in_dim % rank


def batch_size_of(flat_in_dims, flat_args):
    sizes = [arg.size(dim) for dim, arg in zip(flat_in_dims, flat_args) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension"
        )
    return sizes[0]


def batched_inputs(flat_in_dims, flat_args, level, args_spec):
    add = _functorch._add_batch_dim
    batched = [arg if dim is None else add(arg, dim, level) for dim, arg in zip(flat_in_dims, flat_args)]
    return tree_unflatten(batched, args_spec)


# ------------------------------------------------------------------------------------------------------ outputs


def check_out_dims(out_dims, func):
    """ValueError unless `out_dims` is a tree of ints and Nones."""

    def check(dim):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                "representing where in the outputs the vmapped dimension should appear."
            )

    if not isinstance(out_dims, int):
        tree_map_(check, out_dims)


def unwrapped_outputs(outputs, out_dims, level, batch_size, func):
    """What the function returned for one example, as results for all."""
    flat, spec = tree_flatten(outputs)
    if isinstance(outputs, Tensor):  # a tuple of one dimension serves, too
        one = out_dims[0] if isinstance(out_dims, tuple) and len(out_dims) == 1 else out_dims
        flat_out_dims = [one] if one is None or isinstance(one, int) else None
    else:
        flat_out_dims = _broadcast_to_and_flatten(out_dims, spec)
    if flat_out_dims is None:
        raise ValueError(
            f"vmap({get_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
            f"out_dims has structure {tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    name = get_name(func)
    whole = [_unwrapped_output(name, output, level, batch_size, dim) for output, dim in zip(flat, flat_out_dims)]
    return tree_unflatten(whole, spec)


def _unwrapped_output(name, output, level, batch_size, out_dim):
    if out_dim is None:
        if isinstance(output, Tensor) and _functorch.is_batchedtensor(output):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return output
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean to set out_dims= to None for "
            "output?"
        )
    return _functorch._remove_batch_dim(output, level, batch_size, out_dim)


def get_name(func):
    """The function's name as errors say it."""
    if hasattr(func, "__name__"):
        return func.__name__
    return f"functools.partial({get_name(func.func)}, ...)" if isinstance(func, functools.partial) else repr(func)


# ------------------------------------------------------------------------------------------------------- chunks


def get_chunk_sizes(total, chunk_size):
    """So many things in chunks of this size, of which the last may be smaller."""
    whole, rest = divmod(total, chunk_size)
    return [chunk_size] * whole + ([rest] if rest else [])


def chunked_inputs(flat_args, flat_in_dims, batch_size, chunk_size):
    """The leaves for each chunk in turn."""
    ends = list(itertools.accumulate(get_chunk_sizes(batch_size, chunk_size)))
    parts = [
        [arg] * len(ends) if dim is None else arg.tensor_split(ends, dim=dim)
        for arg, dim in zip(flat_args, flat_in_dims)
    ]
    return zip(*parts)


def chunked_vmap(func, flat_in_dims, chunks, args_spec, out_dims, randomness, kwargs):
    """vmap of one chunk after the other, the results joined. With "same" randomness all chunks draw the same numbers."""
    state = readtorch.get_rng_state() if randomness == "same" else None
    outputs = []
    for flat_args in chunks:
        size = batch_size_of(flat_in_dims, flat_args)
        if size == 0:  # behind the last end
            continue
        if state is not None:
            readtorch.set_rng_state(state)
        outputs.append(flat_vmap(func, size, flat_in_dims, list(flat_args), args_spec, out_dims, randomness, kwargs))
    flat_outputs, specs = zip(*map(tree_flatten, outputs))
    dims = _broadcast_to_and_flatten(out_dims, specs[0])
    joined = [readtorch.cat(list(parts), dim=dim) for parts, dim in zip(zip(*flat_outputs), dims)]
    return tree_unflatten(joined, specs[0])


# ------------------------------------------------------------------------------------- vmap that stops and goes on


def restore_vmap(func, in_dims, batch_size, randomness):
    """vmap without checks, whose results are (outputs, their dimensions): nothing needs to be batched, and outputs may be anything.

    With it a vmap can be left and entered again, as the rules of custom Functions do.
    """

    def restored(*args, **kwargs):
        with transform(
            _functorch._vmap_increment_nesting, _functorch._vmap_decrement_nesting, batch_size, randomness
        ) as level:
            return unwrap_batched(func(*wrap_batched(args, in_dims, level), **kwargs), level)

    return restored


def wrap_batched(args, in_dims, level):
    """The tree with its tensors batched. in_dims: a tree that fits it."""
    flat, spec = tree_flatten(args)
    flat_in_dims = _broadcast_to_and_flatten(in_dims, spec)
    if flat_in_dims is None:
        raise AssertionError("flat_bdims must not be None")
    return batched_inputs(flat_in_dims, flat, level, spec)


def unwrap_batched(args, level):
    """(the tree with its tensors unwrapped, the same tree of their dimensions)"""
    flat, spec = tree_flatten(args)
    if not flat:
        return args, ()
    unwrap = _functorch._unwrap_batched
    pairs = [unwrap(arg, level) if isinstance(arg, Tensor) else (arg, None) for arg in flat]
    values, dims = zip(*pairs)
    return tree_unflatten(list(values), spec), tree_unflatten(list(dims), spec)
