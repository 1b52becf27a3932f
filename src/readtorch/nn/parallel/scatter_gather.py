"""Scatter and gather of anything that has tensors in it.

In PyTorch: `torch/nn/parallel/scatter_gather.py`. Explained in the chapter "DataParallel".
"""

import readtorch

from ._functions import Gather, Scatter

__all__ = ["scatter", "scatter_kwargs", "gather"]


def _is_namedtuple(obj):
    return isinstance(obj, tuple) and hasattr(obj, "_asdict") and hasattr(obj, "_fields")


def scatter(inputs, target_gpus, dim=0):
    """One object a device in the shape of `inputs`: tensors are cut along `dim`, anything else is passed on to each.

    There are fewer objects than devices if a tensor has too few parts. For a tensor the result is a tuple, else a list.
    """
    if isinstance(inputs, readtorch.Tensor):
        return Scatter.apply(target_gpus, None, dim, inputs)
    if isinstance(inputs, (list, tuple)) and len(inputs):
        devices = zip(*[scatter(part, target_gpus, dim) for part in inputs])
        if _is_namedtuple(inputs):
            return [type(inputs)(*parts) for parts in devices]
        return [list(parts) for parts in devices] if isinstance(inputs, list) else list(devices)
    if isinstance(inputs, dict) and len(inputs):
        return [type(inputs)(items) for items in zip(*[scatter(item, target_gpus, dim) for item in inputs.items()])]
    return [inputs for _ in target_gpus]


def scatter_kwargs(inputs, kwargs, target_gpus, dim=0):
    """(positional arguments, keyword arguments), each a tuple with one entry per device."""
    scattered = scatter(inputs, target_gpus, dim) if inputs else []
    scattered_kwargs = scatter(kwargs, target_gpus, dim) if kwargs else []
    if len(scattered) < len(scattered_kwargs):
        scattered.extend(() for _ in range(len(scattered_kwargs) - len(scattered)))
    elif len(scattered_kwargs) < len(inputs):  # in PyTorch, too, `inputs`: it should be the devices that are counted
        scattered_kwargs.extend({} for _ in range(len(scattered) - len(scattered_kwargs)))
    return tuple(scattered), tuple(scattered_kwargs)


def gather(outputs, target_device, dim=0):
    """One object in the shape of the devices' `outputs`; their tensors are laid one after the other on `target_device`."""
    first = outputs[0]
    if isinstance(first, readtorch.Tensor):
        return Gather.apply(target_device, dim, *outputs)
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(first) == len(other) for other in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((key, gather([d[key] for d in outputs], target_device, dim)) for key in first)
    parts = [gather(part, target_device, dim) for part in zip(*outputs, strict=True)]
    return type(first)._make(parts) if _is_namedtuple(first) else type(first)(parts)
