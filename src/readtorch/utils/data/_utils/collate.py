"""From a list of samples to a batch.

In PyTorch: `torch/utils/data/_utils/collate.py`. See the chapter "Dataset, Sampler, DataLoader".

Both functions walk through mappings and sequences and keep their types where they can. `default_collate`
takes a list of samples and stacks what lies at the same place in each; `default_convert` takes one sample.
"""

import copy
import re
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence

import numpy as np

import readtorch

from .worker import get_worker_info

np_str_obj_array_pattern = re.compile(r"[SaUO]")
default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


# One sample


def default_convert(data):
    """`data` with a tensor in place of each NumPy array or scalar, which share memory with arrays.

    Tuples become lists (named ones keep their type), mappings and other sequences stay what they are.
    """
    if isinstance(data, readtorch.Tensor):
        return data
    if _is_numpy(data):
        has_numbers = type(data) is not np.ndarray or not np_str_obj_array_pattern.search(data.dtype.str)
        return readtorch.as_tensor(data) if has_numbers else data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if _is_namedtuple(data):
        return type(data)(*map(default_convert, data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _sequence_like(data, [default_convert(item) for item in data])
    return data


def _is_numpy(data):
    kind = type(data)
    return kind.__module__ == "numpy" and kind.__name__ not in ("str_", "string_")


# A list of samples


def default_collate(batch):
    """One object of the kind of a sample, with batches of tensors where the samples have tensors or numbers.

    tensors of shape S -> a tensor of shape (len(batch), *S); NumPy arrays and numbers the same way (float ->
    float64); str and bytes -> the list; mappings, named tuples and sequences part by part, tuples as lists.
    Raises TypeError for anything else, RuntimeError for sequences of different lengths.
    `default_collate_fn_map` may be extended.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map=None):
    """`default_collate` with a table of one's own: type, or tuple of types -> f(batch, *, collate_fn_map).

    The first sample's own type comes first, then the keys that it is an instance of, in the table's order.
    """
    elem = batch[0]
    if collate_fn := _find_collate_fn(elem, collate_fn_map or {}):
        return collate_fn(batch, collate_fn_map=collate_fn_map)
    if isinstance(elem, Mapping):
        return _mapping_like(
            elem, {key: collate([sample[key] for sample in batch], collate_fn_map=collate_fn_map) for key in elem}
        )
    if _is_namedtuple(elem):
        return type(elem)(*(collate(items, collate_fn_map=collate_fn_map) for items in zip(*batch)))
    if isinstance(elem, Sequence):
        if any(len(sample) != len(elem) for sample in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return _sequence_like(elem, [collate(items, collate_fn_map=collate_fn_map) for items in zip(*batch)])
    raise TypeError(default_collate_err_msg_format.format(type(elem)))


def _find_collate_fn(elem, collate_fn_map):
    if type(elem) in collate_fn_map:
        return collate_fn_map[type(elem)]
    return next((fn for kind, fn in collate_fn_map.items() if isinstance(elem, kind)), None)


# Containers of the same type with other contents


def _mapping_like(old, items):
    """A mapping may have more to it than its items: one that can be changed is copied, then changed."""
    try:
        if not isinstance(old, MutableMapping):
            return type(old)(items)
        clone = copy.copy(old)
        clone.update(items)
        return clone
    except TypeError:  # cannot be copied, updated or made of a dict
        return items


def _sequence_like(old, items):
    if isinstance(old, tuple):
        return items
    try:
        if not isinstance(old, MutableSequence):
            return type(old)(items)
        clone = copy.copy(old)
        for i, item in enumerate(items):
            clone[i] = item
        return clone
    except TypeError:  # cannot be copied, changed or made of a list, as `range`
        return items


def _is_namedtuple(value):
    return isinstance(value, tuple) and hasattr(value, "_fields")


# What becomes of values


def collate_tensor_fn(batch, *, collate_fn_map=None):
    if batch[0].layout != readtorch.strided:
        raise RuntimeError(
            "Batches of sparse tensors are not currently supported by the default collate_fn; "
            "please provide a custom collate_fn to handle them appropriately."
        )
    return readtorch.stack(batch, 0, out=None if get_worker_info() is None else _shared(batch))


def _shared(batch):
    """A worker stacks into shared memory at once; sending the batch would move it there otherwise."""
    elem = batch[0]
    numel = sum(x.numel() for x in batch)
    storage = elem._typed_storage()._new_shared(numel, device=elem.device)
    return elem.new(storage).resize_(len(batch), *elem.size())


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    dtype = batch[0].dtype
    if np_str_obj_array_pattern.search(dtype.str) is not None:
        raise TypeError(default_collate_err_msg_format.format(dtype))
    return collate([readtorch.as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch, *, collate_fn_map=None):
    return readtorch.as_tensor(batch)


def collate_float_fn(batch, *, collate_fn_map=None):
    return readtorch.tensor(batch, dtype=readtorch.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    return readtorch.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    return batch


# The order counts where an element is an instance of several: np.float64 is a float as well.
default_collate_fn_map = {
    readtorch.Tensor: collate_tensor_fn,
    np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
