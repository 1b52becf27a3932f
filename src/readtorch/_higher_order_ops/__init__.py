"""Operators that take functions. In PyTorch: `torch/_higher_order_ops/__init__.py`."""

from .cond import cond
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "flex_attention", "while_loop"]


def __getattr__(name):
    """What few programs ask for is loaded when it is first asked for."""
    if name == "associative_scan":
        from .associative_scan import associative_scan

        return associative_scan
    if name == "flex_attention":
        from .flex_attention import flex_attention

        return flex_attention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
