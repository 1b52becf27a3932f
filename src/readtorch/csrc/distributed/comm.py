"""All ranks begin with the same model: checking its sizes, and copying its values.

In PyTorch: `torch/csrc/distributed/c10d/comm.cpp` (`broadcast_coalesced`) and `reducer.cpp`
(`verify_params_across_processes`).
"""
import numpy as np

from ...c10.tensor_impl import wrap
from .buckets import compute_bucket_assignment_by_size


def verify_params_across_processes(process_group, parameters):
    """RuntimeError on every rank whose parameters are not as many, or not of the sizes, as rank 0's."""
    counts = np.zeros((process_group.size(), 1), np.int64)
    process_group.all_gather_single(wrap(counts), wrap(np.array([len(parameters)], np.int64))).wait()
    first, rank = process_group.ranks[0], process_group.rank()
    for other, (count,) in zip(process_group.ranks, counts):
        if count != len(parameters):
            raise RuntimeError("DDP expects same model across all ranks, but Rank "
                               f"{process_group.ranks[rank]} has {len(parameters)} params, while rank "
                               f"{other} has inconsistent {count} "
                               "params.")
    sizes = np.full((len(parameters), 9), -1, np.int64)
    for row, p in zip(sizes, parameters):
        row[:1 + len(p.shape)] = [len(p.shape), *p.shape][:9]
    expected = sizes.copy()
    process_group.broadcast([wrap(expected)], 0).wait()
    wrong = (sizes != expected).any(axis=1)
    flags = np.zeros((process_group.size(), 1), np.int64)
    process_group.all_gather_single(wrap(flags), wrap(np.array([wrong.any()], np.int64))).wait()
    if wrong.any():
        i = int(wrong.argmax())
        raise RuntimeError(f"[{process_group.ranks[rank]}]: params[{i}] in this process with sizes "
                           f"{list(parameters[i].shape)} appears not to match sizes of the same param in "
                           f"process {first}.")
    if flags.any():
        raise RuntimeError(f"[{process_group.ranks[rank]}]: params on rank "
                           f"{process_group.ranks[int(flags.argmax())]} appear not to match sizes of the "
                           f"same param in process {first}.")


def broadcast_coalesced(process_group, tensors, buffer_size, src=0):
    """Copy `tensors` of group rank `src` to all ranks, in messages of about `buffer_size` bytes."""
    groups, _ = compute_bucket_assignment_by_size(tensors, [buffer_size]) if tensors else ([], [])
    works = []
    for indices in groups:
        flat = np.concatenate([tensors[i]._array.reshape(-1) for i in indices])
        works.append((indices, flat, process_group.broadcast([wrap(flat)], src)))
    for indices, flat, work in works:
        work.wait()
        begin = 0
        for i in indices:
            array = tensors[i]._array
            array[...] = flat[begin:begin + array.size].reshape(array.shape)
            begin += array.size

