"""CUDA kernels, each a plain Python function: numba compiles it for the chip, the simulator runs it without
one.

A file holds the kernels of one family and the functions that launch them; these take arrays, the result's
last, and say with which grid and block. They know nothing of tensors, and nothing is launched for empty
results.

In PyTorch: `aten/src/ATen/native/cuda`. Explained in the chapter "CUDA kernels with numba".
"""
