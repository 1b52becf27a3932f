"""Attention on NVIDIA GPUs: which kernel may be used (`sdp_utils.py`), and the fused one (`flash_attn`).

In PyTorch: `aten/src/ATen/native/transformers/cuda`. The operators around the kernels stand in
`aten/native/cuda/attention.py`.
"""
