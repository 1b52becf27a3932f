"""Collectives of any Python objects: pickled into tensors of bytes. In PyTorch:
`torch/distributed/distributed_c10d.py`.

Pickles can run code when they are read, so these are only for ranks that have shown one another that they
know the group's secret: see Note [ The secret of a group ] in `csrc/distributed/authentication.py`. In
PyTorch: for any.
"""
import pickle

import readtorch
from readtorch.csrc.distributed.authentication import VARIABLE
from readtorch.distributed.collectives import all_gather, broadcast, gather, scatter
from readtorch.distributed.distributed_c10d import (_canonicalize_group_rank, _group_or_default_group,
                                                    _rank_not_in_group,
                                                    _warn_not_in_group, get_global_rank, get_world_size)
from readtorch.distributed.point_to_point import _check_not_self_rank, recv, send

__all__ = ["all_gather_object", "broadcast_object_list", "gather_object", "recv_object_list",
           "scatter_object_list",
           "send_object_list"]


def all_gather_object(object_list, obj, group=None):
    """Put the `obj` of every rank into `object_list` (as long as there are ranks), on all ranks."""
    if _rank_not_in_group(group):
        return _warn_not_in_group("all_gather_object")
    _check_peers(group)
    data, size = _object_to_tensor(obj)
    sizes = _all_sizes(size, group)
    parts = [_bytes(max(sizes)) for _ in sizes]
    all_gather(parts, _padded(data, max(sizes)), group=group)
    object_list[:len(sizes)] = [_tensor_to_object(part, n) for part, n in zip(parts, sizes)]
    return None


def gather_object(obj, object_gather_list=None, dst=None, group=None, group_dst=None):
    """Put the `obj` of every rank into `object_gather_list` on rank `dst` (0 by default)."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("gather_object")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if dst is None and group_dst is None else dst, group_dst)
    at_root = group.rank() == root
    if at_root != bool(object_gather_list):
        raise ValueError("Argument ``gather_list`` must be specified on destination rank." if at_root else
                         "Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    data, size = _object_to_tensor(obj)
    sizes = _all_sizes(size, group)
    parts = [_bytes(max(sizes)) for _ in sizes] if at_root else None
    gather(_padded(data, max(sizes)), parts, group=group, group_dst=root)
    if at_root:
        object_gather_list[:len(sizes)] = [_tensor_to_object(part, n) for part, n in zip(parts, sizes)]
    return None


def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
    """Replace the objects of the list on every rank by those on rank `src` (0 by default). Equally long on
    all.
    """
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("broadcast_object_list")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    data, sizes = _pack(object_list) if group.rank() == root else (None, _sizes(len(object_list)))
    broadcast(sizes, group=group, group_src=root)
    if group.rank() != root:
        data = _bytes(int(sizes.sum()))
    broadcast(data, group=group, group_src=root)
    if group.rank() != root:
        _unpack(object_list, data, sizes)
    return None


def scatter_object_list(scatter_object_output_list, scatter_object_input_list=None, src=None, group=None,
                        group_src=None):
    """Put the i-th object of the input list on rank `src` (0 by default) into the output list [0] of rank i.
    """
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("scatter_object_list")
    _check_peers(group)
    root = _canonicalize_group_rank(group, 0 if src is None and group_src is None else src, group_src)
    if not isinstance(scatter_object_output_list, list) or len(scatter_object_output_list) < 1:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    parts = sizes = None
    longest, size = _sizes(1), _sizes(1)
    if group.rank() == root:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        parts, sizes = map(list, zip(*[_object_to_tensor(obj) for obj in scatter_object_input_list]))
        longest = max(sizes, key=int).clone()
        parts = [_padded(part, int(longest)) for part in parts]
    broadcast(longest, group=group, group_src=root)
    data = _bytes(int(longest))
    scatter(data, parts, group=group, group_src=root)
    scatter(size, sizes, group=group, group_src=root)
    scatter_object_output_list[0] = _tensor_to_object(data, int(size))
    return None


def send_object_list(object_list, dst=None, group=None, device=None, group_dst=None, use_batch=False):
    """Send the objects of a list to rank `dst`."""
    group = _group_or_default_group(group)
    if _rank_not_in_group(group):
        return _warn_not_in_group("send_object_list")
    _check_peers(group)
    to = _canonicalize_group_rank(group, dst, group_dst)
    _check_not_self_rank(group, to, "destination")
    data, sizes = _pack(object_list)
    send(sizes, group=group, group_dst=to)
    send(data, group=group, group_dst=to)
    return None


def recv_object_list(object_list, src=None, group=None, device=None, group_src=None, use_batch=False):
    """Receive as many objects as the list is long from rank `src` (None: whichever sends); returns the
    sender.
    """
    if _rank_not_in_group(group):
        _warn_not_in_group("recv_object_list")
        return -1
    _check_peers(group)
    group, sizes = _group_or_default_group(group), _sizes(len(object_list))
    sender = recv(sizes, src=src, group=group, group_src=group_src)
    data = _bytes(int(sizes.sum()))
    second = recv(data, src=sender, group=group)
    if sender != second:
        raise RuntimeError("Mismatch in return ranks for object sizes and objects.")
    _unpack(object_list, data, sizes)
    return get_global_rank(group, group.ranks.index(sender))


# ------------------------------------------------------------------------- objects as bytes

def _check_peers(group):
    """RuntimeError in a group whose ranks could be strangers."""
    if not _group_or_default_group(group).knows_its_peers:
        raise RuntimeError(
            "Objects travel as pickles, which can run code, and this group has no secret by which its ranks "
            f"know one another. Set {VARIABLE} to the same text of at least 32 random characters for all "
            "ranks, or start them with readtorchrun")


def _object_to_tensor(obj):
    """(pickled bytes, a tensor with their number)"""
    data = readtorch.frombuffer(bytearray(pickle.dumps(obj)), dtype=readtorch.uint8)
    return data, readtorch.tensor([data.numel()])


def _tensor_to_object(tensor, size):
    return pickle.loads(tensor[:size].numpy().tobytes())


def _pack(objects):
    parts, sizes = zip(*[_object_to_tensor(obj) for obj in objects])
    return readtorch.cat(parts), readtorch.cat(sizes)


def _unpack(object_list, data, sizes):
    for i, part in enumerate(data.split(sizes.tolist())):
        object_list[i] = _tensor_to_object(part, part.numel())


def _padded(data, length):
    return readtorch.cat([data, _bytes(length - data.numel())])


def _all_sizes(size, group):
    sizes = [_sizes(1) for _ in range(get_world_size(group))]
    all_gather(sizes, size, group=group)
    return [int(n) for n in sizes]


def _bytes(count):
    return readtorch.zeros(count, dtype=readtorch.uint8)


def _sizes(count):
    return readtorch.zeros(count, dtype=readtorch.int64)
