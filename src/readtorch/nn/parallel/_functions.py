"""What `comm` does, as functions with a derivative: each is the other's backward.

The gradient of a broadcast is a sum over devices, that of a scatter is a gather. In PyTorch:
`torch/nn/parallel/_functions.py`. Explained in the chapter "DataParallel".
"""

import itertools
import warnings

import readtorch
from readtorch.autograd import Function
from readtorch.cuda._utils import _get_device_index

from . import comm


class Broadcast(Function):
    """Copies of `inputs` on each of `target_gpus`: all of the first device, then all of the second …"""

    @staticmethod
    def forward(ctx, target_gpus, *inputs):
        if not all(i.device.type != "cpu" for i in inputs):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        ctx.target_gpus = [_get_device_index(x, True) for x in target_gpus]
        if not inputs:
            return ()
        ctx.num_inputs = len(inputs)
        ctx.input_device = inputs[0].get_device()
        outputs = comm.broadcast_coalesced(inputs, ctx.target_gpus)
        without_grad = [i for i, needed in enumerate(ctx.needs_input_grad[1:]) if not needed]
        ctx.mark_non_differentiable(*[copies[i] for i in without_grad for copies in outputs])
        return tuple(itertools.chain.from_iterable(outputs))

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ReduceAddCoalesced.apply(ctx.input_device, ctx.num_inputs, *grads))


class ReduceAddCoalesced(Function):
    """Sums over devices. `grads`: all `num_inputs` tensors of the first device, then all of the second …"""

    @staticmethod
    def forward(ctx, destination, num_inputs, *grads):
        ctx.target_gpus = [grads[i].get_device() for i in range(0, len(grads), num_inputs)]
        devices = [grads[i : i + num_inputs] for i in range(0, len(grads), num_inputs)]
        return comm.reduce_add_coalesced(devices, destination)

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *Broadcast.apply(ctx.target_gpus, *grads))


class Scatter(Function):
    """Parts of `input` along `dim`, one per device; copies from the host go on streams of their own."""

    @staticmethod
    def forward(ctx, target_gpus, chunk_sizes, dim, input):
        target_gpus = [_get_device_index(x, True) for x in target_gpus]
        ctx.dim = dim
        ctx.input_device = input.get_device()
        from_host = ctx.input_device == -1
        streams = [_get_stream(index) for index in target_gpus] if from_host else None
        outputs = comm.scatter(input, target_gpus, chunk_sizes, dim, streams)
        if from_host:
            for output, stream in zip(outputs, streams):
                with readtorch.cuda.device(output.get_device()):
                    main = readtorch.cuda.current_stream()
                    main.wait_stream(stream)
                    output.record_stream(main)  # its memory belongs to the copying stream
        return outputs

    @staticmethod
    def backward(ctx, *grads):
        return None, None, None, Gather.apply(_where(ctx.input_device), ctx.dim, *grads)


class Gather(Function):
    """The inputs one after the other along `dim`, on `target_device` ("cpu" or a device's number)."""

    @staticmethod
    def forward(ctx, target_device, dim, *inputs):
        if not all(i.device.type != "cpu" for i in inputs):
            raise AssertionError("Gather function not implemented for CPU tensors")
        ctx.target_device = target_device if target_device == "cpu" else _get_device_index(target_device, True, True)
        ctx.dim = dim
        ctx.input_gpus = tuple([i.get_device() for i in inputs])
        ctx.unsqueezed_scalar = dim == 0 and all(t.dim() == 0 for t in inputs)
        if ctx.unsqueezed_scalar:
            inputs = tuple([t.view(1) for t in inputs])
            warnings.warn(
                "Was asked to gather along dimension 0, but all input tensors were scalars; will instead "
                "unsqueeze and return a vector.",
                stacklevel=2,
            )
        ctx.input_sizes = tuple([i.size(dim) for i in inputs])
        return comm.gather(inputs, dim, ctx.target_device)

    @staticmethod
    def backward(ctx, grad):
        grads = Scatter.apply(ctx.input_gpus, ctx.input_sizes, ctx.dim, grad)
        return (None, None, *([g[0] for g in grads] if ctx.unsqueezed_scalar else grads))


def _where(index):
    return "cpu" if index == -1 else index


_streams = {}  # device index -> the stream that copies from the host


def _get_stream(index):
    if index == -1:
        return None
    stream = _streams.get(index)
    if stream is None or not stream.is_of_current_driver():
        stream = _streams[index] = readtorch.cuda.Stream(index)
    return stream
