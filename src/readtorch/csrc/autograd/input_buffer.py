"""Where the gradients for one node wait until all have arrived: one entry for each input, sums where several arrive.

In PyTorch: `torch/csrc/autograd/input_buffer.cpp`. Explained in the chapter "Autograd".
"""

from sys import getrefcount

import numpy as np

from readtorch.c10.cuda.cuda_stream import StreamGuard, current_stream, default_stream, stream_wait_stream
from readtorch.c10.dispatch_key import CPU_TENSOR, GPUS, GRAD_FACTS, SPARSE
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, tls


def add(buffer, count, pos, var):
    """`buffer`, a tuple of `count` entries (None: all are empty), with `var` added to the entry at `pos`."""
    if var is None:
        return (None,) * count if buffer is None else buffer
    if count == 1:
        return (var,) if buffer is None or buffer[0] is None else (accumulate(buffer, 0, var),)
    entries = [None] * count if buffer is None else list(buffer)
    entries[pos] = var if entries[pos] is None else accumulate(entries, pos, var)
    return tuple(entries)


def accumulate(buffer, pos, var):
    """The sum of entry `pos` and `var`. It takes the memory of that entry if nobody else can see it."""
    old = buffer[pos]
    if (
        old._keys == CPU_TENSOR == var._keys
        and getrefcount(old) <= REFERENCES
        and can_accumulate_inplace(old._array, old)
    ):
        np.add(old._array, var._array, old._array)
        old._counter[0] += 1
        return old
    # A dense tensor takes a sparse one, but not the other way round.
    return var + old if old._keys & SPARSE else old + var


REFERENCES = 3  # what `accumulate` sees of an entry: the buffer's reference, its own, and getrefcount's
UNSEEN = DEFAULT_MASK & ~GRAD_FACTS  # the mask of a thread that records nothing and has no modes, traces or observers


def can_accumulate_inplace(array, old):
    """Whether `old`, which nothing but the engine refers to, owns its memory alone, and nothing and nobody sees the write."""
    return array.base is None and old._storage_impl is None and getrefcount(array) <= 3 and tls.mask == UNSEEN


# ------------------------------------------------------------------------------------------------------------- streams


def add_on_stream(buffer, count, pos, var, producer, consumer):
    """The same on the right stream: `producer` is that of the node that made `var`, `consumer` that of the one that gets it.

    Either may be None, for a node of the CPU, or of another device than `var`. Then the device's default stream stands for it.
    """
    if var is None or not var._keys & GPUS:
        return add(buffer, count, pos, var)
    index = device_index(var)
    default = default_stream(index)
    on_producer = producer if producer is not None and producer.device_index == index else default
    on_consumer = consumer if consumer is not None and consumer.device_index == index else default
    if on_producer != on_consumer:
        stream_wait_stream(on_consumer, on_producer)
        record_stream(var, on_consumer)
    with StreamGuard(on_consumer):
        return add(buffer, count, pos, var)


def wait_for(stream, inputs):
    """The root's stream waits for the gradients that the caller has made on streams of its own."""
    for var in inputs:
        if var is not None and var._keys & GPUS:
            made_on = current_stream(device_index(var))
            if made_on != stream:
                stream_wait_stream(stream, made_on)
                record_stream(var, stream)


def device_index(var):
    return var._storage_impl.device.index


def record_stream(var, stream):
    """Its memory may not be given away before `stream` has done what was put on it until then."""
    memory = var._storage_impl.memory
    if memory is not None:
        memory.allocator.record_stream(memory.block, stream.handle)
