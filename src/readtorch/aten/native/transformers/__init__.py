"""Attention, and what the layers of a transformer run when no graph is wanted.

`attention.py` asks `sdp_utils.py` which backend to use: the fused one is `flash_attention.py`, on GPUs `cuda`, the other
one stands in `attention.py` itself. `transformer.py` is the fast path of inference.

In PyTorch: `aten/src/ATen/native/transformers`, of which `attention.cpp` and `transformer.cpp` are the operators.
"""

from . import attention, flash_attention, transformer
from .cuda import attention as _
