"""The rules of all operators that have one. In PyTorch: `torch/distributed/tensor/_ops/__init__.py`."""

from . import (  # noqa: F401
    _conv_ops,
    _embedding_ops,
    _math_ops,
    _matrix_ops,
    _pointwise_ops,
    _random_ops,
    _tensor_ops,
    _view_ops,
)
