"""Calls of functions in other processes: not here, as in a PyTorch that was built without them.

In PyTorch: `torch/distributed/rpc/__init__.py`; programs ask `is_available()`.
"""

__all__ = ["is_available"]


def is_available():
    """False: readtorch has no agents."""
    return False
