"""Singular values of large matrices, nearly: a random subspace that holds most of the matrix is found first.

In PyTorch: `torch/_lowrank.py`. The algorithms are 4.4 and 5.1 of N. Halko, P. Martinsson, J. Tropp: Finding
structure with randomness (2009).
"""

from .aten.functions import at
from .c10 import scalar_type
from .linalg import qr, svd


def get_approximate_basis(A, q, niter=2, M=None):
    """Q (*, m, q) with orthonormal columns, so that Q Qᴴ (A - M) is nearly A - M.

    Random combinations of the columns; each of `niter` rounds of multiplying with Aᴴ and A turns them further
    towards the directions of the largest singular values.
    """

    def apply(matrix, mean, x):
        product = matrix.matmul(x)
        return product if mean is None else product - mean.matmul(x)

    niter = 2 if niter is None else niter
    Q = qr(apply(A, M, at.randn(A.shape[-1], q, dtype=floating_dtype(A), device=A.device))).Q
    for _ in range(niter):
        Q = qr(apply(A.mH, None if M is None else M.mH, Q)).Q
        Q = qr(apply(A, M, Q)).Q
    return Q


def floating_dtype(A):
    return A.dtype if A.dtype.is_floating_point or A.dtype.is_complex else scalar_type.float32


def svd_lowrank(A, q=6, niter=2, M=None):
    """(U, S, V) with A - M nearly U diag(S) Vᴴ, q of each: (*, m, n) -> (*, m, q), (*, q), (*, n, q)."""
    q = 6 if q is None else q
    M = None if M is None else M.broadcast_to(A.shape)
    wide = A.shape[-2] < A.shape[-1]
    if wide:
        A, M = A.mH, None if M is None else M.mH
    Q = get_approximate_basis(A, q, niter, M)
    B = Q.mH.matmul(A)
    B = B if M is None else B - Q.mH.matmul(M)
    U, S, Vh = svd(B, full_matrices=False)
    U, V = Q.matmul(U), Vh.mH
    return (V, S, U) if wide else (U, S, V)


def pca_lowrank(A, q=None, center=True, niter=2):
    """The main directions of the rows of A, nearly: svd_lowrank of A less its mean row. Raises ValueError."""
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(-2, True) if center else A, q, niter)
