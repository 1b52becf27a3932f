"""Factorizations of batches of matrices, and the equations that they solve. LAPACK computes them.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`.
"""

from . import cholesky, eig, ldl, lstsq, lu, qr, solve, svd, triangular
