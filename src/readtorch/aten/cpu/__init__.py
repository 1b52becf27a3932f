"""What compiled CPU kernels are made of: `compile.py` (how a loop is compiled), `vec/` (exp, log, tanh, erf for loops
that LLVM vectorizes), `blas.py` (a matrix product callable from a loop).

Imported only by the kernels in `aten/native/cpu`, which are themselves imported when first needed: loading numba takes
a third of a second.

In PyTorch: `aten/src/ATen/cpu/vec/vec.h`, `aten/src/ATen/native/CPUBlas.cpp`.
"""
