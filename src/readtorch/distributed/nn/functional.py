"""Collectives through which gradients flow. In PyTorch: `torch/distributed/nn/functional.py`.

What a collective does in backward is the collective of the gradients that its formula asks for: where each rank's sum reaches
all, the gradients of all are summed. group: None for all ranks. Left out: `reduce`, `reduce_scatter`, `gather`, `scatter`, `all_to_all`.
"""

import readtorch
from readtorch import distributed as dist
from readtorch.autograd.function import Function
from readtorch.csrc.distributed.types import ReduceOp

__all__ = ["all_gather", "all_reduce", "broadcast"]


def all_gather(tensor, group=None):
    """The tensors of all ranks, as a tuple."""
    return _AllGather.apply(group, tensor)


def all_reduce(tensor, op=ReduceOp.SUM, group=None):
    """The reduced tensor, on all ranks."""
    return _AllReduce.apply(op, group, tensor)


def broadcast(tensor, src, group=None):
    """The tensor of the rank `src`, on all ranks."""
    return _Broadcast.apply(src, group, tensor)


class _AllGather(Function):
    @staticmethod
    def forward(ctx, group, tensor):
        ctx.group = group
        gathered = [readtorch.empty_like(tensor) for _ in range(dist.get_world_size(group))]
        dist.all_gather(gathered, tensor.contiguous(), group=group)
        return tuple(gathered)

    @staticmethod
    def backward(ctx, *grads):
        """Each rank's tensor went to all: its gradient is the sum of what all have for it."""
        total = readtorch.stack([grad.contiguous() for grad in grads])
        dist.all_reduce(total, group=ctx.group)
        return None, total[dist.get_rank(ctx.group)]


class _AllReduce(Function):
    @staticmethod
    def forward(ctx, op, group, tensor):
        ctx.op, ctx.group = op, group
        tensor = tensor.clone(memory_format=readtorch.contiguous_format)
        dist.all_reduce(tensor, op=op, group=group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        """in PyTorch: the gradients are reduced by the same operation, too."""
        return None, None, _AllReduce.apply(ctx.op, ctx.group, grad)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx, src, group, tensor):
        ctx.src, ctx.group = src, group
        tensor = tensor.clone(memory_format=readtorch.contiguous_format)
        dist.broadcast(tensor, src, group=group)
        return tensor

    @staticmethod
    def backward(ctx, grad):
        """The sum for the rank that gave, zeros for the others."""
        grad = grad.clone(memory_format=readtorch.contiguous_format)
        dist.all_reduce(grad, group=ctx.group)
        return None, None, grad if dist.get_rank() == ctx.src else readtorch.zeros_like(grad)
