"""Collectives with gradients. In PyTorch: `torch/distributed/nn/__init__.py`; its remote modules need RPC."""

from .functional import *  # noqa: F403
