"""The tests of `torch.library.opcheck`. In PyTorch: `torch/testing/_internal/optests/__init__.py`."""

from .autograd_registration import autograd_registration_check
from .fake_tensor import fake_check
from .generate_tests import OpCheckError, opcheck
