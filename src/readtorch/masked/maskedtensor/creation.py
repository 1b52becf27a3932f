"""The two functions that make a MaskedTensor. In PyTorch: `torch/masked/maskedtensor/creation.py`."""

from .core import MaskedTensor

__all__ = ["as_masked_tensor", "masked_tensor"]


def masked_tensor(data, mask, requires_grad=False):
    """A MaskedTensor of copies of `data` and of the bools `mask`, which is a leaf, as what `tensor` makes is.

    TypeError if one is no tensor, if the mask is not of bools, or for data of bfloat16, complex or 8-bit unsigned numbers;
    ValueError if their shapes differ.
    """
    return MaskedTensor(data, mask, requires_grad)


def as_masked_tensor(data, mask):
    """The same, whose gradient flows back to `data`, as with `as_tensor`."""
    return MaskedTensor._from_values(data, mask)
