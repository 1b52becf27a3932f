"""Hooks for `DistributedDataParallel.register_comm_hook`: each returns a Future of the averaged buffer.

In PyTorch: `torch/distributed/algorithms/ddp_comm_hooks/default_hooks.py`. state: a process group, or None
for all ranks.
"""

import readtorch
from readtorch import distributed as dist

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]


def allreduce_hook(process_group, bucket):
    """Divide by the number of ranks and sum: what happens without a hook."""
    return _average(process_group, bucket.buffer())


def fp16_compress_hook(process_group, bucket):
    """Send the gradients as float16: half the bytes of float32, and rounded."""
    return _compressed_average(process_group, bucket, readtorch.float16)


def bf16_compress_hook(process_group, bucket):
    """Send the gradients as bfloat16."""
    return _compressed_average(process_group, bucket, readtorch.bfloat16)


def fp16_compress_wrapper(hook):
    """`hook` on buffers of float16."""
    return _compress_wrapper(hook, readtorch.float16)


def bf16_compress_wrapper(hook):
    """`hook` on buffers of bfloat16."""
    return _compress_wrapper(hook, readtorch.bfloat16)


def _average(process_group, tensor):
    group = dist.group.WORLD if process_group is None else process_group
    tensor.div_(group.size())
    return dist.all_reduce(tensor, group=group, async_op=True).get_future().then(lambda done: done.value()[0])


def _compressed_average(process_group, bucket, dtype):
    return _decompressed(_average(process_group, bucket.buffer().to(dtype)), bucket.buffer())


def _decompressed(future, buffer):
    """A Future of `buffer`, filled from the narrower tensor that `future` brings."""

    def fill(done):
        value = done.value()
        return buffer.copy_(value[0] if isinstance(value, list) else value)

    return future.then(fill)


def _compress_wrapper(hook, dtype):
    def wrapped(state, bucket):
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return _decompressed(hook(state, bucket), buffer)

    return wrapped
