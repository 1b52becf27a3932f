"""Least squares.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra.pinv import LinalgPinvBackward0, pinv_float_composite
from readtorch.aten.native.linear_algebra_utils import check_floating, each_matrix, infinite, wrap_columns
from readtorch.aten.native_function import native_function
from readtorch.c10.tensor_impl import wrap

# ---------------------------------------------------------------------------------------------- least squares

lstsq = native_function(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, Tensor rank, Tensor singular_values)",
    module="linalg",
    name="lstsq",
    out=True,
)


def lstsq_one(a, b, rcond):
    """(solution, squared residuals of a full-rank tall system, rank, singular values)."""
    a_endless, b_endless = infinite(a), infinite(b)  # see Note [ Infinite numbers in LAPACK ]
    solution, _, rank, values = np.linalg.lstsq(np.where(a_endless, 0, a), np.where(b_endless, 0, b), rcond)
    if a_endless:
        values[:] = np.nan
    if a_endless or b_endless:
        solution[:] = np.nan
    return solution, np.int64(rank), values


@lstsq.kernel
def lstsq_cpu(self, b, rcond, driver):
    """PyTorch's drivers differ in their further results: `gelsy` (default) has no singular values, `gels` no rank."""
    check_floating(self, "torch.linalg.lstsq", "input")
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    a, y = self._array, b._array
    vector = y.ndim == 1 or (a.ndim - 1 == y.ndim and y.shape == a.shape[:-1])
    y = y[..., None] if vector else y
    batch = broadcast_shape(a.shape[:-2], y.shape[:-2])
    a, y = np.broadcast_to(a, batch + a.shape[-2:]), np.broadcast_to(y, batch + y.shape[-2:])
    eps = np.finfo(a.dtype).eps * max(a.shape[-2:]) if rcond is None else rcond
    solution, rank, values = each_matrix(lambda a, y: lstsq_one(a, y, eps), a, y)
    m, n = a.shape[-2:]
    full = m > n and driver != "gelsy" and bool((rank == n).all())
    residuals = (np.abs(y - a @ solution) ** 2).sum(-2) if full else np.empty(0, values.dtype)
    solution = wrap(solution[..., 0]) if vector else wrap_columns(solution)
    return return_types.linalg_lstsq(
        solution,
        wrap(residuals),
        wrap(np.empty(0, np.int64)) if driver == "gels" else wrap(np.asarray(rank)),
        wrap(values if driver in ("gelsd", "gelss") else np.empty(0, values.dtype)),
    )


@lstsq.backward
class LinalgLstsqBackward0:
    output_differentiability = [True, True, False, False]

    def self__b(grads, self, b, solution):
        """Through solution = A⁺ b, and residuals = |A solution - b|²."""
        to_x, to_r = grads
        vector = b.dim() == 1 or (self.dim() - 1 == b.dim() and b.shape == self.shape[:-1])
        y, x = (b.unsqueeze(-1), solution.unsqueeze(-1)) if vector else (b, solution)
        to_a = to_b = 0
        if to_x is not None:
            g = to_x.unsqueeze(-1) if vector else to_x
            P = pinv_float_composite(self, None, None, False)
            to_b = P.mH.matmul(g)
            to_a = LinalgPinvBackward0.self(g.matmul(y.mH), P, self)
        if to_r is not None and to_r.numel():
            error = (self.matmul(x) - y) * (2 * to_r.unsqueeze(-2))
            to_a, to_b = to_a + error.matmul(x.mH), to_b - error
        return to_a, to_b.squeeze(-1) if vector else to_b


exact_out(lstsq, row_major=True)
