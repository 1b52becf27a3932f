"""`readtorch.special`: special functions under the names of SciPy.

In PyTorch: `torch/special/__init__.py`. The functions themselves are in `aten/native/special_functions.py`.
"""
from ._C import _special

globals().update(vars(_special))
__all__ = sorted(vars(_special))
