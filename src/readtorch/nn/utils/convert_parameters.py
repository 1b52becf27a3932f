"""All parameters as one vector, and back. In PyTorch: `torch/nn/utils/convert_parameters.py`."""

import readtorch
from readtorch import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters):
    """The elements of all parameters in one 1-dimensional tensor, differentiable in each of them."""
    parameters = list(parameters)
    _check_devices(parameters)
    return readtorch.cat([p.view(-1) for p in parameters])


def vector_to_parameters(vec, parameters):
    """Make each parameter show its share of `vec`, in order. Raises TypeError if `vec` is no tensor."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {readtorch.typename(vec)}")
    parameters = list(parameters)
    _check_devices(parameters)
    start = 0
    for p in parameters:
        p.data = vec[start : start + p.numel()].view_as(p).data
        start += p.numel()


def _check_devices(parameters):
    """One vector lies on one device."""
    if len({(p.device.type, p.get_device()) for p in parameters}) > 1:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
