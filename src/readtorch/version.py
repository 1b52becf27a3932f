"""What this build is. In PyTorch: `torch/version.py`, written by its build."""
__all__ = ["__version__", "debug", "cuda", "hip", "rocm", "xpu"]

__version__ = "0.1.0"
debug = False
cuda = None
hip = None
rocm = None
xpu = None
