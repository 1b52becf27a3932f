"""Matrix products and what is made of them: matmul, addmm, norms, matrix functions, pseudo-inverse.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`.
"""

from . import addmm, matmul, matrix_functions, norm, pinv, products, tensor_solve
