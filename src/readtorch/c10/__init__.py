"""c10: what every other room stands on. It imports nothing of readtorch outside itself.

PyTorch has no such file, its c10 is C++: `c10/core`, `c10/util` and a few files of `aten/src/ATen` that need nothing
else. Explained in the chapter "Tensor and Storage".
"""
