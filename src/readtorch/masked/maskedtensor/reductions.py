"""Reductions: those of `torch.masked`, and which elements of the result count: those that at least one element made.

In PyTorch: `torch/masked/maskedtensor/reductions.py`.
"""

import readtorch

from .core import is_masked_tensor
from .creation import as_masked_tensor

NAMES = "sum mean amin amax argmin argmax prod all norm var std".split()


def make(name):
    """The reduction of that name: of all elements if it is given nothing else, along `dim` otherwise."""

    def reduce(*args, **kwargs):
        if len(args) == 1 and not kwargs:
            return _over_all(name, *args)
        return _along(name, *args, **kwargs)

    return reduce


def _over_all(name, input):
    mask = input.get_mask()
    if name == "all":
        result = input.get_data().masked_fill(~mask, True).all()
    else:
        result = getattr(readtorch.masked, name)(input, mask=mask)
    return as_masked_tensor(result, readtorch.any(mask))


def _along(name, self, dim, keepdim=False, dtype=None):
    if not is_masked_tensor(self):
        raise TypeError("Input to reduce_dim must be a MaskedTensor")
    mask = self.get_mask()
    if name == "all":
        result = readtorch.all(self.get_data().masked_fill(~mask, True), dim=dim, keepdim=keepdim)
    else:
        result = getattr(readtorch.masked, name)(self, dim=dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return as_masked_tensor(result, _any(mask, dim, keepdim))


def _any(mask, dim, keepdim):
    for d in sorted([dim] if isinstance(dim, int) else dim, reverse=True):
        mask = readtorch.any(mask, dim=d, keepdim=keepdim)
    return mask
