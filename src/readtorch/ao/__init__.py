"""Architecture optimization: networks made smaller. Here is what packages import of it. In PyTorch: `torch/ao/__init__.py`.

Left out: `ns` (comparing a network with its quantized one) and `pruning`; pruning of a module's weights is `nn.utils.prune`.
"""

from importlib import import_module as _import_module

__all__ = ["nn", "quantization"]


def __getattr__(name):
    if name in __all__:
        return _import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
