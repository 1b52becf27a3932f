"""`readtorch.special`: special functions under the names of SciPy.

In PyTorch: `torch/special/__init__.py`. The functions themselves are in `aten/native/unary_ops/special.py`.
"""

from ._C import _special

__all__ = _special.__all__
globals().update((_name, getattr(_special, _name)) for _name in __all__)
