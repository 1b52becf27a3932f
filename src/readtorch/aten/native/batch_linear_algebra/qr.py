"""QR factorization, and products of the Householder reflections in which LAPACK keeps an orthogonal matrix.

In PyTorch: `aten/src/ATen/native/BatchLinearAlgebra.cpp`; formulas in `torch/csrc/autograd/FunctionsManual.cpp`.
"""

import numpy as np

from readtorch.aten.empty_tensor import empty_cpu
from readtorch.aten.functions import at
from readtorch.aten.native import return_types
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.linear_algebra_utils import check_floating, columns, each_matrix, lapack
from readtorch.aten.native.tensor_iterator import not_implemented
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import any_device, write_out
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES, can_cast
from readtorch.c10.tensor_impl import dtype_of

# --------------------------------------------------------------------------------------------------------- QR

linalg_qr = native_function(
    "linalg_qr(Tensor A, str mode='reduced') -> (Tensor Q, Tensor R)", module="linalg", name="qr", out=exact_out()
)
qr = native_function("qr(Tensor self, bool some=True) -> (Tensor Q, Tensor R)", BOTH, out=exact_out())


@linalg_qr.meta
def qr_meta(A, mode):
    check_floating(A, "linalg.qr", low_precision=True)
    if mode not in ("reduced", "r", "complete"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    *batch, m, n = A._array.shape
    k = m if mode == "complete" else min(m, n)
    Q = TensorMeta((0,), dtype_of(A)) if mode == "r" else columns(A, (*batch, m, k))
    return Q, columns(A, (*batch, k, n))


@linalg_qr.impl()
def qr_cpu(A, mode, Q, R):
    check_lapack_type(A, "geqrf_cpu")
    if mode == "r":
        R._array[...] = np.linalg.qr(A._array, "r")
    else:
        Q._array[...], R._array[...] = np.linalg.qr(A._array, mode)


def hermitian_from_upper(x):
    """The Hermitian matrix whose upper triangle is x's; its diagonal is real."""
    upper = x.triu()
    doubled = upper + upper.mH
    return doubled - at.diag_embed(doubled.diagonal(0, -2, -1) / 2)


def qr_backward(gQ, gR, Q, R):
    """For A with at least as many rows as columns: [gQ + Q H] R⁻ᴴ, H Hermitian with the upper triangle of
    gR Rᴴ - Qᴴ gQ (S. Walter, L. Lehmann: Algorithmic differentiation of linear algebra functions, 2010)."""
    inner = None
    if gR is not None:
        inner = gR.matmul(R.mH)
    if gQ is not None:
        inner = -Q.mH.matmul(gQ) if inner is None else inner - Q.mH.matmul(gQ)
    middle = Q.matmul(hermitian_from_upper(inner))
    middle = middle if gQ is None else middle + gQ
    return at.linalg_solve_triangular(R.mH, middle, upper=False, left=False)


def check_differentiable(mode, m, n):
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use linalg.qr(A, mode='reduced') "
            "if you are going to require gradients."
        )
    if mode == "complete" and m > n:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")


def qr_jvp(A_t, Q, R, mode):
    """Qᴴ dA R⁻¹ = Qᴴ dQ + dR R⁻¹, a skew matrix and an upper triangular one."""
    m, n = A_t.shape[-2:]
    check_differentiable(mode, m, n)
    k = min(m, n)
    change = at.linalg_solve_triangular(R[..., :k], A_t[..., :k], upper=True, left=False)
    inner = Q.mH.matmul(change)
    if m >= n:
        both = inner + inner.mH
        rise = both.triu() - at.diag_embed(both.diagonal(0, -2, -1)) / 2
        return change - Q.matmul(rise), rise.matmul(R)
    turn = inner.tril(-1)
    turn = turn - turn.mH
    if turn.dtype.is_complex:
        turn = turn + at.diag_embed(at.imag(inner.diagonal(0, -2, -1)) * 1j)
    return Q.matmul(turn), Q.mH.matmul(A_t) - turn.matmul(R)


@linalg_qr.backward
class LinalgQrBackward0:
    def A(grads, A, Q, R, mode):
        """A wide matrix is [A₁ A₂] = Q [R₁ R₂] with A₁ square and R₂ = Qᴴ A₂: first A₂'s share, then A₁'s."""
        gQ, gR = grads
        m, n = R.shape[-2], R.shape[-1]
        check_differentiable(mode, m, n)
        if m >= n:
            return qr_backward(gQ, gR, Q, R)
        if gR is None:
            left = qr_backward(gQ, None, Q, R[..., :m])
            return at.cat([left, at.zeros_like(A[..., m:])], -1)
        right = Q.matmul(gR[..., m:])
        through_q = A[..., m:].matmul(gR[..., m:].mH)
        left = qr_backward(through_q if gQ is None else gQ + through_q, gR[..., :m], Q, R[..., :m])
        return at.cat([left, right], -1)

    def Q__R(A_t, Q, R, mode):
        return qr_jvp(A_t, Q, R, mode)


@qr.compose
def qr_composite(self, some):
    return return_types.qr(*linalg_qr.call(self, "reduced" if some else "complete"))


# ------------------------------------------------------------------------------------ products of reflections
# Note [ Products of reflections ]
# Column i of V below the diagonal, with a 1 on it, and tau[i] make the reflection H_i = I - tau_i v_i v_iᴴ. Their
# product has a closed form without a loop (R. Schreiber, C. Van Loan: A storage-efficient WY representation, 1989):
#
#     H_1 H_2 … H_k = I - V T Vᴴ,    T = (I + D S)⁻¹ D,    D = diag(tau),    S = VᴴV above the diagonal.
#
# Its derivative is a few matrix products. In PyTorch: a loop over the reflections, which inverts one after the other;
# where a reflection is nearly singular, digits are lost.

geqrf = native_function("geqrf(Tensor self) -> (Tensor a, Tensor tau)", BOTH, out=True)
householder_product = native_function(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    module="linalg",
    name="householder_product",
    out=True,
)
orgqr = native_function("orgqr(Tensor self, Tensor input2) -> Tensor", BOTH, out=True)
ormqr = native_function(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) -> Tensor", BOTH, out=True
)


def writes_rows(operator, check, *names):
    """Make `operator.out` check its outputs; one that it must resize is laid out by rows, not by columns."""

    @operator.out.kernel
    @any_device
    def compute_then_copy(*arguments):
        outs = arguments[-len(names) :]
        results = operator.call(*arguments[: -len(names)])
        results = (results,) if len(names) == 1 else results
        for name, result, out in zip(names, results, outs):
            check(dtype_of(result), dtype_of(out), name)
        written = [write_out(r.contiguous(), (o,)) for r, o in zip(results, outs)]
        return written[0] if len(names) == 1 else type(results)(*written)


def safely_castable(operator):
    def check(have, want, name):
        if not can_cast(have, want):
            have, want = SCALAR_TYPE_NAMES[have], SCALAR_TYPE_NAMES[want]
            raise RuntimeError(
                f"torch.{operator}: Expected {name} to be safely castable from {have} dtype, "
                f"but got {name} with dtype {want}"
            )

    return check


def check_same_type(have, want, name):
    if have is not want:
        have, want = SCALAR_TYPE_NAMES[have], SCALAR_TYPE_NAMES[want]
        raise RuntimeError(
            f"torch.ormqr: Expected input and {name} to have the same dtype, but input has "
            f"dtype{have} and {name} has dtype {want}"
        )


writes_rows(geqrf, safely_castable("geqrf"), "a", "tau")
writes_rows(householder_product, safely_castable("linalg.householder_product"), "result")
writes_rows(ormqr, check_same_type, "result")


def check_lapack_type(t, kernel):
    kind = dtype_of(t)
    if kind.category < FLOAT or kind.itemsize == 2:
        raise not_implemented(kernel)(kind)


def check_matrices(t, operator, argument):
    if t._array.ndim < 2:
        raise RuntimeError(f"torch.{operator}: {argument} must have at least 2 dimensions.")


# ----------------------------------------------------------------------------------------------------- geqrf


def geqrf_one(a):
    """(R above the diagonal and the reflections of Q below it, tau)."""
    if not a.size:
        return a.copy(), np.zeros(min(a.shape), a.dtype)
    packed, tau, _, _ = lapack("geqrf", a)(a)
    return packed, tau


@geqrf.kernel
def geqrf_cpu(self):
    """Without a shape rule: PyTorch's has no answer on the Meta device."""
    check_matrices(self, "geqrf", "input")
    check_lapack_type(self, "geqrf_cpu")
    *batch, m, n = self._array.shape
    packed, tau = empty_cpu(columns(self)), empty_cpu(TensorMeta((*batch, min(m, n)), dtype_of(self)))
    each_matrix(geqrf_one, [self._array], [packed._array, tau._array])
    return return_types.geqrf(packed, tau)


@geqrf.backward
class GeqrfBackward0:
    def self(grads):
        raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


# ---------------------------------------------------------------------------------------- householder_product


def check_tau(input, tau, operator):
    batch = input._array.shape[:-2]
    if tau._array.ndim != len(batch) + 1:
        raise RuntimeError(
            f"torch.{operator}: Expected tau to have one dimension less than input, but got "
            f"tau.ndim equal to {tau._array.ndim} and input.ndim is equal to {len(batch) + 2}"
        )
    if tau._array.shape[:-1] != batch:
        raise RuntimeError(
            f"torch.{operator}: Expected batch dimensions of tau to be equal to "
            f"input.shape[:-2], but got {list(tau._array.shape[:-1])}"
        )


@householder_product.meta
def householder_product_meta(input, tau):
    name = "linalg.householder_product"
    check_matrices(input, name, "input")
    m, n = input._array.shape[-2:]
    if m < n:
        raise RuntimeError(f"torch.{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if tau._array.ndim and n < tau._array.shape[-1]:
        raise RuntimeError(f"torch.{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_tau(input, tau, name)
    ours, theirs = SCALAR_TYPE_NAMES[dtype_of(input)], SCALAR_TYPE_NAMES[dtype_of(tau)]
    if ours != theirs:
        raise RuntimeError(f"torch.{name}: tau dtype {theirs} does not match input dtype {ours}")
    return columns(input)


def named(real, a):
    """LAPACK calls a routine for orthogonal matrices `or…`, for unitary ones `un…`."""
    return lapack(real.replace("or", "un") if a.dtype.kind == "c" else real, a)


def householder_product_one(a, tau):
    """The first columns of the product, as many as `a` has."""
    if not a.size or not tau.size:
        return (np.eye(*a.shape, dtype=a.dtype),)
    return named("orgqr", a)(a, tau[0])[:1]


@householder_product.impl()
def householder_product_cpu(input, tau, out):
    check_lapack_type(input, "orgqr_cpu")
    each_matrix(householder_product_one, [input._array, tau._array[..., None, :]], [out._array])


@orgqr.compose
def orgqr_composite(self, input2):
    return householder_product.call(self, input2)


def reflections_backward(c, g, packed, tau):
    """The gradients of V and tau, where `g` is of (H_1 … H_k) c: see Note [ Products of reflections ]."""
    if not packed.numel() or not tau.numel():
        return None, None
    k = tau.shape[-1]
    V, S, inverse, T = compact_form(packed[..., :k], tau)
    MV, MhV = c.matmul(g.mH.matmul(V)), g.matmul(c.mH.matmul(V))  # M = c gᴴ: d(loss) = -Re tr(M d(V T Vᴴ))
    through_T = inverse.mH.matmul(-V.mH.matmul(MhV))
    to_S = -(tau.conj().unsqueeze(-1) * through_T.matmul(T.mH)).triu(1)
    to_V = V.matmul(to_S + to_S.mH) - MV.matmul(T) - MhV.matmul(T.mH)
    to_tau = (through_T - through_T.matmul(T.mH).matmul(S.mH)).diagonal(0, -2, -1)
    to_V = to_V.tril(-1)  # the rest of V is not read
    unused = packed.shape[-1] - k
    return (at.cat([to_V, at.zeros_like(packed[..., k:])], -1) if unused else to_V), to_tau


def compact_form(packed, tau):
    """(V, S, (I + D S)⁻¹, T) of Note [ Products of reflections ]."""
    m, k = packed.shape[-2:]
    V = packed.tril(-1) + at.eye(m, k, dtype=packed.dtype, device=packed.device)
    S = V.mH.matmul(V).triu(1)
    one = at.eye(k, dtype=packed.dtype, device=packed.device)
    inverse = at.linalg_solve_triangular(one + tau.unsqueeze(-1) * S, one, upper=True, unitriangular=True)
    return V, S, inverse, inverse * tau.unsqueeze(-2)


def reflections_jvp(packed, packed_t, tau, tau_t):
    """The change of (1 - V T Vᴴ), applied to the first columns of the identity: see Note [ Products of reflections ]."""
    k = tau.shape[-1]
    one = at.eye(*packed.shape[-2:], dtype=packed.dtype, device=packed.device)
    V, S, inverse, T = compact_form(packed[..., :k], tau)
    dV = packed_t[..., :k].tril(-1)
    half = dV.mH.matmul(V)
    dS = (half + V.mH.matmul(dV)).triu(1)
    dT = inverse.matmul(at.diag_embed(tau_t) - (tau_t.unsqueeze(-1) * S + tau.unsqueeze(-1) * dS).matmul(T))
    seen, dseen = V.mH.matmul(one), dV.mH.matmul(one)
    return -(dV.matmul(T.matmul(seen)) + V.matmul(dT.matmul(seen) + T.matmul(dseen)))


@householder_product.backward
class LinalgHouseholderProductBackward0:
    def input__tau(grad, input, tau):
        """The result is the product applied to the first columns of the identity."""
        one = at.eye(*input.shape[-2:], dtype=input.dtype, device=input.device)
        return reflections_backward(one, grad, input, tau)

    def result(input_p, input_t, tau_p, tau_t):
        return reflections_jvp(input_p, input_t, tau_p, tau_t)


# ----------------------------------------------------------------------------------------------------- ormqr


@ormqr.meta
def ormqr_meta(self, tau, other, left, transpose):
    check_matrices(self, "ormqr", "input")
    check_matrices(other, "ormqr", "other")
    side = -2 if left else -1
    rows, k = other._array.shape[side], tau.size(-1)
    if rows < k:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be greater than or equal to tau.shape[-1]")
    if rows != self._array.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if k != min(rows, self._array.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    check_tau(self, tau, "ormqr")
    check_other(self, other)
    check_same_type(dtype_of(self), dtype_of(tau), "tau")
    check_same_type(dtype_of(self), dtype_of(other), "other")
    return columns(other)


def check_other(self, other):
    if self._array.ndim != other._array.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {other._array.ndim} and input.ndim is equal to {self._array.ndim}"
        )
    if self._array.shape[:-2] != other._array.shape[:-2]:
        raise RuntimeError(
            "torch.ormqr: Expected batch dimensions of other to be equal to input.shape[:-2], "
            f"but got {list(other._array.shape[:-2])}"
        )


def ormqr_one(a, tau, c, left, transpose):
    if not c.size or not tau.size:
        return (c.copy(),)
    adjoint = "C" if a.dtype.kind == "c" else "T"
    apply, k = named("ormqr", a), tau.shape[-1]
    arguments = "L" if left else "R", adjoint if transpose else "N", np.asfortranarray(a[:, :k]), tau[0], c
    workspace = int(apply(*arguments, -1)[1][0].real)
    return apply(*arguments, workspace)[:1]


@ormqr.impl()
def ormqr_cpu(self, input2, input3, left, transpose, out):
    check_lapack_type(self, "ormqr_cpu")
    inputs = [self._array, input2._array[..., None, :], input3._array]
    each_matrix(lambda a, tau, c: ormqr_one(a, tau, c, left, transpose), inputs, [out._array])


@ormqr.backward
class OrmqrBackward0:
    def self__input2__input3(grad, self, input2, input3, left, transpose, grad_input_mask):
        """Each of the four products Q C, Qᴴ C, C Q, C Qᴴ is brought to the form Q c."""
        to_self = to_tau = to_other = None
        if grad_input_mask[2]:
            to_other = ormqr.call(self, input2, grad, left, not transpose)
        if grad_input_mask[0] or grad_input_mask[1]:
            c, g = (input3, grad) if left else (grad.mH, input3.mH)
            c, g = (g, c) if transpose else (c, g)
            to_self, to_tau = reflections_backward(c, g, self, input2)
        return to_self, to_tau, to_other
