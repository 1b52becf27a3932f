"""c10: what every other room stands on. It imports nothing of readtorch outside itself.

In PyTorch: `c10/core` and `c10/util`. Explained in the chapter "Tensor and Storage".
"""
