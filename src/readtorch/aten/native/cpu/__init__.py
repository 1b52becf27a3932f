"""Loops of the CPU that numba compiles. They are loaded when they are needed. In PyTorch: `aten/src/ATen/native/cpu`."""
