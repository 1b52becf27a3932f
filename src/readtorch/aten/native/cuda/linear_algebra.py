"""Pseudo-inverse, rank, matrix exponential and cross product, made of operators.

In PyTorch: `aten/src/ATen/native/LinearAlgebra.cpp`, `aten/src/ATen/native/cuda/CrossKernel.cu`.
"""

import math

import numpy as np

from readtorch.aten.functions import at
from readtorch.aten.native.cross import linalg_cross
from readtorch.c10.tensor_impl import dtype_of
from readtorch.c10.wrap_dim import wrap_dim

from .batch_linear_algebra import copy_to, units
from .blas import mm_cuda
from .copy import copy
from .fill_kernel import fill, filled
from .register_dispatch_key import cuda_impl, empty, operator_named


def on_this_device(number, dtype):
    return filled(empty((), dtype), number) if isinstance(number, (int, float)) else number


def tolerance(A, values, atol, rtol):
    """Singular values up to this count as zero: see `tolerance` in ../../linear_algebra/pinv.py."""
    dtype = values._array.dtype
    eps = float(np.finfo(dtype).eps) * max(A._array.shape[-2:])
    atol, rtol = (None if t is None else on_this_device(t, dtype) for t in (atol, rtol))
    if rtol is None:
        rtol = on_this_device(eps, dtype) if atol is None else at.where(atol > 0, 0.0, eps).to(values.dtype)
    relative = values.amax(-1) * rtol
    return relative if atol is None else at.maximum(relative, atol.to(values.device))


@cuda_impl(operator_named("linalg_pinv.atol_rtol_tensor"))
def pinv_cuda(self, atol, rtol, hermitian, out):
    if not self._array.size:
        return
    if hermitian:
        values, U = at._linalg_eigh(self)
        Vh = U.mT
    else:
        U, values, Vh = at._linalg_svd(self)
    limit = tolerance(self, values.abs(), atol, rtol).unsqueeze(-1)
    inverse = at.where(values.abs() > limit, 1 / values, 0.0).to(self.dtype)
    mm_cuda(Vh.mT * inverse.unsqueeze(-2), U.mT, out)


@cuda_impl(operator_named("linalg_matrix_rank.atol_rtol_tensor"), operator_named("linalg_matrix_rank.atol_rtol_float"))
def matrix_rank_cuda(A, atol, rtol, hermitian, out):
    if not A._array.size:
        fill(out._array, np.int64(0))
        return
    values = at._linalg_eigh(A, "L", False)[0].abs() if hermitian else at._linalg_svd(A, False, False)[1]
    copy_to(out, (values > tolerance(A, values, atol, rtol).unsqueeze(-1)).sum(-1))


@cuda_impl(operator_named("linalg_matrix_rank"))
def rank_by_tolerance(self, tol, hermitian, out):
    matrix_rank_cuda(self, tol, 0.0, hermitian, out)


def series(A):
    """The power series of exp up to A¹⁵ with six products: four polynomials in A, A² and A³, which are those
    in A⁴. For a norm up to 1/2, more terms would change nothing."""
    powers = [units(A, A._array.shape), A, A @ A]
    powers.append(powers[2] @ A)
    fourth, result = powers[2] @ powers[2], None
    for first in (12, 8, 4, 0):
        part = sum(power / math.factorial(first + k) for k, power in enumerate(powers))
        result = part if result is None else part + fourth @ result
    return result


@cuda_impl(operator_named("linalg_matrix_exp"))
def matrix_exp_cuda(self, out):
    """exp(A) = exp(A / 2ˢ) squared s times. The host waits for the norm. (In PyTorch: polynomials of degree
    1 to 18, each matrix's by its norm.)"""
    if not self._array.size:
        return
    norm = self.abs().sum(-2).max().item()
    if not math.isfinite(norm):
        fill(out._array, out._array.dtype.type(math.nan))
        return
    squarings = max(0, math.ceil(math.log2(norm)) + 1) if norm else 0
    result = series(self / 2.0**squarings)
    for _ in range(squarings):
        result = result @ result
    copy_to(out, result)


@cuda_impl(linalg_cross)
def cross_cuda(self, other, dim, out):
    shape, axis = out._array.shape, wrap_dim(dim, out._array.ndim)
    x, y = (t.to(dtype_of(out)).expand(shape) for t in (self, other))
    product = x.roll(-1, axis) * y.roll(-2, axis) - x.roll(-2, axis) * y.roll(-1, axis)
    copy(product._array, out._array)
