"""What this build is. In PyTorch: `torch/version.py`, written by its build.

`__version__` is the PyTorch that this follows, since programs choose their ways by it; `readtorch` is the version of
this package. `git_version` is the commit of that PyTorch.
"""

from typing import Optional

__all__ = ["__version__", "debug", "cuda", "git_version", "hip", "rocm", "xpu"]

__version__ = "2.13.0"
readtorch = "0.2.0"
debug = False
cuda: Optional[str] = None
git_version = "cf30153c4c131c8164ee7798e5022d810682e2cb"
hip: Optional[str] = None
rocm: Optional[str] = None
xpu: Optional[str] = None
