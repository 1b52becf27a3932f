"""`MaskedTensor`: a tensor and a mask that says which of its elements count. In PyTorch: `torch/masked/maskedtensor`."""

from . import _ops_refs
from .core import MaskedTensor, is_masked_tensor
