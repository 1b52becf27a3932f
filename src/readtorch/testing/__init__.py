"""`readtorch.testing`: for tests of code that makes tensors. In PyTorch: `torch/testing/__init__.py`."""

from ._comparison import assert_allclose, assert_close
from ._creation import make_tensor
