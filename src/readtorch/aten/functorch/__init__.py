"""Function transforms: what `torch.func` is made of, below Python.

In PyTorch: `aten/src/ATen/functorch/Interpreter.h` says how its parts work together. Explained in the chapter "Forward mode,
vmap and torch.func".
"""
