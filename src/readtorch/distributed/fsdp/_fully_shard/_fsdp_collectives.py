"""The all-gather and the reduce-scatter of a group of parameters.

In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_collectives.py`.

Note [ One collective for many parameters ]

A message costs much, so all parameters of a group travel in one. Before an all-gather each rank lays its shards one behind
the other (copy in); afterwards there stand, rank by rank, all shards of rank 0, all of rank 1 and so on, and each parameter
is picked together from them (copy out). For the reduce-scatter it is the other way round: for each rank in turn its part of
all gradients.
"""

from typing import Any, NamedTuple

import readtorch
from readtorch import Tensor
from readtorch import distributed as dist
from readtorch.autograd import _unsafe_preserve_version_counter
from readtorch.distributed.device_mesh import _get_device_handle

from ._fsdp_api import AllGather, ReduceScatter
from ._fsdp_common import _get_dim0_padded_size, _to_dtype_if_needed
from ._fsdp_param import ShardedState


class AllGatherResult(NamedTuple):
    """An all-gather that is under way: where it writes, when it is over, and how long each shard is."""

    all_gather_output: Tensor
    all_gather_event: Any
    all_gather_work: Any
    all_gather_input_split_sizes: list


class DefaultAllocMixin:
    """Buffers are new tensors."""

    def allocate(self, size, *, dtype, device):
        return readtorch.empty(*size, dtype=dtype, device=device)


class DefaultAllGather(DefaultAllocMixin, AllGather):
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        return dist.all_gather_single(output_tensor, input_tensor, group=group, async_op=async_op)


class DefaultReduceScatter(DefaultAllocMixin, ReduceScatter):
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        return dist.reduce_scatter_single(output_tensor, input_tensor, op=op, group=group, async_op=async_op)


@readtorch.no_grad()
def foreach_all_gather(fsdp_params, group, async_op, copy_in_stream, all_gather_stream, device, all_gather_comm):
    """Begin to gather the whole parameters: copy in on one stream, the collective on another."""
    handle = _get_device_handle(device.type)
    with handle.stream(copy_in_stream):
        inputs = [param.all_gather_input for param in fsdp_params]
        if len({tensor.dtype for tensor in inputs}) > 1:
            raise NotImplementedError("readtorch gathers parameters of one dtype together: shard them in several calls")
        sizes = [tensor.numel() for tensor in inputs]
        output = all_gather_comm.allocate((sum(sizes) * group.size(),), dtype=inputs[0].dtype, device=device)
        mine = output.narrow(0, sum(sizes) * group.rank(), sum(sizes))
        readtorch._foreach_copy_(readtorch.split(mine, sizes), inputs)
    all_gather_stream.wait_stream(copy_in_stream)
    with handle.stream(all_gather_stream):
        work = all_gather_comm(output_tensor=output, input_tensor=mine, group=group, async_op=async_op)
        return AllGatherResult(output, all_gather_stream.record_event(), work, sizes)


@readtorch.no_grad()
def foreach_all_gather_copy_out(result, fsdp_params, group):
    """Wait for an all-gather and pick the parameters together, on the current stream."""
    output, event, work, sizes = result
    handle = _get_device_handle(output.device.type)
    if event is not None:
        handle.current_stream().wait_event(event)
    if work is not None:
        work.wait()
    count = group.size()
    parts = output.view(count, -1).split(sizes, dim=1)
    for param, part in zip(fsdp_params, parts):
        param.alloc_all_gather_output(part.numel())
        with _unsafe_preserve_version_counter(param.all_gather_output):
            _copy_out(param, part, count)


def _copy_out(param, part, count):
    dim = param.fsdp_placement.dim
    if dim == 0 or param.sharded_state is ShardedState.SHARDED_POST_FORWARD:
        param.all_gather_output.view(count, -1).copy_(part)
        return
    shards = part.reshape(count, *param.padded_sharded_param_size).unbind()
    whole = param.all_gather_output.view(param._orig_size)
    readtorch.cat(shards, dim=dim, out=whole)


class ReduceResult(NamedTuple):
    """A reduction that is under way: its input, which must stay until then, and when it is over."""

    reduce_scatter_input: Tensor
    reduce_scatter_event: Any
    post_reduce_event: Any
    partial_reduce_output: Tensor | None


@readtorch.no_grad()
def foreach_reduce(fsdp_params, unsharded_grads, group, all_reduce_grads, partial_reduce_output):
    """Begin to reduce gradients: each rank gets the mean of its part, as the gradient of its shard.

    group: the FSDPParamGroup, with its meshes, streams and dtypes. The list of gradients is emptied, so that they are freed.
    partial_reduce_output: with copies of the model (HSDP), what earlier backward passes have left for one all-reduce.
    """
    world, streams = group._reduce_scatter_process_group, group.comm_ctx
    handle = _get_device_handle(group.device.type)
    grads = [_dim_first(param, grad, world.size()) for param, grad in zip(fsdp_params, unsharded_grads)]
    unsharded_grads.clear()
    if len({grad.dtype for grad in grads}) != 1:
        raise AssertionError(f"FSDP reduce-scatter expects uniform gradient dtype but got {[g.dtype for g in grads]}")
    dtype = group._reduce_dtype or grads[0].dtype
    padded = [_get_dim0_padded_size(grad.size(), world.size()) for grad in grads]
    sent = group._reduce_scatter_comm.allocate(
        (sum(size.numel() for size in padded),), dtype=dtype, device=group.device
    )
    _copy_in(grads, padded, sent.view(world.size(), -1))
    del grads
    stream = streams.reduce_scatter_stream
    stream.wait_stream(handle.current_stream())
    with handle.stream(stream):
        before, scale, op = _get_gradient_divide_factors(group, dtype)
        output = _reduce_scatter(sent, world, group, before, op)
        scattered = stream.record_event()
        if group._is_hsdp:
            if not all_reduce_grads:
                partial = output if partial_reduce_output is None else partial_reduce_output.add_(output)
                return ReduceResult(sent, scattered, stream.record_event(), partial)
            output = output if partial_reduce_output is None else output.add_(partial_reduce_output)
    last = _after_the_scatter(output, group, stream, handle, op)
    with handle.stream(last):
        if scale != 1:
            output.div_(scale)
        _give_out(fsdp_params, padded, _to_dtype_if_needed(output, group._orig_dtype), world.size(), last)
        return ReduceResult(sent, scattered, last.record_event(), None)


def _dim_first(param, grad, count):
    """A gradient laid out so that the ranks' parts stand one behind the other along the first dimension."""
    dim = param.fsdp_placement.dim
    return grad if dim == 0 else readtorch.cat(grad.chunk(count, dim=dim))


def _copy_in(grads, padded, rows):
    """Row i is what rank i will get of each gradient: Note [ One collective for many parameters ]."""
    start = 0
    for grad, size in zip(grads, padded):
        length = size.numel() // rows.size(0)
        target = rows.narrow(1, start, length)
        if grad.size() == size:
            target.copy_(grad.reshape(rows.size(0), -1))
        else:
            target.zero_()
            flat, whole = grad.reshape(-1), grad.numel() // length
            target[:whole].copy_(flat[: whole * length].view(whole, length))
            if rest := grad.numel() - whole * length:
                target[whole, :rest].copy_(flat[whole * length :])
        start += length


def _get_gradient_divide_factors(group, dtype):
    """(what gradients are divided by before the reduction, what after it, the reduction).

    Averages of float16 could overflow as sums first, so they are divided by about the root of N before and again after. in PyTorch: a
    factor of one's own is a PREMUL_SUM, which only NCCL has.
    """
    ranks, factor = group.mesh_info.shard_mesh_size, group.gradient_divide_factor
    if group._is_hsdp:
        ranks *= group.mesh_info.replicate_mesh_size
    overflow_risk = dtype not in (readtorch.float32, readtorch.bfloat16)
    if factor is None and ranks > 1 and not overflow_risk and not group.force_sum_reduction_for_comms:
        return 1, 1, dist.ReduceOp.AVG
    factor, before = float(ranks) if factor is None else factor, 1
    while overflow_risk and factor % before == 0 and factor / before > before:
        before *= 2
    return before, factor / before, dist.ReduceOp.SUM


def _reduce_scatter(sent, world, group, before, op):
    """This rank's part of all gradients."""
    output = group._reduce_scatter_comm.allocate((sent.numel() // world.size(),), dtype=sent.dtype, device=sent.device)
    if before != 1:
        sent.div_(before)
    group._reduce_scatter_comm(output_tensor=output, input_tensor=sent, group=world, op=op)
    return output


def _after_the_scatter(output, group, stream, handle, op):
    """Add the parts of all copies of the model, and do what the program has asked for; returns the stream on which the result is."""
    last, hook = stream, group._all_reduce_hook
    if group._is_hsdp:
        last = group.comm_ctx.all_reduce_stream
        last.wait_stream(stream)
        with handle.stream(last):
            dist.all_reduce(output, group=group.mesh_info.replicate_process_group, op=op)
    if hook is not None:
        last = group._all_reduce_hook_stream or group.comm_ctx.all_reduce_stream
        last.wait_stream(stream)
        with handle.stream(last):
            hook(output)
    return last


def _give_out(fsdp_params, padded, output, count, stream):
    """Let each shard have its gradient: a view of the one tensor, or what it had plus that."""
    start = 0
    for param, size in zip(fsdp_params, padded):
        length = size.numel() // count
        grad = output.narrow(0, start, param.sharded_size.numel()).view(param.sharded_size)
        start += length
        shard = param.sharded_param
        if param.offload_to_cpu:
            waits = not param.pin_memory or shard.grad is not None
            grad = grad.to("cpu", non_blocking=not waits)
            param.grad_offload_event = None if waits else stream.record_event()
        if shard.grad is not None:
            shard.grad._local_tensor += grad
        else:
            shard.grad = param.to_sharded_dtensor(grad)
        for hook in (getattr(shard, "_post_accumulate_grad_hooks", None) or {}).values():
            hook(shard)
