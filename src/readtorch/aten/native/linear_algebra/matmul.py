"""Matrix products: mm, bmm, mv, dot, and matmul, which chooses among them.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp` and `aten/src/ATen/native/Blas.cpp`.
Explained in the chapter "One operator call".
"""

import math

import numpy as np

from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.arithmetic import maybe_multiply
from readtorch.aten.native.copy import plain_alias
from readtorch.aten.native.cpu_blas import multiply, multiply_matrices
from readtorch.aten.native.exact_out import c_name, exact_out, expected_dtype
from readtorch.aten.native.math_bits_fallback import clone
from readtorch.aten.native.tensor_iterator import F4, WIDENED, cast, conj
from readtorch.aten.native_function import BOTH, below_autograd, native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import CONJUGATE, MATH_BITS, ZEROTENSOR
from readtorch.c10.tensor_impl import dtype_of, flipped, type_name, wrap, wrap_result


def refuse_bool(t, kernel_name):
    if t._array.dtype.kind == "b":
        raise NotImplementedError(f"\"{kernel_name}\" not implemented for 'Bool'")


def product(x, y):
    """`x @ y` for arrays of one type; 16-bit floats are widened, because NumPy would add them up in 16 bits."""
    wide = WIDENED.get(x.dtype)
    if wide is not None:
        return cast(multiply(cast(x, wide), cast(y, wide)), x.dtype)
    return multiply(x, y)


# -------------------------------------------------------------------------------------------- matrix @ matrix

mm = native_function("mm(Tensor self, Tensor mat2) -> Tensor", BOTH, out=exact_out(), direct=True)


@mm.meta
def mm_meta(self, mat2):
    check_mm(self, mat2)
    return TensorMeta((self._array.shape[0], mat2._array.shape[1]), dtype_of(self))


def check_mm(self, mat2):
    x, y = self._array, mat2._array
    if x.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if y.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    check_inner_sizes(x, y)
    if x.dtype != y.dtype:
        both = "mat1 and mat2" if self.device.type == "cuda" else "m1 and m2"
        raise RuntimeError(f"expected {both} to have the same dtype, but got: {c_name(self)} != {c_name(mat2)}")


def check_inner_sizes(x, y):
    if x.shape[1] != y.shape[0]:
        raise inner_sizes_error(x, y)


def inner_sizes_error(x, y):
    return RuntimeError(
        f"mat1 and mat2 shapes cannot be multiplied ({x.shape[0]}x{x.shape[1]} and {y.shape[0]}x{y.shape[1]})"
    )


@mm.kernel
def mm_cpu(self, mat2):
    x, y = self._array, mat2._array
    if x.ndim == 2 == y.ndim and x.dtype is F4 is y.dtype:
        try:
            return wrap(multiply_matrices(x, y))
        except ValueError:
            raise inner_sizes_error(x, y) from None
    check_mm(self, mat2)
    refuse_bool(self, "addmm_impl_cpu_")
    return wrap(product(x, y))


def is_column_major(sizes, byte_strides):
    """In PyTorch: strides are saved in elements, and the first must be 1."""
    return byte_strides[1] == byte_strides[0] * sizes[0] and byte_strides[0] < byte_strides[1]


def mm_mat1_backward(grad, mat2, sizes, byte_strides, alpha):
    """The gradient of `mat1`, laid out like `mat1`, so that accumulating it later reads memory in order."""
    if is_column_major(sizes, byte_strides):
        return maybe_multiply(conj(mat2).mm(grad.t()).t(), alpha.conjugate())
    return maybe_multiply(grad.mm(conj(mat2.t())), alpha.conjugate())


def mm_mat2_backward(grad, mat1, sizes, byte_strides, alpha):
    if is_column_major(sizes, byte_strides):
        return maybe_multiply(grad.t().mm(conj(mat1)).t(), alpha.conjugate())
    return maybe_multiply(conj(mat1.t()).mm(grad), alpha.conjugate())


@mm.backward
class MmBackward0:
    def self(grad, mat2, self_sym_sizes, self_byte_strides):
        return mm_mat1_backward(grad, mat2, self_sym_sizes, self_byte_strides, 1)

    def mat2(grad, self, mat2_sym_sizes, mat2_byte_strides):
        return mm_mat2_backward(grad, self, mat2_sym_sizes, mat2_byte_strides, 1)

    def result(self_p, self_t, mat2_p, mat2_t):
        return self_t.mm(mat2_p) + self_p.mm(mat2_t)


bmm = native_function("bmm(Tensor self, Tensor mat2) -> Tensor", BOTH, out=exact_out(), direct=True)


def check_batches(batch1, batch2):
    x, y = batch1._array, batch2._array
    if x.ndim != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if y.ndim != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if x.shape[0] != y.shape[0] or x.shape[2] != y.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{x.shape[0]}, "
            f"{x.shape[2]}] but got: [{y.shape[0]}, {y.shape[1]}]."
        )


@bmm.meta
def bmm_meta(self, mat2):
    check_bmm(self, mat2)
    return TensorMeta((*self._array.shape[:2], mat2._array.shape[2]), dtype_of(self))


def check_bmm(self, mat2):
    check_batches(self, mat2)
    if self._array.dtype != mat2._array.dtype:
        raise RuntimeError(f"expected scalar type {type_name(self)} but found {type_name(mat2)}")


@bmm.kernel
def bmm_cpu(self, mat2):
    check_bmm(self, mat2)
    refuse_bool(self, "bmm")
    return wrap(np.ascontiguousarray(product(self._array, mat2._array)))


@bmm.backward
class BmmBackward0:
    def self(grad, mat2):
        return grad.bmm(conj(mat2.transpose(1, 2)))

    def mat2(grad, self):
        return conj(self.transpose(1, 2)).bmm(grad)

    def result(self_p, self_t, mat2_p, mat2_t):
        return self_t.bmm(mat2_p) + self_p.bmm(mat2_t)


# --------------------------------------------------------------------------- matrix @ vector, vector · vector


def mv_types(out, _, mat, vec):
    types = f"{type_name(out)}, {type_name(mat)}, and {type_name(vec)}"
    return f"addmv input tensors must have the same dtype, but got {types}"


mv = native_function("mv(Tensor self, Tensor vec) -> Tensor", BOTH, out=exact_out(mv_types), direct=True)


@mv.meta
def mv_meta(self, vec):
    check_mv(self, vec)
    return TensorMeta(self._array.shape[:1], dtype_of(self))


def check_mv(self, vec):
    x, y = self._array, vec._array
    if x.ndim != 2 or y.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {x.ndim}, {y.ndim}")
    if x.shape[1] != y.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({x.shape[0]}), mat ({x.shape[0]}x{x.shape[1]}), vec ({y.shape[0]})"
        )
    if x.dtype != y.dtype:
        raise RuntimeError(mv_types(vec, None, self, vec))


@mv.kernel
def mv_cpu(self, vec):
    check_mv(self, vec)
    refuse_bool(self, "addmv_impl_cpu")
    return wrap(product(self._array, vec._array))


@mv.backward
class MvBackward0:
    def self(grad, vec):
        return grad.ger(conj(vec))

    def vec(grad, self):
        return conj(self).t().mv(grad)

    def result(self_p, self_t, vec_p, vec_t):
        return self_t.mv(vec_p) + self_p.mv(vec_t)


def dot_types(out, result, *_):
    return f"result dtype {type_name(out)} does not match input dtype {type_name(result)}"


dot = native_function("dot(Tensor self, Tensor tensor) -> Tensor", BOTH, out=exact_out(dot_types), direct=True)
vdot = native_function("vdot(Tensor self, Tensor other) -> Tensor", BOTH, out=exact_out(dot_types), direct=True)


@dot.meta
@vdot.meta
def dot_meta(self, other):
    check_dot(self, other)
    return TensorMeta((), dtype_of(self))


def check_dot(self, other):
    x, y = self._array, other._array
    if x.ndim != 1 or y.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {x.ndim}D and {y.ndim}D tensors")
    if x.dtype != y.dtype:
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {type_name(self)} and {type_name(other)}"
        )
    if x.shape != y.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{x.size}] and src [{y.size}] to have the same "
            f"number of elements, but got {x.size} and {y.size} elements respectively"
        )


@dot.kernel
def dot_cpu(self, tensor):
    check_dot(self, tensor)
    refuse_bool(self, "dot")
    return wrap_result(product(self._array, tensor._array))


@dot.backward
class DotBackward0:
    def self(grad, tensor):
        return grad * conj(tensor)

    def tensor(grad, self):
        return grad * conj(self)

    def result(self_p, self_t, tensor_p, tensor_t):
        return self_t.dot(tensor_p) + self_p.dot(tensor_t)


@vdot.kernel
def vdot_cpu(self, other):
    check_dot(self, other)
    refuse_bool(self, "vdot")
    x = self._array
    return wrap_result(product(x.conj() if x.dtype.kind == "c" else x, other._array))


# Note [ Products of conjugates ]
# `dot` and `vdot` are given the key Conjugate, for each is the other one with an operand conjugated. Where both operands of
# `dot` have it, or the second of `vdot` alone, the conjugate of the product is what is computed: the result has the key, too.


def of_conjugates(both):
    """What `with_math_bits` makes of a kernel. both: whether the product is conjugated if both operands are, else if the second is."""

    def given_bits(kernel):
        def product_of_conjugates(self, other):
            if (self._keys | other._keys) & ZEROTENSOR:
                return at._efficientzerotensor((), dtype=self.dtype, device=self.device)
            first, second = bool(self._keys & CONJUGATE), bool(other._keys & CONJUGATE)
            if second and first is both:
                if both:
                    return flipped(kernel(plain_alias(self), plain_alias(other)), CONJUGATE)
                with below_autograd():
                    return flipped(dot.call(self, plain_alias(other)), CONJUGATE)
            return kernel(*[clone(t) if t._keys & MATH_BITS else t for t in (self, other)])

        return product_of_conjugates

    return given_bits


dot.math_bits_kernel = of_conjugates(both=True)
vdot.math_bits_kernel = of_conjugates(both=False)


@vdot.backward
class VdotBackward0:
    def self(grad, other):
        return conj(grad) * other

    def other(grad, self):
        return grad * self

    def result(self_p, self_t, other_p, other_t):
        return self_t.vdot(other_p) + self_p.vdot(other_t)


outer = native_function("outer(Tensor self, Tensor vec2) -> Tensor", BOTH, out=True, direct=True)
ger = native_function("ger(Tensor self, Tensor vec2) -> Tensor", BOTH, out=True, direct=True)


@outer.compose
@ger.compose
def outer_composite(self, vec2):
    for name, t in (("self", self), ("vec2", vec2)):
        if t._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {t._array.ndim}-D")
    return self.reshape((self._array.size, 1)) * vec2


def tensordot_types(out, result, *_):
    return (
        f"tensordot: Expected the output tensor to have dtype {type_name(result)}, but got an output tensor with "
        f"dtype {type_name(out)}"
    )


def inner_types(out, result, self, other):
    if self.dim() and other.dim():
        return tensordot_types(out, result)
    return f"result type {type_name(result)} can't be cast to the desired output type {type_name(out)}"


inner = native_function("inner(Tensor self, Tensor other) -> Tensor", BOTH, out=exact_out(inner_types), direct=True)


@inner.compose
def inner_composite(self, other):
    if self._array.ndim == 0 or other._array.ndim == 0:
        return self * other
    if self._array.shape[-1] != other._array.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(self._array.shape)} and {list(other._array.shape)}"
        )
    return at.tensordot(self, other, ([-1], [-1]))


# ----------------------------------------------------------------------------------------------------- matmul


def matmul_types(out, result, a, b):
    ndims = (a._array.ndim, b._array.ndim)
    message = dot_types if ndims == (1, 1) else mv_types if ndims == (2, 1) else expected_dtype
    return message(out, result, a, b)


matmul = native_function("matmul(Tensor self, Tensor other) -> Tensor", BOTH, out=exact_out(matmul_types), direct=True)
linalg_matmul = native_function(
    "linalg_matmul(Tensor self, Tensor other) -> Tensor", module="linalg", name="matmul", out=exact_out(matmul_types)
)


@linalg_matmul.compose
def linalg_matmul_composite(self, other):
    return matmul.call(self, other)


@matmul.kernel
def matmul_cpu(self, other):
    """Without a graph to build, matrices go straight to their kernel."""
    if self._array.ndim == 2 == other._array.ndim:
        return mm_cpu(self, other)
    return matmul_composite(self, other)


@matmul.compose
def matmul_composite(self, other):
    """Vectors: dot and mv. Matrices: mm. More dimensions: fold them into a matrix if that is free, else bmm."""
    if self._array.ndim == 2 == other._array.ndim:
        return mm.call(self, other)
    ndims = (self._array.ndim, other._array.ndim)
    if ndims == (1, 1):
        return dot.call(self, other)
    if ndims == (2, 1):
        return mv.call(self, other)
    if ndims == (1, 2):
        return self.unsqueeze(0).mm(other).squeeze_(0)
    if 0 in ndims:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {ndims[0]}D and {ndims[1]}D")
    return folded_matmul(self, other) if should_fold(self, other) else batched_matmul(self, other)


def should_fold(a, b):
    """Whether to multiply a batch of matrices by one matrix or vector as one tall matrix.

    Always when the small operand requires grad: expanding it to the batch would cost a gradient of the batch's size.
    """
    first_larger = a._array.ndim >= b._array.ndim
    large, small = (a, b) if first_larger else (b, a)
    if large._array.ndim < 3 or small._array.ndim > 2:
        return False
    if small.requires_grad:
        return True
    if a._array.ndim == 2:
        return False
    array = large._array if first_larger else large._array.swapaxes(-1, -2)
    return array.size == 0 or all(
        array.strides[i] == array.strides[i + 1] * array.shape[i + 1] for i in range(array.ndim - 2)
    )


def folded_matmul(a, b):
    """(…, n, k) @ (k, m) as one product of an (…·n, k) matrix; the other order is done on transposes."""
    transpose = b._array.ndim > a._array.ndim
    large = b.mT if transpose else a
    small = b if not transpose else a.t() if a._array.ndim == 2 else a
    sizes = large._array.shape
    folded = large.reshape((math.prod(sizes[:-1]), sizes[-1]))
    if small._array.ndim == 1:
        return at._unsafe_view(folded.mv(small), sizes[:-1])
    result = at._unsafe_view(folded.mm(small), (*sizes[:-1], small._array.shape[1]))
    return result.mT.contiguous() if transpose else result


def batched_matmul(a, b):
    """Broadcasts the batch dimensions, flattens them into one, and calls bmm."""
    x, y = a._array, b._array
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:
        if x.shape[0] == 1 and a.requires_grad:
            return matmul_composite(a.squeeze(0), b)
        if y.shape[0] == 1 and b.requires_grad:
            return matmul_composite(a, b.squeeze(0))
    batch = broadcast_shape(x.shape[:-2], y.shape[:-2])
    flat = math.prod(batch)
    n, k = (x.shape[-2] if x.ndim > 1 else 1), x.shape[-1]
    left = a.expand((*batch, n, k)).reshape((flat, n, k))
    if y.ndim == 1:
        right = b.expand((*batch, y.shape[0])).reshape((flat, y.shape[0])).unsqueeze(2)
        return at._unsafe_view(left.bmm(right).squeeze(-1), (*batch, n))
    right = b.expand((*batch, *y.shape[-2:])).reshape((flat, *y.shape[-2:]))
    rows = (n,) if x.ndim > 1 else ()
    return at._unsafe_view(left.bmm(right), (*batch, *rows, y.shape[-1]))
