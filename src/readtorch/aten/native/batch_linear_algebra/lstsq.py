"""Least squares.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_cpu
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra.pinv import LinalgPinvBackward0, pinv_float_composite, pinv_jvp
from readtorch.aten.native.linear_algebra_utils import columns, each_matrix, infinite, repeated
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.native_function import native_function
from readtorch.c10.scalar_type import FLOAT
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .solve import is_vector

# ---------------------------------------------------------------------------------------------- least squares

lstsq = native_function(
    "linalg_lstsq(Tensor self, Tensor b, float? rcond=None, *, str? driver=None) -> (Tensor solution, Tensor "
    "residuals, Tensor rank, Tensor singular_values)",
    module="linalg",
    name="lstsq",
    out=exact_out(row_major=True),
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


def check_lstsq(A, b):
    """Raises RuntimeError for what is no equation with matrices of floats. In PyTorch: in `linalg_lstsq_out`."""
    name, kinds = "torch.linalg.lstsq", (type_name(A), type_name(b))
    ndim, shape = A._array.ndim, b._array.shape
    if ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if not shape:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if not 0 <= ndim - len(shape) <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    side = -1 if is_vector(A, b) else -2
    if A._array.shape[-2] != shape[side]:
        raise RuntimeError(f"{name}: input.size(-2) should match other.size({side})")
    if kinds[0] != kinds[1]:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got input's dtype {kinds[0]} and "
            f"other's dtype {kinds[1]}"
        )


def check_lstsq_type(A, rcond):
    kind = dtype_of(A)
    if kind.category < FLOAT or kind.itemsize == 2:
        if rcond is None:
            raise RuntimeError("This function doesn't handle types other than float and double")
        raise not_implemented("linalg_lstsq_cpu")(kind)


@lstsq.kernel
def lstsq_cpu(self, b, rcond, driver):
    """PyTorch's drivers differ in their further results: `gelsy` (default) has no singular values, `gels` no rank.

    How many residuals there are depends on the rank, so there is no shape rule, and no answer on the Meta device.
    """
    check_lstsq(self, b)
    driver = driver or "gelsy"
    if driver not in ("gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    check_lstsq_type(self, rcond)
    vector, (*own_batch, m, n) = is_vector(self, b), self._array.shape
    y = b._array[..., None] if vector else b._array
    batch = broadcast_shape(own_batch, y.shape[: len(own_batch)])
    a, y = repeated(self._array, batch), repeated(y, batch)
    eps = np.finfo(a.dtype).eps * max(m, n) if rcond is None else rcond
    # LAPACK leaves the solution where the right hand sides were: it may be the beginning of taller columns.
    solution = empty_cpu(columns(self, (*batch, max(m, n), y.shape[-1])))._array[..., :n, :]
    rank, values = np.empty(batch, np.int64), np.empty((*batch, min(m, n)), dtype_of(self).to_real().numpy)
    each_matrix(lambda a, y: lstsq_one(a, y, eps), [a, y], [solution, rank, values])
    full = m > n and driver != "gelsy" and bool((rank == n).all())
    residuals = (np.abs(y - a @ solution) ** 2).sum(-2) if full else np.empty(0, values.dtype)
    own = tuple(map(slice, own_batch))
    return return_types.linalg_lstsq(
        wrap(solution[..., 0] if vector else solution),
        wrap(residuals),
        wrap(np.empty(0, np.int64) if driver == "gels" else np.asarray(rank[own])),
        wrap(values[own] if driver in ("gelsd", "gelss") else np.empty(0, values.dtype)),
    )


@lstsq.backward
class LinalgLstsqBackward0:
    output_differentiability = [True, True, False, False]

    def self__b(grads, self, b, solution):
        """Through solution = A⁺ b, and residuals = |A solution - b|²."""
        to_x, to_r = grads
        vector = is_vector(self, b)
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

    def solution(self_p, self_t, b_p, b_t):
        vector = is_vector(self_p, b_p)
        y, change = (b_p.unsqueeze(-1), b_t.unsqueeze(-1)) if vector else (b_p, b_t)
        P = pinv_float_composite(self_p, None, None, False)
        result = pinv_jvp(self_p, P, self_t).matmul(y) + P.matmul(change)
        return result.squeeze(-1) if vector else result

    def residuals(self_p, self_t, b_p, b_t, solution, residuals):
        """d|A x - b|² = 2 Re ⟨A x - b, dA x - db⟩: a change of x changes nothing, for x is the best."""
        if not residuals.numel():
            return at.zeros_like(residuals)
        vector = is_vector(self_p, b_p)
        y, change, x = [t.unsqueeze(-1) if vector else t for t in (b_p, b_t, solution)]
        error = self_p.matmul(x) - y
        return 2 * at.real(error.conj() * (self_t.matmul(x) - change)).sum(-2)
