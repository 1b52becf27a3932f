"""`readtorch.linalg`: norms, factorizations, equations.

In PyTorch: `torch/linalg/__init__.py`. The functions themselves are in `aten/native/linalg_*.py`.
"""

from ._C import _linalg
from .aten.numpy_errors import _LinAlgError as LinAlgError  # noqa: F401

globals().update((_name, getattr(_linalg, _name)) for _name in _linalg.__all__)
__all__ = sorted([*_linalg.__all__, "LinAlgError"])
