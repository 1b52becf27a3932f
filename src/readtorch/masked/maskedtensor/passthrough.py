"""Operators that move elements without computing: they do the same to the data and to the mask.

In PyTorch: `torch/masked/maskedtensor/passthrough.py`.
"""

from .core import get_data, get_mask, map_masked, wrapped

NAMES = (
    "select transpose split t slice slice_backward select_backward index expand view _unsafe_view _reshape_alias cat "
    "unsqueeze unfold unfold_backward im2col col2im stack"
).split()


def apply(operator, *args, **kwargs):
    """`operator` on the data, and on the mask."""
    return wrapped(*(operator(*map_masked(args, of), **_mapped(kwargs, of)) for of in (get_data, get_mask)))


def _mapped(kwargs, of):
    return dict(zip(kwargs, map_masked(kwargs.values(), of)))
