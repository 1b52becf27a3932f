"""Pieces of `DistributedDataParallel`. In PyTorch: `torch/nn/parallel/distributed.py`."""
import dataclasses
import itertools
import time

import readtorch
from readtorch.autograd import Function, Variable
from readtorch.nn.parameter import UninitializedParameter
from readtorch.utils._pytree import tree_map


class DDPSink(Function):
    """The identity on outputs. Its backward runs first of all: a place to ask for a callback at the end."""

    @staticmethod
    def forward(ctx, ddp, *outputs):
        ctx.set_materialize_grads(False)  # an output that the loss does not use keeps the gradient None
        ctx.ddp = ddp
        return tuple([o.clone() if isinstance(o, readtorch.Tensor) else o for o in outputs])

    @staticmethod
    def backward(ctx, *grads):
        ddp = ctx.ddp()
        if ddp.static_graph and not ddp._static_graph_delay_allreduce_enqueued:
            Variable._execution_engine.queue_callback(ddp.reducer.delay_all_reduce)
            ddp._static_graph_delay_allreduce_enqueued = True
        return (None, *grads)


def check_module(parameters, device_ids, output_device):
    """RuntimeError or ValueError unless these parameters can be trained, with `device_ids`."""
    if not any(p.requires_grad for p in parameters):
        raise RuntimeError("DistributedDataParallel is not needed when a module doesn't have any parameter "
                           "that requires a gradient.")
    if device_ids is not None and len(device_ids) > 1:
        raise ValueError("device_ids can only be None or contain a single element.")
    types = {p.device.type for p in parameters}
    if len(types) != 1:
        raise ValueError("DistributedDataParallel's input module must be on the same type of devices, but "
                         "input "
                         f"module parameters locate in {types}.")
    devices = {p.device for p in parameters}
    if (types == {"cpu"} or len(devices) > 1) and (device_ids or output_device):
        raise ValueError("DistributedDataParallel device_ids and output_device arguments only work with "
                         "single-device/multiple-device GPU modules or CPU modules, but got device_ids "
                         f"{device_ids}, output_device {output_device}, and module parameters {devices}.")
    if any(isinstance(p, UninitializedParameter) for p in parameters):
        raise RuntimeError("Modules with uninitialized parameters can't be used with "
                           "`DistributedDataParallel`. Run a dummy forward pass to correctly initialize the "
                           "modules")


def index_of(device):
    """The number of a device that is given as a number, a string or a device."""
    return device if isinstance(device, int) else readtorch.device(device).index


def on_device(nest, device):
    """The nest with all its tensors moved to `device`."""
    return tree_map(lambda leaf: leaf.to(device) if isinstance(leaf, readtorch.Tensor) else leaf, nest)


def find_tensors(obj):
    """All tensors in lists, tuples, dicts and dataclasses, however deep."""
    if isinstance(obj, readtorch.Tensor):
        return [obj]
    if isinstance(obj, list | tuple):
        parts = obj
    elif isinstance(obj, dict):
        parts = obj.values()
    elif dataclasses.is_dataclass(obj):
        parts = [getattr(obj, field.name) for field in dataclasses.fields(obj)]
    else:
        parts = ()
    return itertools.chain.from_iterable(map(find_tensors, parts))


def note_backward(recording, output):
    """In the timeline: backward begins when a gradient reaches the output, and ends when the reducer is told
    so.
    """
    tensor = next((t for t in find_tensors(output) if t.requires_grad), None)
    if tensor is None:
        return

    def begins(_):
        begin = time.perf_counter()
        Variable._execution_engine.queue_callback(lambda: recording.add_span("compute", "backward", begin,
                                                                             end_of()))

    def end_of():
        return next((i["at"] for i in reversed(recording.instants) if i["name"] == "backward is over"),
                    time.perf_counter())
    tensor.register_hook(begins)
