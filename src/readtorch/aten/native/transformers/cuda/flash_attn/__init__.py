"""Attention tile by tile, after T. Dao: FlashAttention-2 (2023). Forward `flash_fwd_kernel.py`, backward
`flash_bwd_kernel.py`; what both are made of is `utils.py`, and `flash_api.py` launches them.

In PyTorch: `aten/src/ATen/native/transformers/cuda/flash_attn`.
"""
