"""Attention, and what the layers of a transformer run when no graph is wanted.

In PyTorch: `aten/src/ATen/native/transformers/`. `attention.py` chooses a way with `sdp_utils.py`; one way is
`flash_attention.py`, the other stands in `attention.py` itself. `encoder_layer.py` is the fast path of
inference.
"""
from . import attention, encoder_layer, flash_attention  # noqa: F401
