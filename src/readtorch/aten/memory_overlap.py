"""Refusals of writes whose result would depend on the order in which elements are written.

In PyTorch: `aten/src/ATen/MemoryOverlap.cpp`. Explained in the chapter "Tensor and Storage".
"""

import warnings

import numpy as np

from readtorch.c10.memory_format import is_non_overlapping_and_dense
from readtorch.c10.storage_impl import address_of
from readtorch.c10.tensor_impl import strides_of


def has_internal_overlap(t):
    """Whether `t` shows an element several times: 0 no, 1 yes (it was expanded), 2 too hard to find out."""
    if is_non_overlapping_and_dense(t._array):
        return 0
    return 1 if any(s == 0 and n > 1 for s, n in zip(strides_of(t), t._array.shape)) else 2


def check_no_overlap(t):
    """Raises RuntimeError if `t` shows one element several times (it was expanded): writing would be ambiguous."""
    array = t._array
    if 0 in array.strides and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)) and array.size:
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def check_no_partial_overlap(written, read):
    """Raises RuntimeError if two tensors without gaps share some of their memory, but not element for element.

    What reading one gives would depend on how far the writing has come. In PyTorch: `aten/src/ATen/MemoryOverlap.cpp`.
    """
    a, b = written._array, read._array
    if np.may_share_memory(a, b) and not same_elements(a, b):
        if is_non_overlapping_and_dense(a) and is_non_overlapping_and_dense(b):
            raise overlap_error()


def same_elements(a, b):
    """Whether two arrays show the same memory, element for element."""
    return a.shape == b.shape and a.strides == b.strides and address_of(a) == address_of(b)


def overlap_error():
    return RuntimeError(
        "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
        "location. Please clone() the tensor before performing the operation."
    )


def warn_of_overlap(t, name, example):
    """For the writes that were once allowed where `check_no_overlap` would refuse, and still are."""
    if 0 in t._array.strides:
        try:
            check_no_overlap(t)
        except RuntimeError:
            warnings.warn(
                f"Use of {name} on expanded tensors is deprecated. Please clone() the tensor before "
                "performing this operation. This also applies to advanced indexing e.g. "
                f"{example}",
                stacklevel=4,
            )
