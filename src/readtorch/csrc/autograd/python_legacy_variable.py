"""`torch.autograd.Variable(tensor)`, which was needed before tensors could require grad themselves (until release 0.4).

In PyTorch: `torch/csrc/autograd/python_legacy_variable.cpp`. Explained in the chapter "Autograd".
"""

import warnings

from readtorch.aten.functions import at
from readtorch.c10.tensor_impl import TensorImpl

from .variable import autograd_meta


class LegacyVariableBase:
    """What `Variable(data, requires_grad)` makes is no instance of it, but a tensor that shares memory with `data`."""

    def __new__(cls, data=None, requires_grad=False, volatile=False, _grad_fn=None, name=None):
        if volatile:
            warnings.warn(
                "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.", stacklevel=2
            )
        if volatile and requires_grad:
            raise ValueError("Variable can't be volatile and require_grad at the same time!")
        if _grad_fn is not None:
            raise TypeError(f"_grad_fn has to be a Function object or None, but got {type(_grad_fn).__name__}")
        made = _detached(data).requires_grad_(bool(requires_grad))
        if name is not None:
            autograd_meta(made).name = name
        return made


def _detached(data):
    if data is None:
        return at.empty((0,))
    if not isinstance(data, TensorImpl):
        raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
    return data.detach()
