"""Collective steps that fail on all ranks or on none; looking things up. In PyTorch: `torch/distributed/checkpoint/utils.py`."""

import io
import os

from readtorch import Tensor
from readtorch import distributed as dist
from readtorch.distributed.tensor import DTensor

from .api import CheckpointException, _is_wrapped_exception, _wrap_exception

__all__ = ["find_state_dict_object", "find_tensor_shard"]


class _DistWrapper:
    """A group of ranks, or this process alone, that does a step together.

    A step is a function that every rank calls (`map_fun`) and one that the coordinator calls with all results. Exceptions
    are results, too: if there is one, all ranks raise CheckpointException, and none waits for a rank that will not come.
    """

    def __init__(self, group, use_dist, coordinator_rank):
        self.group = group
        self.use_dist = use_dist
        self.coordinator_rank = coordinator_rank
        self.rank = dist.get_rank(group) if use_dist else 0
        self.is_coordinator = not use_dist or self.rank == coordinator_rank

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return dist.get_world_size(self.group) if self.use_dist else 1

    def gather_object(self, object):
        """The objects of all ranks, on the coordinator; None elsewhere."""
        if not self.use_dist:
            return [object]
        gathered = [None] * self.get_world_size() if self.is_coordinator else None
        dist.gather_object(object, gathered, group=self.group, group_dst=self.coordinator_rank)
        return gathered

    def all_gather_object(self, object):
        if not self.use_dist:
            return [object]
        gathered = [None] * self.get_world_size()
        dist.all_gather_object(gathered, object, group=self.group)
        return gathered

    def scatter_object(self, object_list):
        """This rank's of the coordinator's list."""
        if not self.use_dist:
            return object_list[0]
        mine = [None]
        dist.scatter_object_list(mine, object_list, group=self.group, group_src=self.coordinator_rank)
        return mine[0]

    def broadcast_object(self, object):
        """The coordinator's object."""
        objects = [object]
        if self.use_dist:
            dist.broadcast_object_list(objects, group=self.group, group_src=self.coordinator_rank)
        return objects[0]

    def reduce_scatter(self, step, map_fun, reduce_fun):
        """`reduce_fun` makes of all results a list with one for each rank."""
        everyones = self.gather_object(_result_or_error(map_fun))
        results = None
        if self.is_coordinator:
            results = self._reduced(step, everyones, reduce_fun)
            if isinstance(results, CheckpointException):
                results = [results] * self.get_world_size()
        return _raised(self.scatter_object(results))

    def all_reduce(self, step, map_fun, reduce_fun):
        """`reduce_fun` makes of all results one for all."""
        everyones = self.gather_object(_result_or_error(map_fun))
        result = self._reduced(step, everyones, reduce_fun) if self.is_coordinator else None
        return _raised(self.broadcast_object(result))

    def _reduced(self, step, results, reduce_fun):
        failures = _get_failure_dict(results)
        if not failures:
            try:
                return reduce_fun(results)
            except BaseException as error:
                failures[self.rank] = _wrap_exception(error)
        return CheckpointException(step, failures)

    def all_gather(self, step, map_fun):
        """All results, on every rank."""
        results = self.all_gather_object(_result_or_error(map_fun))
        if failures := _get_failure_dict(results):
            raise CheckpointException(step, failures)
        return results

    def broadcast(self, step, map_fun):
        """The coordinator's result; the others do not call `map_fun`."""
        result = None
        if self.is_coordinator:
            result = _result_or_error(map_fun)
            if _is_wrapped_exception(result):
                result = CheckpointException(step, {self.rank: result})
        return _raised(self.broadcast_object(result))

    def barrier(self):
        if self.use_dist:
            dist.barrier(group=self.group)


def _result_or_error(fun):
    try:
        return fun()
    except BaseException as error:
        return _wrap_exception(error)


def _raised(result):
    if isinstance(result, CheckpointException):
        raise result
    return result


def _get_failure_dict(results):
    return {rank: result for rank, result in enumerate(results) if _is_wrapped_exception(result)}


# ------------------------------------------------------------------------------------------------- looking up


def find_tensor_shard(tensor, index):
    """The box of a tensor that `index` names: of a DTensor the part of this rank."""
    if hasattr(tensor, "__get_tensor_shard__"):
        return tensor.__get_tensor_shard__(index)
    if isinstance(tensor, DTensor):
        return tensor._local_tensor
    if index.offset is not None and any(index.offset):
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return tensor


def find_state_dict_object(state_dict, index):
    """The entry of a flat state_dict that `index` names."""
    if index.fqn not in state_dict:
        raise ValueError(f"Could not find FQN: '{index.fqn}'")
    obj = state_dict[index.fqn]
    if isinstance(obj, Tensor):
        return find_tensor_shard(obj, index)
    if index.offset is not None:
        raise ValueError(f"FQN: '{index.fqn}' is not a ShardedTensor, can't find by offset: '{index.offset}'")
    return obj


def narrow_tensor_by_index(tensor, offsets, sizes):
    """The box of `tensor` that begins at `offsets`: a view."""
    for dim, (offset, size) in enumerate(zip(offsets, sizes)):
        if size < tensor.size(dim):
            tensor = tensor.narrow(dim, offset, size)
    return tensor


def _all_gather_keys(local_dict, group=None):
    keys = [None] * dist.get_world_size(group)
    dist.all_gather_object(keys, list(local_dict), group=group)
    return {key for some in keys for key in some}


def _assert_same_keys(state_dict, process_group=None):
    """AssertionError if another rank has a key that this one lacks."""
    if dist.get_world_size(process_group) > 1:
        if missing := _all_gather_keys(state_dict, process_group) - state_dict.keys():
            raise AssertionError(f"Key(s) present in other ranks but not this one, difference: {missing}")


class _ReaderView(io.IOBase):
    """A part of a file, as a file."""

    def __init__(self, base_stream, offset, length):
        super().__init__()
        self.base_stream = base_stream
        self.offset = offset
        self.len = length
        self.seek(0)

    def seek(self, offset, whence=os.SEEK_SET, /):
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self.tell(), os.SEEK_END: self.len}[whence]
        return self.base_stream.seek(self.offset + start + offset) - self.offset

    def tell(self):
        return self.base_stream.tell() - self.offset

    def readable(self):
        return True

    def seekable(self):
        return True

    def read(self, size=-1):
        rest = max(self.len - self.tell(), 0)
        return self.base_stream.read(rest if size is None or size < 0 else min(size, rest))

    def readinto(self, buffer):
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _create_file_view(file, offset, length):
    return _ReaderView(file, offset, length)
