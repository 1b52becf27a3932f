"""Products beyond the matrix product: tensordot, kron, bilinear, multi_dot, cross, vecdot, trace.

In PyTorch: `aten/src/ATen/native/{Linear,LinearAlgebra,Cross,ReduceOps}.cpp`.
Explained in the chapter "Layers, functional, init".
"""
import math
import warnings

import numpy as np

from ...c10.tensor_impl import dtype_of, wrap
from ...c10.wrap_dim import wrap_dim
from ..functions import at
from ..native_function import native_function, python_face
from .exact_out import c_name, exact_out, type_name
from .linear_algebra import inner, vdot
from .tensor_iterator import WIDENED, broadcast_error, compute, conj, result_type

BOTH = "function, method"

# -------------------------------------------------------------------------------------------------- tensordot

tensordot = native_function("tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> "
                            "Tensor", "", out=True)


@python_face("tensordot", "function")
def tensordot_face(a, b, dims=2, out=None):
    """Contracts dimensions of `a` with dimensions of `b`: a number of them, or two lists. In PyTorch:
    `torch/functional.py`."""
    if hasattr(dims, "_array"):
        if dims._array.size == 1:
            dims = int(dims.item())
        else:
            dims = dims.tolist()
    if isinstance(dims, (list, tuple)):
        dims_a, dims_b = ([d] if isinstance(d, int) else list(d) for d in dims)
    else:
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(a.dim(), b.dim()):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        dims_a, dims_b = list(range(-dims, 0)), list(range(dims))
    return (
        tensordot.call(a, b, dims_a, dims_b) if out is None else tensordot.out.call(a, b, dims_a, dims_b, out)
    )


def tensordot_types(out, result, *_):
    return (f"tensordot: Expected the output tensor to have dtype {type_name(result)}, but got an output "
            f"tensor with dtype "
            f"{type_name(out)}")


exact_out(tensordot, tensordot_types)


def inner_types(out, result, self, other):
    if self.dim() and other.dim():
        return tensordot_types(out, result)
    return f"result type {type_name(result)} can't be cast to the desired output type {type_name(out)}"


exact_out(inner, inner_types)


@tensordot.compose
def tensordot_composite(self, other, dims_self, dims_other):
    """Moves the contracted dimensions to the end of one operand and to the front of the other, and multiplies
    matrices."""
    if len(dims_self) != len(dims_other):
        raise RuntimeError("both dimension lists should have same length")
    if dtype_of(self) is not dtype_of(other):
        raise RuntimeError("both inputs should have same dtype")
    contracted = 1
    a, b = self._array.shape, other._array.shape
    for d, e in zip(dims_self, dims_other):
        if b[e] == 1:
            self = self.sum(d, True, dtype=self.dtype)
        elif a[d] == 1:
            other = other.sum(e, True, dtype=other.dtype)
        elif a[d] != b[e]:
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a[d]} in dim {d} "
                               f"and second has size "
                               f"{b[e]} in dim {e}")
        else:
            contracted *= a[d]
    dims_self, dims_other = (
        [wrap_dim(d, len(a)) for d in dims_self],
        [wrap_dim(d, len(b)) for d in dims_other],
    )
    rows = [d for d in range(len(a)) if d not in dims_self]
    columns = [d for d in range(len(b)) if d not in dims_other]
    sizes = [a[d] for d in rows], [b[d] for d in columns]
    left = self.permute(rows + dims_self).reshape((math.prod(sizes[0]), contracted))
    right = other.permute(dims_other + columns).reshape((contracted, math.prod(sizes[1])))
    return left.mm(right).reshape(sizes[0] + sizes[1])


# ------------------------------------------------------------------------------------------------------- kron

kron = native_function("kron(Tensor self, Tensor other) -> Tensor", BOTH, out=True)


@kron.compose
def kron_composite(self, other):
    """Each element of `self` times the whole of `other`: an outer product, its dimensions interleaved."""
    ndim = max(self._array.ndim, other._array.ndim)
    a = (1,) * (ndim - self._array.ndim) + self._array.shape
    b = (1,) * (ndim - other._array.ndim) + other._array.shape
    left = at._unsafe_view(self, [n for size in a for n in (size, 1)])
    right = at._unsafe_view(other, [n for size in b for n in (1, size)])
    return at._unsafe_view(left * right, [m * n for m, n in zip(a, b)])


# --------------------------------------------------------------------------------------------------- bilinear

bilinear = native_function("bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> "
                           "Tensor")
_trilinear = native_function("_trilinear(Tensor i1, Tensor i2, Tensor i3, int[] expand1, int[] expand2, "
                             "int[] expand3, int[] sumdim, "
                             "int unroll_dim=1) -> Tensor")


@bilinear.compose
def bilinear_composite(input1, input2, weight, bias):
    """y[…, k] = Σ x1[…, i] W[k, i, j] x2[…, j] + b[k]."""
    x, y, w = input1._array.shape, input2._array.shape, weight._array.shape
    if len(x) != len(y):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(x)} and {len(y)}")
    for i, (m, n) in enumerate(zip(x[:-1], y[:-1])):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}")
    for name, size, expected in (("input1", x[-1], w[1]), ("input2", y[-1], w[2])):
        if size != expected:
            raise RuntimeError(f"bilinear(): {name} size does not match weight size: got {size} but expected "
                               f"{expected}")
    if bias is not None and bias._array.shape[0] != w[0]:
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {bias._array.shape[0]} "
                           f"but expected {w[0]}")
    rows = math.prod(x[:-1])
    flat = _trilinear.call(
        input1.reshape((rows, x[-1])), weight, input2.reshape((rows, y[-1])), [1, 3], [0], [1, 2], [2, 3], 1
    )
    result = flat.reshape((*x[:-1], w[0]))
    return result if bias is None else result + bias


@_trilinear.kernel
def trilinear_cpu(i1, i2, i3, expand1, expand2, expand3, sumdim, unroll_dim):
    """The sum over `sumdim` of the product of three tensors, each of which lacks the dimensions in its
    `expand`.

    In PyTorch: a loop over one dimension, with a bmm in each step.
    """
    total = i1._array.ndim + len(expand1)
    spell = lambda absent: "".join(chr(97 + d) for d in range(total) if d not in absent)  # noqa: E731
    result = spell(sumdim)
    arrays, dtype = [t._array for t in (i1, i2, i3)], dtype_of(i1)

    def sum_of_products(equation, *arrays):
        return compute(lambda *x: np.einsum(equation, *x, optimize=True), arrays, dtype)

    if dtype.itemsize > 2:
        total_sum = sum_of_products(f"{spell(expand1)},{spell(expand2)},{spell(expand3)}->{result}", *arrays)
    else:  # two steps, rounded after each: first the sums that the third factor has no part in
        pair = spell(set(sumdim) & set(expand3) | set(expand1) & set(expand2))
        first = sum_of_products(f"{spell(expand1)},{spell(expand2)}->{pair}", *arrays[:2])
        total_sum = sum_of_products(f"{pair},{spell(expand3)}->{result}", first, arrays[2])
    return wrap(np.ascontiguousarray(total_sum))


@_trilinear.backward
class TrilinearBackward0:
    """The gradient of one factor is the same sum, in which the gradient stands in the factor's place."""

    def i1(grad, i2, i3, expand1, expand2, expand3, sumdim):
        return _trilinear.call(grad, conj(i2), conj(i3), sumdim, expand2, expand3, expand1, 1)

    def i2(grad, i1, i3, expand1, expand2, expand3, sumdim):
        return _trilinear.call(conj(i1), grad, conj(i3), expand1, sumdim, expand3, expand2, 1)

    def i3(grad, i1, i2, expand1, expand2, expand3, sumdim):
        return _trilinear.call(conj(i1), conj(i2), grad, expand1, expand2, sumdim, expand3, 1)


# ----------------------------------------------------------------------------------------- chains of matrices

multi_dot = native_function("linalg_multi_dot(Tensor[] tensors) -> "
                            "Tensor", module="linalg", name="multi_dot", out=True)
chain_matmul = native_function("chain_matmul(Tensor[] matrices) -> Tensor", "", out=True)


@multi_dot.compose
def multi_dot_composite(tensors):
    """The product of many matrices, in the order that costs the fewest multiplications. The ends may be
    vectors."""
    check_chain(tensors)
    first, last = tensors[0], tensors[-1]
    shape = (list(first._array.shape[:1]) if first._array.ndim == 2 else []) + (
        list(last._array.shape[1:]) if last._array.ndim == 2 else [])
    matrices = [*tensors]
    matrices[0] = first if first._array.ndim == 2 else first.unsqueeze(0)
    matrices[-1] = last if last._array.ndim == 2 else last.unsqueeze(-1)
    check_chain_sizes(matrices)
    return multiply_range(matrices, cheapest_splits(matrices), 0, len(matrices) - 1).view(shape)


exact_out(multi_dot, lambda out, result, *_: f"multi_dot(): expected out tensor to have dtype "
                                             f"{c_name(result)} but got {c_name(out)}")


def check_chain(tensors):
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for i, t in enumerate(tensors):
        ndim = t._array.ndim
        if i in (0, len(tensors) - 1):
            if ndim not in (1, 2):
                raise RuntimeError(f"multi_dot(): the {'first' if i == 0 else 'last'} tensor must be 1D or "
                                   f"2D but got {ndim}D")
        elif ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {ndim}D")


def check_chain_sizes(matrices):
    for i, (a, b) in enumerate(zip(matrices, matrices[1:])):
        if a._array.shape[1] != b._array.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a._array.shape)} and "
                               f"{list(b._array.shape)} "
                               "cannot be multiplied")


def cheapest_splits(matrices):
    """splits[i, j]: after which matrix to cut the product i … j, found from short products to long ones."""
    sizes = [m._array.shape[0] for m in matrices] + [matrices[-1]._array.shape[1]]
    count = len(matrices)
    cost, splits = {(i, i): 0 for i in range(count)}, {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], splits[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return splits


def multiply_range(matrices, splits, i, j):
    if i == j:
        return matrices[i]
    k = splits[i, j]
    return at.mm(multiply_range(matrices, splits, i, k), multiply_range(matrices, splits, k + 1, j))


@chain_matmul.compose
def chain_matmul_composite(matrices):
    warnings.warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use "
                  "torch.linalg.multi_dot instead, "
                  "which accepts a list of two or more tensors rather than multiple "
                  "parameters.", stacklevel=3)
    for t in matrices:
        if t._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {t._array.ndim}, expected 2 instead.")
    return matrices[0] if len(matrices) == 1 else multi_dot_composite(matrices)


@python_face("chain_matmul", "function")
def chain_matmul_face(*matrices, out=None):
    """The product of the matrices, in the cheapest order. In PyTorch: `torch/functional.py`."""
    return chain_matmul.call(matrices) if out is None else chain_matmul.out.call(matrices, out)


# ---------------------------------------------------------------------------------------------- cross, vecdot

linalg_cross = native_function("linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> "
                               "Tensor", module="linalg", name="cross", out=True)
cross = native_function("cross(Tensor self, Tensor other, int? dim=None) -> Tensor", BOTH, out=True)


exact_out(linalg_cross)
exact_out(cross)


@linalg_cross.kernel
def linalg_cross_cpu(self, other, dim):
    x, y = self._array, other._array
    if x.ndim != y.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    axis = wrap_dim(dim, x.ndim)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise RuntimeError(f"linalg.cross: inputs dimension {dim} must have length 3. Got {x.shape[axis]} "
                           f"and {y.shape[axis]}")
    if broadcast_error(x.shape, y.shape) is not None:
        raise broadcast_error(x.shape, y.shape)
    common = result_type(self, other)
    if common.itemsize == 2:  # PyTorch rounds each step of this one to 16 bits
        return wrap(np.ascontiguousarray(np.cross(x.astype(common.numpy), y.astype(common.numpy), axis=axis)))
    return wrap(np.ascontiguousarray(compute(lambda x, y: np.cross(x, y, axis=axis), (x, y), common)))


@linalg_cross.backward
class LinalgCrossBackward0:
    def self(grad, other, dim):
        return linalg_cross.call(conj(other), grad, dim)

    def other(grad, self, dim):
        return linalg_cross.call(grad, conj(self), dim)


@cross.compose
def cross_composite(self, other, dim):
    """Without `dim` it looks for the first dimension of size 3."""
    if dim is None:
        warnings.warn("Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass "
                      "the dim explicitly or simply "
                      "use torch.linalg.cross.\nThe default value of dim will change to agree with that of "
                      "linalg.cross in a future "
                      "release.", stacklevel=3)
        dim = next((d for d, n in enumerate(self._array.shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross.call(self, other, dim)


vecdot = native_function("linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> "
                         "Tensor", module="linalg", name="vecdot", out=True)


@vecdot.compose
def vecdot_composite(x, y, dim):
    if dtype_of(x).category < 2:
        raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got "
                           f"{x.dtype}".replace("torch.", ""))
    if dtype_of(x) is not dtype_of(y):
        raise RuntimeError("linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
                           f"{x.dtype} and y of type {y.dtype} instead".replace("torch.", ""))
    if x._array.ndim == y._array.ndim == 1:
        return vdot.call(x, y)
    return (conj(x) * y).sum(dim)


# ------------------------------------------------------------------------------------------------------ trace

trace = native_function("trace(Tensor self) -> Tensor", BOTH)


@trace.kernel
def trace_cpu(self):
    x = self._array
    if x.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {x.ndim}")
    target = np.dtype(np.int64) if x.dtype.kind in "iub" else x.dtype
    return wrap(np.asarray(np.trace(x, dtype=WIDENED.get(x.dtype, target)), target))


@trace.backward
class TraceBackward0:
    def self(grad, self_sym_sizes):
        return grad * at.eye(*self_sym_sizes, dtype=grad.dtype, device=grad.device)
