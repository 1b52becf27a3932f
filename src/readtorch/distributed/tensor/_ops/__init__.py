"""The rules of all operators that have one. In PyTorch: `torch/distributed/tensor/_ops/__init__.py`."""

from . import _pointwise_ops, _tensor_ops  # noqa: F401
