"""`readtorch.fft`: Fourier transforms.

In PyTorch: `torch/fft/__init__.py`. The functions themselves are in `aten/native/spectral_ops.py`.
"""

from ._C import _fft

__all__ = _fft.__all__
globals().update((_name, getattr(_fft, _name)) for _name in __all__)
