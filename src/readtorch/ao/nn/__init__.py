"""Layers that quantization puts in the place of others. In PyTorch: `torch/ao/nn/__init__.py`.

Left out: `qat`, `quantizable` and `sparse`.
"""

from importlib import import_module as _import_module

__all__ = ["intrinsic", "quantized"]


def __getattr__(name):
    if name in __all__:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
