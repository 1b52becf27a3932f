"""Copies between the devices of one process, under their older name.

In PyTorch: `torch/cuda/comm.py`.
"""

from readtorch.nn.parallel.comm import broadcast, broadcast_coalesced, gather, reduce_add, reduce_add_coalesced, scatter

__all__ = ["broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced", "scatter", "gather"]
