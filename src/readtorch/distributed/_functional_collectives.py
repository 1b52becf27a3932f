"""Collectives that leave their input alone and return what came of it.

In PyTorch: `torch/distributed/_functional_collectives.py`, where they are operators whose results are waited for when they are
first used; here they are complete when they return.
"""

import readtorch
from readtorch.autograd.function import Function
from readtorch.csrc.distributed.types import ReduceOp

from . import distributed_c10d as c10d

_OPS = {
    "sum": ReduceOp.SUM,
    "avg": ReduceOp.AVG,
    "product": ReduceOp.PRODUCT,
    "min": ReduceOp.MIN,
    "max": ReduceOp.MAX,
    "band": ReduceOp.BAND,
    "bor": ReduceOp.BOR,
    "bxor": ReduceOp.BXOR,
}


def _group_of(group):
    """The process group that is meant: one, or a mesh of one dimension, or a mesh with a dimension of it."""
    if isinstance(group, tuple):
        mesh, dim = group
        return mesh.get_group(dim)
    return group.get_group() if hasattr(group, "get_group") else group


def _reduction(name):
    if name not in _OPS:
        raise ValueError(f"Invalid reduce operation {name}")
    return _OPS[name]


def all_reduce(tensor, reduceOp, group):
    """What all ranks' tensors are together."""
    group, result = _group_of(group), tensor.clone(memory_format=readtorch.contiguous_format)
    c10d.all_reduce(result, _reduction(reduceOp), group)
    return result


def all_gather_single(tensor, gather_dim, group):
    """All ranks' tensors, one behind the other along a dimension. They must have the same sizes."""
    group, tensor = _group_of(group), tensor.contiguous()
    result = tensor.new_empty((group.size(), *tensor.shape))
    c10d.all_gather_single(result.view(-1), tensor.view(-1), group)
    return readtorch.cat(result.unbind(), dim=gather_dim)


def reduce_scatter_single(tensor, reduceOp, scatter_dim, group):
    """This rank's part, along a dimension, of what all ranks' tensors are together. The dimension must be divisible."""
    group = _group_of(group)
    parts = readtorch.stack(tensor.chunk(group.size(), dim=scatter_dim))
    result = parts.new_empty(parts.shape[1:])
    c10d.reduce_scatter_single(result.view(-1), parts.view(-1), _reduction(reduceOp), group)
    return result


def all_to_all_single(tensor, output_split_sizes, input_split_sizes, group):
    """Rows of a tensor for each rank are given for rows from each rank."""
    group, tensor = _group_of(group), tensor.contiguous()
    rows = tensor.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    result = tensor.new_empty((rows, *tensor.shape[1:]))
    c10d.all_to_all_single(result, tensor, output_split_sizes, input_split_sizes, group)
    return result


def broadcast(tensor, src, group):
    """The tensor of global rank `src`."""
    result = tensor.clone(memory_format=readtorch.contiguous_format)
    c10d.broadcast(result, src, _group_of(group))
    return result


def wait_tensor(tensor):
    """The tensor itself: what a collective here returns is complete."""
    return tensor


class _AllToAllSingle(Function):
    @staticmethod
    def forward(ctx, tensor, output_split_sizes, input_split_sizes, group):
        ctx.splits_and_group = output_split_sizes, input_split_sizes, group
        return all_to_all_single(tensor, output_split_sizes, input_split_sizes, group)

    @staticmethod
    def backward(ctx, grad):
        given, taken, group = ctx.splits_and_group
        return all_to_all_single(grad, taken, given, group), None, None, None


def all_to_all_single_autograd(tensor, output_split_sizes, input_split_sizes, group):
    """`all_to_all_single` with a gradient, whose rows go back where they came from."""
    return _AllToAllSingle.apply(tensor, output_split_sizes, input_split_sizes, group)
