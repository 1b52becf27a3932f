"""CUDA kernels, each a plain Python function (numba compiles it for the chip, the simulator runs it without one), and the
operators that launch them.

A file holds one family, under the name of PyTorch's file. First come the kernels and the functions that launch them; these
take arrays, the result's last, and choose grid and block. They know nothing of tensors, and nothing is launched for empty
results. Then come the operators, registered for the dispatcher's key CUDA. Read loops.py first, then
register_dispatch_key.py.

In PyTorch: the files beside `aten/src/ATen/native/cuda/Loops.cuh`. Explained in the chapter "CUDA kernels with numba".
"""
