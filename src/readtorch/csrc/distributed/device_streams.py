"""Collectives on simulated devices take their time on a stream of each rank's device.

Note [ A collective on streams ]

With NCCL a collective is a kernel on each rank's current stream: it begins when all ranks' streams have come to it, and ends
on all at once; the host goes on. On simulated devices the data is there at once and the time is virtual: the streams of all
ranks are busy from the moment when the last one is free, for as long as the cost model says. It needs devices that one
process simulates, each the device of a rank that is a thread, and a cost model (`readtorch.cuda.simulate(costs=…)`).

A group has one communicator, and a communicator does one collective at a time, in the order in which the host asked: those of
one group wait for each other on whatever streams they are, those of two groups do not.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp`.
"""

from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_stream import current_stream
from readtorch.c10.dispatch_key import SIMULATED_CUDA


def stream_of(tensors):
    """(device, stream) on which this thread would launch a kernel for the tensors; None if they are not on a simulated device."""
    if not tensors or not tensors[0]._keys & SIMULATED_CUDA:
        return None
    index = tensors[0].device.index
    return index, current_stream(index).handle


def occupy_streams(calls, group):
    """Let a collective of all ranks of a GroupState take its time, which each of `calls` is a rank's part of."""
    places = [call.stream for call in calls]
    if None in places or (driver := runtime.driver()).costs is None:
        return
    call = calls[0]
    array = call.target if call.source is None else call.source
    duration = driver.costs.collective(call.name, 0 if array is None else array.nbytes, len(calls))
    group.free_at = driver.streams.occupy_together(places, duration, call.name, group.free_at)
