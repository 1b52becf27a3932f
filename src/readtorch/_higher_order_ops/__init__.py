"""Operators that take functions. In PyTorch: `torch/_higher_order_ops/__init__.py`."""

from .flex_attention import flex_attention

__all__ = ["flex_attention"]
