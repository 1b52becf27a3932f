"""Operators that take functions. In PyTorch: `torch/_higher_order_ops/__init__.py`."""

from .cond import cond
from .while_loop import while_loop

__all__ = ["cond", "flex_attention", "while_loop"]


def __getattr__(name):
    """`flex_attention` is loaded when it is first asked for: few programs do."""
    if name == "flex_attention":
        from .flex_attention import flex_attention

        return flex_attention
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
