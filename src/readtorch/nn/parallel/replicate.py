"""Copies of a module on several devices, made anew for every forward pass.

In PyTorch: `torch/nn/parallel/replicate.py`. Explained in the chapter "DataParallel".
"""

from collections import OrderedDict

from readtorch.cuda._utils import _get_device_index

from . import comm
from ._functions import Broadcast

__all__ = ["replicate"]


def replicate(network, devices, detach=False):
    """A list with a copy of `network` on each of `devices`; its parameters and buffers must be on the first.

    A replica has no parameters: what stands in their place are copies that belong to the graph, so that gradients flow
    back to the original's parameters and are summed there. The first replica's buffers are the original's own.
    detach: the copies belong to no graph.
    """
    if not _replicatable_module(network):
        raise RuntimeError("Cannot replicate network where python modules are children of ScriptModule")
    if not devices:
        return []
    devices = [_get_device_index(x, True) for x in devices]
    copies = _copy_tensors(list(network.parameters()), devices, detach)
    buffers = list(network.buffers())
    copies |= _copy_tensors([b for b in buffers if b.requires_grad and not detach], devices, detach)
    copies |= _copy_tensors([b for b in buffers if not b.requires_grad or detach], devices, detach=True)
    modules = list(network.modules())
    return [_replica(modules, {tensor: each[j] for tensor, each in copies.items()}) for j in range(len(devices))]


def _replicatable_module(module):
    """A scripted module knows its children only if they are scripted too."""
    from readtorch.jit import ScriptModule

    scripted = [m for m in module.modules() if isinstance(m, ScriptModule)]
    return all(isinstance(below, ScriptModule) for m in scripted for below in m.modules())


def _copy_tensors(tensors, devices, detach):
    """Tensor -> its copies, one per device. A tensor that several modules share is copied once."""
    if not tensors:
        return {}
    if detach:
        devices = comm.broadcast_coalesced(tensors, devices)
    else:
        flat = Broadcast.apply(devices, *tensors)
        devices = [flat[i : i + len(tensors)] for i in range(0, len(flat), len(tensors))]
    return dict(zip(tensors, zip(*devices)))


def _replica(modules, copy_of):
    """The replica of modules[0], wired as the original: first all modules' shells, then what is in them."""
    shells = {module: module._replicate_for_data_parallel() for module in modules}
    for module, shell in shells.items():
        shell._former_parameters = OrderedDict()
        for name, child in module._modules.items():
            _put(shell, "_modules", name, None if child is None else shells[child])
        for name, parameter in module._parameters.items():
            _put(shell, "_parameters", name, None if parameter is None else copy_of[parameter])
            if parameter is not None:  # no longer a leaf, so it is a plain attribute of the replica
                shell._former_parameters[name] = copy_of[parameter]
        for name, buffer in module._buffers.items():
            _put(shell, "_buffers", name, None if buffer is None else copy_of[buffer])
    return shells[modules[0]]


def _put(shell, kind, name, value):
    if value is None:
        getattr(shell, kind)[name] = None
    else:
        setattr(shell, name, value)
