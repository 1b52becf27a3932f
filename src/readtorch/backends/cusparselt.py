"""NVIDIA's library for products of half-empty matrices: not here. In PyTorch: `torch/backends/cusparselt/__init__.py`."""

__all__ = ["version", "is_available", "get_max_alg_id"]


def version() -> int | None:
    """None: there is no such library."""


def is_available() -> bool:
    """Whether the library is there."""
    return False


def get_max_alg_id() -> int | None:
    """None: there is no such library."""
