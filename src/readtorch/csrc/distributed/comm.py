"""All ranks begin with the same values: many tensors copied in few messages. In PyTorch: `torch/csrc/distributed/c10d/comm.cpp`."""

import numpy as np

from readtorch.c10.tensor_impl import wrap

from .process_group import array_of
from .reducer import compute_bucket_assignment_by_size


def broadcast_coalesced(process_group, tensors, buffer_size, src=0):
    """Copy `tensors` of group rank `src` to all ranks, in messages of about `buffer_size` bytes."""
    groups, _ = compute_bucket_assignment_by_size(tensors, [buffer_size]) if tensors else ([], [])
    works = []
    for indices in groups:
        flat = np.concatenate([array_of(tensors[i]).reshape(-1) for i in indices])
        works.append((indices, flat, process_group.broadcast([wrap(flat)], src)))
    for indices, flat, work in works:
        work.wait()
        begin = 0
        for i in indices:
            array = tensors[i]._array
            array[...] = flat[begin : begin + array.size].reshape(array.shape)
            begin += array.size
