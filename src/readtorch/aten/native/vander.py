"""Matrices of powers: vander.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function
from readtorch.c10.scalar_type import int64, promote_types
from readtorch.c10.tensor_impl import dtype_of

vander = native_function("vander(Tensor x, int? N=None, bool increasing=False) -> Tensor", "function")


@vander.compose
def vander_composite(x, N, increasing):
    """(n) -> (n, N): the powers 0 to N-1 of each number, the highest first unless `increasing`. N: n if None."""
    if x.dim() != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    if N is not None and N < 0:
        raise RuntimeError("N must be non-negative.")
    rows = x.shape[0]
    columns = rows if N is None else N
    result = at.empty((rows, columns), dtype=promote_types(dtype_of(x), int64), device=x.device)
    if columns > 0:
        result.select(1, 0).fill_(1)
    if columns > 1:
        powers = result.narrow(1, 1, columns - 1)
        powers.copy_(x.unsqueeze(1))
        powers.copy_(at.cumprod(powers, 1))
    return result if increasing else at.flip(result, [1])
