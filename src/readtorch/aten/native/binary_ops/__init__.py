"""Operators on two tensors, element by element: arithmetic, division, bits, comparisons, special functions.

In PyTorch: `aten/src/ATen/native/BinaryOps.cpp`.
"""

from . import arithmetic, bitwise, comparison, division, floating_point, maximum, polynomials, special
