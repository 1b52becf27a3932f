"""Building a module without initial values. In PyTorch: `torch/nn/utils/init.py`."""

import inspect

from readtorch.nn import init
from readtorch.nn.modules.module import Module


def skip_init(module_cls, *args, **kwargs):
    """A module whose parameters and buffers hold whatever was in memory: for who fills them in anyway.

    Draws no random numbers. Raises RuntimeError unless `module_cls` is a Module that takes a `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    # in PyTorch: built on the meta device, where a tensor has no memory that could be filled
    with init._no_filling():
        module = module_cls(*args, **kwargs)
    return module.to_empty(device=device)
