"""Functions of one tensor, element by element: elementary, trigonometric, special and complex ones.

In PyTorch: `aten/src/ATen/native/UnaryOps.cpp`.
"""

from . import bessel, complex, elementary, special, trigonometric
