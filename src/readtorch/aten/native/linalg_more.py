"""linalg.cond, diagonal, tensorinv, tensorsolve, vander: what is made of the other operators of
`readtorch.linalg`.

In PyTorch: `aten/src/ATen/native/{LinearAlgebra,BatchLinearAlgebra}.cpp`.
"""

import math

from ...c10.scalar_type import BOOL
from ...c10.tensor_impl import dtype_of, type_name
from ..functions import at
from ..native_function import native_function
from .exact_out import exact_out
from .linalg_common import check_square

LINALG = {"module": "linalg", "out": True}

cond = native_function("linalg_cond(Tensor self, Scalar? p=None) -> Tensor", name="cond", **LINALG)
cond_by_name = native_function("linalg_cond.p_str(Tensor self, str p) -> Tensor", name="cond", **LINALG)
linalg_diagonal = native_function(
    "linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
    module="linalg",
    name="diagonal",
)
tensorinv = native_function("linalg_tensorinv(Tensor self, int ind=2) -> Tensor", name="tensorinv", **LINALG)
tensorsolve = native_function(
    "linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor", name="tensorsolve", **LINALG
)
vander = native_function(
    "linalg_vander(Tensor x, *, SymInt? N=None) -> Tensor", module="linalg", name="vander"
)

linalg_diagonal.compose(lambda A, offset, dim1, dim2: A.diagonal(offset, dim1, dim2))

# ------------------------------------------------------------------------------------------- condition number


@cond.compose
def cond_composite(self, p):
    """How much errors grow when an equation with this matrix is solved; p: the norm it is measured in."""
    if self._array.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor must have at least 2 dimensions.")
    if p is None or abs(p) == 2:
        return ratio_of_singular_values(self, smallest_first=p == -2)
    if abs(p) not in (1, math.inf):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    return product_of_norms(self, p, f"linalg.cond(ord={p})")


def ratio_of_singular_values(self, smallest_first):
    if not self._array.size:
        return at.new_zeros(self, self._array.shape[:-2], dtype=dtype_of(self).to_real())
    values = at.linalg_svdvals(self)
    first, last = values.narrow(-1, 0, 1), values.narrow(-1, -1, 1)
    return (last / first if smallest_first else first / last).squeeze(-1)


def product_of_norms(self, p, name):
    """|A| |A⁻¹|; inf for a singular matrix."""
    check_square(self, name)
    if not self._array.size:
        return at.new_zeros(self, self._array.shape[:-2], dtype=dtype_of(self).to_real())
    inverse, info = at.linalg_inv_ex(self)
    inverse = inverse.masked_fill(info.unsqueeze(-1).unsqueeze(-1) > 0, math.inf)
    return at.linalg_norm(self, p, (-2, -1)) * at.linalg_norm(inverse, p, (-2, -1))


@cond_by_name.compose
def cond_by_name_composite(self, p):
    if p not in ("fro", "nuc"):
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    return product_of_norms(self, p, f"linalg.cond(ord={p})")


exact_out(cond)
exact_out(cond_by_name)

# ----------------------------------------------------------------------------------- tensors seen as matrices


@tensorinv.compose
def tensorinv_composite(self, ind):
    """The inverse of the matrix whose rows are the first `ind` dimensions and whose columns are the others.
    """
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    rows, columns = self._array.shape[:ind], self._array.shape[ind:]
    n = math.prod(columns)
    if n != math.prod(rows):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but "
            f"got {n} != {math.prod(rows)}"
        )
    return at.linalg_inv(self.reshape((n, n))).reshape((*columns, *rows))


@tensorsolve.compose
def tensorsolve_composite(self, other, dims):
    """X in tensordot(self, X, X.ndim) = other; `dims` of self are moved to its end first."""
    ndim = self._array.ndim
    if dims is not None:
        self = self.movedim(tuple(dims), tuple(range(ndim - len(dims), ndim)))
    shape = self._array.shape[other._array.ndim :]
    rows = math.prod(self._array.shape[: other._array.ndim])
    if math.prod(shape) != rows:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {math.prod(shape)} != {rows}"
        )
    return at.linalg_solve(self.reshape((rows, rows)), other.flatten()).reshape(shape)


exact_out(tensorinv, row_major=True)
exact_out(tensorsolve)


@vander.compose
def vander_composite(x, N):
    """A row 1, x, x², … for each x."""
    if dtype_of(x).category == BOOL:
        raise RuntimeError(
            f"linalg.vander supports floating point, complex, and integer tensors, but got {type_name(x)}"
        )
    x = x if x._array.ndim else x.unsqueeze(-1)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = x.unsqueeze(-1).expand((*x._array.shape, count - 1)).cumprod(-1)
    return at.cat([at.new_ones(powers, (*x._array.shape, 1)), powers], -1)
