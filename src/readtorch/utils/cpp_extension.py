"""Extensions of PyTorch written in C++, which readtorch does not compile or load: every function refuses when it is called.

In PyTorch: `torch/utils/cpp_extension.py`. Packages try to `load` one and fall back on Python.
"""

import shutil

__all__ = ["BuildExtension", "CUDAExtension", "CppExtension", "is_ninja_available", "load", "load_inline"]

CUDA_HOME = None


def is_ninja_available():
    """Whether the program `ninja` is there."""
    return shutil.which("ninja") is not None


def _refused(name):
    raise NotImplementedError(f"readtorch has no {name}: it does not compile extensions written in C++ or CUDA")


def load(name, sources, *args, **kwargs):
    """Raises NotImplementedError."""
    _refused("load")


def load_inline(name, cpp_sources, *args, **kwargs):
    """Raises NotImplementedError."""
    _refused("load_inline")


def CppExtension(name, sources, *args, **kwargs):
    """Raises NotImplementedError."""
    _refused("CppExtension")


def CUDAExtension(name, sources, *args, **kwargs):
    """Raises NotImplementedError."""
    _refused("CUDAExtension")


class BuildExtension:
    """Raises NotImplementedError."""

    def __init__(self, *args, **kwargs):
        _refused("BuildExtension")
