"""Modules, and what they are made of. In PyTorch: `torch/nn/__init__.py`.

Explained in the chapters "Module and __setattr__" and "Layers: convolution, embedding, recurrence", and those between them.
"""

from .parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter
from .modules import *  # noqa: F403  # isort: skip  (before functional, which imports nn.grad, which imports modules)
from . import attention, functional, grad, init, modules, parallel, parameter, utils  # isort: skip
from .modules import Module  # isort: skip
from .parallel import DataParallel  # isort: skip


def factory_kwargs(kwargs):
    """The arguments for `readtorch.empty` and its like among `kwargs` of a module's constructor.

    Those are device, dtype and memory_format; in the place of each, an entry of the dict `factory_kwargs`.
    Raises TypeError if there are others, or one comes twice.
    """
    if kwargs is None:
        return {}
    simple_keys = {"device", "dtype", "memory_format"}
    expected_keys = simple_keys | {"factory_kwargs"}
    if not kwargs.keys() <= expected_keys:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected_keys}")
    result = dict(kwargs.get("factory_kwargs", {}))
    for key in simple_keys & kwargs.keys():
        if key in result:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        result[key] = kwargs[key]
    return result


def __getattr__(name):
    """`quantized` and `intrinsic` are loaded when they are first asked for: they stand on this package."""
    if name in ("intrinsic", "quantized"):
        import importlib

        return importlib.import_module(f"readtorch.nn.{name}")
    raise AttributeError(f"module 'readtorch.nn' has no attribute '{name}'")
