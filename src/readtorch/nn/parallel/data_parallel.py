"""DataParallel: the batch is split into one part per device, which replicas of the module process in threads.

In PyTorch: `torch/nn/parallel/data_parallel.py`. Explained in the chapter "DataParallel".
"""

import itertools
import warnings

import readtorch
from readtorch.cuda._utils import _get_device_index
from readtorch.nn.modules import Module

from .parallel_apply import parallel_apply
from .replicate import replicate
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """`module` on several devices of this process: scatter, replicate, apply in parallel, gather.

    device_ids: devices to use, by default all; without any device the module is called as it is. output_device: where
    outputs are gathered, by default device_ids[0], where module's parameters and buffers must be. dim: which dimension of
    tensors is cut. Gradients of the replicas are summed into the original's parameters.

    PyTorch recommends DistributedDataParallel instead: replicas are made anew for every batch, and the threads share one
    interpreter lock.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if not readtorch.cuda.is_available():
            self.module = module
            self.device_ids = []
            return
        device_ids = list(range(readtorch.cuda.device_count())) if device_ids is None else device_ids
        self.dim = dim
        self.module = module
        self.device_ids = [_get_device_index(x, True) for x in device_ids]
        self.output_device = _get_device_index(device_ids[0] if output_device is None else output_device, True)
        self.src_device_obj = readtorch.device("cuda", self.device_ids[0])
        _check_balance(self.device_ids)
        if len(self.device_ids) == 1:
            self.module.to(self.src_device_obj)

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_devices(self.module, self.src_device_obj)
        inputs, kwargs = self.scatter(inputs, kwargs, self.device_ids)
        if not inputs and not kwargs:  # nothing to split: one device does it
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = self.replicate(self.module, self.device_ids[: len(inputs)])
        outputs = self.parallel_apply(replicas, inputs, kwargs)
        return self.gather(outputs, self.output_device)

    # Steps of `forward` that a subclass may do in its own way.

    def replicate(self, module, device_ids):
        return replicate(module, device_ids, not readtorch.is_grad_enabled())

    def scatter(self, inputs, kwargs, device_ids):
        return scatter_kwargs(inputs, kwargs, device_ids, dim=self.dim)

    def parallel_apply(self, replicas, inputs, kwargs):
        return parallel_apply(replicas, inputs, kwargs, self.device_ids[: len(replicas)])

    def gather(self, outputs, output_device):
        return gather(outputs, output_device, dim=self.dim)


def data_parallel(module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None):
    """`module(*inputs, **module_kwargs)` on several devices, as DataParallel does it, without a wrapper.

    output_device: -1 stands for the CPU.
    """
    if not isinstance(inputs, tuple):
        inputs = (inputs,) if inputs is not None else ()
    if not readtorch.cuda.is_available():
        raise RuntimeError("device type could not be determined")
    device_ids = list(range(readtorch.cuda.device_count())) if device_ids is None else device_ids
    output_device = _get_device_index(device_ids[0] if output_device is None else output_device, True)
    device_ids = [_get_device_index(x, True) for x in device_ids]
    _check_devices(module, readtorch.device("cuda", device_ids[0]))
    inputs, module_kwargs = scatter_kwargs(inputs, module_kwargs, device_ids, dim)
    if not inputs and not module_kwargs:
        inputs, module_kwargs = ((),), ({},)
    if len(device_ids) == 1:
        return module(*inputs[0], **module_kwargs[0])
    used = device_ids[: len(inputs)]
    outputs = parallel_apply(replicate(module, used), inputs, module_kwargs, used)
    return gather(outputs, output_device, dim)


def _check_devices(module, device):
    """Raises RuntimeError unless all that `module` has is on `device`."""
    for t in itertools.chain(module.parameters(), module.buffers()):
        if t.device != device:
            raise RuntimeError(
                f"module must have its parameters and buffers on device {device} (device_ids[0]) but "
                f"found one of them on device: {t.device}"
            )


_IMBALANCE = """
    There is an imbalance between your GPUs. You may want to exclude GPU {} which
    has less than 75% of the memory or cores of GPU {}. You can do so by setting
    the device_ids argument to DataParallel, or by setting the CUDA_VISIBLE_DEVICES
    environment variable."""


def _check_balance(device_ids):
    """Warns if a device has much less memory, or fewer cores, than another: it would keep the others waiting."""
    properties = [readtorch.cuda.get_device_properties(i) for i in device_ids]
    for values in ([p.total_memory for p in properties], [p.multi_processor_count for p in properties]):
        least, most = min(values), max(values)
        if least / most < 0.75:
            weak, strong = device_ids[values.index(least)], device_ids[values.index(most)]
            warnings.warn(_IMBALANCE.format(weak, strong), stacklevel=3)
            return
