"""The sum over ranks of sparse tensors, which differ in where they have elements.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupGloo.cpp` (`AsyncSparseAllreduceWork`); here for all backends, as it is
made of their collectives.
"""

import numpy as np

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import wrap


def sparse_all_reduce(group, tensor):
    """The sum, a sparse tensor of the same shape, on all ranks.

    First the ranks exchange how many elements they have; then all indices and values go to all, padded to the
    longest.
    """
    mine = tensor.coalesce()
    indices, values = mine.indices()._array, mine.values()._array
    counts = gather_rows(group, np.array([values.shape[0]]))[:, 0]
    longest = int(counts.max())
    all_indices = gather_rows(group, padded(indices.T, longest))
    all_values = gather_rows(group, padded(values, longest))
    indices = np.concatenate([rows[:n] for rows, n in zip(all_indices, counts)]).T
    values = np.concatenate([rows[:n] for rows, n in zip(all_values, counts)])
    return at.sparse_coo_tensor(wrap(np.ascontiguousarray(indices)), wrap(values), list(tensor.shape)).coalesce()


def sparse_all_reduce_into(group, tensors):
    """The sum over all tensors of all ranks, in place of each."""
    mine = tensors[0]
    for other in tensors[1:]:
        mine = mine + other
    total = sparse_all_reduce(group, mine)
    for tensor in tensors:
        tensor.copy_(total)


def gather_rows(group, array):
    """The arrays of all ranks: (ranks, *shape)"""
    rows = np.empty((group.size(), *array.shape), array.dtype)
    group.all_gather_single(wrap(rows), wrap(np.ascontiguousarray(array))).wait()
    return rows


def padded(array, length):
    """With zeros behind, to `length` along dimension 0."""
    result = np.zeros((length, *array.shape[1:]), array.dtype)
    result[: array.shape[0]] = array
    return result


def empty_like(parameter):
    """A sparse gradient of a parameter without elements; it has rows, as those of embeddings have."""
    indices, values = np.zeros((1, 0), np.int64), np.zeros((0, *parameter.shape[1:]), parameter._array.dtype)
    return at.sparse_coo_tensor(wrap(indices), wrap(values), list(parameter.shape))
