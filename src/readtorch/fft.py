"""`readtorch.fft`: Fourier transforms.

In PyTorch: `torch/fft/__init__.py`. The functions themselves are in `aten/native/spectral_ops.py`.
"""
from ._C import _fft

globals().update(vars(_fft))
__all__ = sorted(vars(_fft))
