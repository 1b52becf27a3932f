"""Products that are added to something, beta * self + alpha * (a @ b): addmm, addmv, addr, baddbmm, addbmm.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp` and `aten/src/ATen/native/Blas.cpp`.
Explained in the chapter "One training step, end to end".
"""

import functools

import numpy as np

from readtorch.aten.native.binary_ops.arithmetic import maybe_multiply
from readtorch.aten.native.cpu_blas import gemm, multiply
from readtorch.aten.native.exact_out import exact_out
from readtorch.aten.native.functions_manual import scaled_by
from readtorch.aten.native.tensor_iterator import F4, WIDENED, cast, compute, conj, laid_out, result_type
from readtorch.aten.native.tensor_shape.view import expand_cpu
from readtorch.aten.native_function import BOTH, native_function
from readtorch.aten.register_dispatch_key import inplace_kernel
from readtorch.aten.tensor_meta import TensorMeta, pointwise_strides
from readtorch.c10.overflows import check_fits, number_as
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .matmul import check_batches, check_inner_sizes, mm_mat1_backward, mm_mat2_backward, product, refuse_bool

_SCALES = "*, Scalar beta=1, Scalar alpha=1"


def factor(number, t, numpy_dtype):
    """alpha or beta; for 16-bit floats in float32. Raises RuntimeError if the type of `t` cannot hold the number."""
    return number_as(number, op_math_type(dtype_of(t))).astype(numpy_dtype)


def scaled_sum(self, value, beta, alpha):
    """beta * self + alpha * value, written into `value`, which nobody else holds. With beta 0 even a nan in `self`
    is ignored."""
    x = self._array
    if x.shape != value.shape:
        expand_cpu(self, value.shape, False)  # raises if it does not fit
    if alpha != 1:
        np.multiply(value, factor(alpha, self, value.dtype), out=value, casting="unsafe")
    if beta == 1:
        np.add(value, x, out=value, casting="unsafe")
    elif beta != 0:
        np.add(value, np.multiply(x, factor(beta, self, value.dtype), dtype=value.dtype, casting="unsafe"), out=value)
    return value


def add_product(self, left, right, beta, alpha):
    """beta * self + alpha * left @ right on arrays. 16-bit floats are computed in float32 and rounded once."""
    wide = WIDENED.get(left.dtype)
    if wide is None:
        return wrap(scaled_sum(self, product(left, right), beta, alpha))
    value = scaled_sum(self, multiply(cast(left, wide), cast(right, wide)), beta, alpha)
    return wrap(cast(value, left.dtype))


# ------------------------------------------------------------------------------------------------------ addmm

addmm = native_function(
    f"addmm(Tensor self, Tensor mat1, Tensor mat2, {_SCALES}) -> Tensor",
    BOTH,
    inplace=True,
    out=exact_out(),
    direct=True,
)


@addmm.meta
def addmm_meta(self, mat1, mat2, *_):
    check_addmm(self, mat1, mat2)
    return TensorMeta((mat1._array.shape[0], mat2._array.shape[1]), dtype_of(self))


def check_addmm(self, mat1, mat2):
    for name, t in (("mat1", mat1), ("mat2", mat2)):
        if t._array.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix, got {t._array.ndim}-D tensor")
    check_inner_sizes(mat1._array, mat2._array)
    expand_cpu(self, (mat1._array.shape[0], mat2._array.shape[1]), False)  # raises if it does not fit
    if self._array.dtype != mat2._array.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {type_name(self)} and {type_name(mat2)}")
    if mat1._array.dtype != mat2._array.dtype:
        raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {type_name(mat1)} and {type_name(mat2)}")


@addmm.kernel
def addmm_cpu(self, mat1, mat2, beta, alpha):
    bias, x, y = self._array, mat1._array, mat2._array
    if beta == 1 == alpha and x.dtype is F4 is y.dtype and bias.dtype is F4 and x.ndim == 2 == y.ndim:
        result = add_to_bias(bias, x, y)
        if result is not None:
            return wrap(result)
    check_addmm(self, mat1, mat2)
    refuse_bool(mat1, "addmm_impl_cpu_")
    return add_product(self, x, y, beta, alpha)


def add_to_bias(bias, x, y):
    """bias + x @ y for float32 matrices that are not empty; None if the sizes do not fit.

    The bias is laid out first: BLAS then adds to it what it computes.
    """
    rows, inner = x.shape
    length, columns = y.shape
    if length != inner or bias.shape != (columns,) or 0 in (rows, inner, columns):
        return None
    if rows == 1:  # one example: to add a vector to a vector NumPy need not set up a broadcast
        out = x.dot(y)
        row = out[0]
        row += bias
        return out
    out = np.empty((rows, columns), F4)
    if inner >= 256 and columns >= 4 * rows and not y.flags.c_contiguous:
        add_by_columns(bias, x, y, out)
    else:
        out[...] = bias
        gemm(x, y, out)
    return out


def add_by_columns(bias, x, y, out):
    """The same for a few examples and a wide layer, as yᵀ xᵀ: with the long side first BLAS is up to a quarter
    faster, which pays for the pass that turns the result."""
    turned = np.empty(out.shape[::-1], F4)
    gemm(y.T, x.T, turned, 0.0)
    add_transposed()(turned, bias, out)


@functools.cache
def add_transposed():
    """The compiled loop; imported when first needed."""
    from readtorch.aten.native.cpu.blas_kernel import add_transposed

    return add_transposed


@addmm.backward
class AddmmBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def mat1(grad, mat2, mat1_sym_sizes, mat1_byte_strides, alpha):
        return mm_mat1_backward(grad, mat2, mat1_sym_sizes, mat1_byte_strides, alpha)

    def mat2(grad, mat1, mat2_sym_sizes, mat2_byte_strides, alpha):
        return mm_mat2_backward(grad, mat1, mat2_sym_sizes, mat2_byte_strides, alpha)

    def result(self_t, mat1_p, mat1_t, mat2_p, mat2_t, beta, alpha):
        product = mat1_t.mm(mat2_p) + mat1_p.mm(mat2_t)
        return scaled_by(self_t, beta) + scaled_by(product, alpha)


# ------------------------------------------------------------------------------------------------ addmv, addr

addmv = native_function(
    f"addmv(Tensor self, Tensor mat, Tensor vec, {_SCALES}) -> Tensor", BOTH, inplace=True, out=exact_out(), direct=True
)


@addmv.meta
def addmv_meta(self, mat, vec, *_):
    check_addmv(self, mat, vec)
    return TensorMeta(mat._array.shape[:1], dtype_of(self))


def check_addmv(self, mat, vec):
    bias, x, y = self._array, mat._array, vec._array
    if x.ndim != 2 or y.ndim != 1 or bias.ndim > 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got {bias.ndim}, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.shape[0] or bias.size not in (1, x.shape[0]):
        raise RuntimeError(
            f"size mismatch, got input ({bias.size}), mat ({x.shape[0]}x{x.shape[1]}), vec ({y.shape[0]})"
        )
    if not x.dtype == y.dtype == bias.dtype:
        raise RuntimeError(
            "addmv input tensors must have the same dtype, but got "
            f"{type_name(self)}, {type_name(mat)}, and {type_name(vec)}"
        )


@addmv.kernel
def addmv_cpu(self, mat, vec, beta, alpha):
    check_addmv(self, mat, vec)
    refuse_bool(mat, "addmv_impl_cpu")
    return add_product(self, mat._array, vec._array, beta, alpha)


@addmv.backward
class AddmvBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def mat(grad, vec, alpha):
        return maybe_multiply(grad.ger(conj(vec)), alpha.conjugate())

    def vec(grad, mat, alpha):
        return maybe_multiply(conj(mat.t()).mv(grad), alpha.conjugate())

    def result(self_t, mat_p, mat_t, vec_p, vec_t, beta, alpha):
        product = mat_t.mv(vec_p) + mat_p.mv(vec_t)
        return scaled_by(self_t, beta) + scaled_by(product, alpha)


addr = native_function(
    f"addr(Tensor self, Tensor vec1, Tensor vec2, {_SCALES}) -> Tensor", BOTH, inplace=True, out=True, direct=True
)


@addr.meta
def addr_meta(self, vec1, vec2, *_):
    """Unlike its relatives, this one is a loop: it promotes its operands' types, and lies as they do."""
    x, y = vec1._array, vec2._array
    check_addr(self, vec1, vec2)
    shape = x.size, y.size
    strides = pointwise_strides(shape, [self._array, x[:, None], y])
    return TensorMeta(shape, result_type(self, vec1, vec2), strides)


def check_addr(self, vec1, vec2):
    for name, t in (("vec1", vec1), ("vec2", vec2)):
        if t._array.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument {name}, but got {t._array.ndim}-D")
    expand_cpu(self, (vec1._array.size, vec2._array.size), False)


@addr.kernel
def addr_cpu(self, vec1, vec2, beta, alpha):
    check_addr(self, vec1, vec2)
    common = result_type(self, vec1, vec2)
    check_fits(beta, common)
    check_fits(alpha, common)

    def rounded(a):  # in PyTorch: computed in the type itself, so 16-bit numbers are rounded at each step
        return a.astype(common.numpy).astype(a.dtype) if common.itemsize == 2 else a

    def rank_one_update(bias, x, y):
        if bias.dtype.kind == "b":
            update = np.outer(x, y) if alpha else np.zeros((x.size, y.size), bool)
            return bias | update if beta else update
        update = rounded(np.outer(rounded(rounded(np.asarray(alpha, x.dtype)) * x), y))
        return update if beta == 0 else rounded(rounded(np.asarray(beta, x.dtype)) * bias) + update

    bias, x, y = self._array, vec1._array, vec2._array
    value = compute(rank_one_update, (bias, x, y), common)
    return wrap(value if bias.flags.c_contiguous else laid_out(value, bias, x[:, None], y))


@addr.backward
class AddrBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def vec1(grad, vec2, alpha):
        return maybe_multiply(grad.mv(conj(vec2)), alpha.conjugate())

    def vec2(grad, vec1, alpha):
        return maybe_multiply(grad.t().mv(conj(vec1)), alpha.conjugate())

    def result(self_t, vec1_p, vec1_t, vec2_p, vec2_t, beta, alpha):
        product = vec1_t.outer(vec2_p) + vec1_p.outer(vec2_t)
        return scaled_by(self_t, beta) + scaled_by(product, alpha)


# ------------------------------------------------------------------------------------------- batched products

baddbmm = native_function(
    f"baddbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor", BOTH, inplace=True, out=exact_out()
)


@baddbmm.meta
def baddbmm_meta(self, batch1, batch2, *_):
    check_batches(batch1, batch2)
    x, y = batch1._array, batch2._array
    shape = x.shape[0], x.shape[1], y.shape[2]
    expand_cpu(self, shape, False)
    if not self._array.dtype == x.dtype == y.dtype:
        names = [str(t.dtype).removeprefix("torch.") for t in (self, batch1, batch2)]
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {names[0]}, batch1: {names[1]}, batch2: {names[2]}"
        )
    return TensorMeta(shape, dtype_of(self))


@baddbmm.kernel
def baddbmm_cpu(self, batch1, batch2, beta, alpha):
    baddbmm_meta(self, batch1, batch2)
    refuse_bool(batch1, "baddbmm")
    return add_product(self, batch1._array, batch2._array, beta, alpha)


derived_baddbmm_ = inplace_kernel(baddbmm)


@baddbmm.inplace.meta
def baddbmm_meta_(self, batch1, batch2, *_):
    baddbmm_meta(self, batch1, batch2)


@baddbmm.inplace.kernel
def baddbmm_cpu_(self, batch1, batch2, beta, alpha):
    """Of an expanded `self` an element takes up the product of each place that shows it, one after the other."""
    r, x, y = self._array, batch1._array, batch2._array
    if 0 not in r.strides or not r.size:
        return derived_baddbmm_(self, batch1, batch2, beta, alpha)
    baddbmm_meta(self, batch1, batch2)
    refuse_bool(batch1, "baddbmm")
    for b, i, j in np.ndindex(r.shape):
        product = alpha * x[b, i].dot(y[b, :, j])
        r[b, i, j] = product + beta * r[b, i, j] if beta else product
    return self


@baddbmm.backward
class BaddbmmBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def batch1(grad, batch2, alpha):
        return maybe_multiply(grad.bmm(conj(batch2.transpose(1, 2))), alpha.conjugate())

    def batch2(grad, batch1, alpha):
        return maybe_multiply(conj(batch1.transpose(1, 2)).bmm(grad), alpha.conjugate())

    def result(self_t, batch1_p, batch1_t, batch2_p, batch2_t, beta, alpha):
        product = batch1_t.bmm(batch2_p) + batch1_p.bmm(batch2_t)
        return scaled_by(self_t, beta) + scaled_by(product, alpha)


addbmm = native_function(
    f"addbmm(Tensor self, Tensor batch1, Tensor batch2, {_SCALES}) -> Tensor", BOTH, inplace=True, out=exact_out()
)


@addbmm.meta
def addbmm_meta(self, batch1, batch2, *_):
    check_batches(batch1, batch2)
    x, y = batch1._array, batch2._array
    shape = x.shape[1], y.shape[2]
    expand_cpu(self, shape, False)
    if self._array.dtype != y.dtype:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {type_name(self)} and {type_name(batch2)}")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"mat1 and mat2 must have the same dtype, but got {type_name(batch1)} and {type_name(batch2)}"
        )
    return TensorMeta(shape, dtype_of(self))


@addbmm.kernel
def addbmm_cpu(self, batch1, batch2, beta, alpha):
    """The sum of a batch of products is one product: of the matrices laid side by side."""
    addbmm_meta(self, batch1, batch2)
    refuse_bool(batch1, "addbmm_impl_cpu_")
    x, y = batch1._array, batch2._array
    if x.dtype.itemsize == 2:  # PyTorch adds one product at a time, rounding each sum to 16 bits
        for a, b in zip(x, y):
            self, beta = add_product(self, a, b, beta, alpha), 1
        return self
    wide = x.transpose(1, 0, 2).reshape(x.shape[1], -1)
    return add_product(self, wide, y.reshape(-1, y.shape[2]), beta, alpha)


@addbmm.backward
class AddbmmBackward0:
    def self(grad, beta):
        return maybe_multiply(grad, beta.conjugate())

    def batch1(grad, batch1_sym_sizes, batch2, batch2_sym_sizes, alpha):
        sizes = (batch1_sym_sizes[0], batch1_sym_sizes[1], batch2_sym_sizes[2])
        return maybe_multiply(grad.unsqueeze(0).expand(sizes).bmm(conj(batch2.transpose(1, 2))), alpha.conjugate())

    def batch2(grad, batch1, batch1_sym_sizes, batch2_sym_sizes, alpha):
        sizes = (batch1_sym_sizes[0], batch1_sym_sizes[1], batch2_sym_sizes[2])
        return maybe_multiply(conj(batch1.transpose(1, 2)).bmm(grad.unsqueeze(0).expand(sizes)), alpha.conjugate())

    def result(self_t, batch1_p, batch1_t, batch2_p, batch2_t, beta, alpha):
        product = batch1_t.bmm(batch2_p).sum(0) + batch1_p.bmm(batch2_t).sum(0)
        return scaled_by(self_t, beta) + scaled_by(product, alpha)
