"""Tensors without elements that say what a program would do to sizes, strides, dtypes and devices.

In PyTorch: `torch/_subclasses/__init__.py`. Explained in the chapter "One operator call".
"""

from . import fake_impls  # noqa: F401  (the rules of single operators)
from .fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
)

__all__ = ["FakeTensor", "FakeTensorMode", "UnsupportedFakeTensorException", "DynamicOutputShapeException"]
