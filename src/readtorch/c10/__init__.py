"""c10: what every other room stands on. It imports nothing of readtorch outside itself.

In PyTorch: `c10/core`, `c10/util` and a few files of `aten/src/ATen` that need nothing else. PyTorch has no such file:
its c10 is C++. Explained in the chapter "Tensor and Storage".
"""
