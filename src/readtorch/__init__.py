"""readtorch: PyTorch from the inside, small enough to read.

The front door. In PyTorch: `torch/__init__.py`. Explained in the chapter "import torch".
"""
from .aten import native  # noqa: F401
from ._tensor import Tensor
from .aten.functions import at as _at
from .c10.scalar_type import *  # noqa: F403


def __getattr__(name):
    return getattr(_at, name)
