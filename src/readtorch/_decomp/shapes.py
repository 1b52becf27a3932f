"""Gradients of views, embeddings and the like, and arithmetic that is a few steps. In PyTorch: `torch/_decomp/decompositions.py`."""

import readtorch as rt

from .activations import aten, elementwise
from .table import register_decomposition

# -- a range without a start, or without a step


@register_decomposition(aten.arange.default)
def arange_default(end, *, dtype=None, layout=rt.strided, device=None, pin_memory=False):
    return arange_start(0, end, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)


@register_decomposition(aten.arange.start)
def arange_start(start, end, *, dtype=None, layout=rt.strided, device=None, pin_memory=False):
    return aten.arange.start_step(start, end, dtype=dtype, layout=layout, device=device, pin_memory=pin_memory)


# -- a part has a gradient: the whole is zero elsewhere


@elementwise("slice_backward.default")
def slice_backward(grad_output, input_sizes, dim, start, end, step):
    return rt.slice_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, start, end, step)


@elementwise("select_backward.default")
def select_backward(grad_output, input_sizes, dim, index):
    return rt.select_scatter(grad_output.new_zeros(input_sizes), grad_output, dim, index)


@elementwise("diagonal_backward.default")
def diagonal_backward(grad_output, input_sizes, offset, dim1, dim2):
    return rt.diagonal_scatter(grad_output.new_zeros(input_sizes), grad_output, offset, dim1, dim2)


@elementwise("embedding_dense_backward.default")
def embedding_dense_backward(grad_output, indices, num_weights, padding_idx, scale_grad_by_freq):
    if scale_grad_by_freq:
        counts = indices.new_zeros((num_weights,)).index_put([indices], rt.ones_like(indices), accumulate=True)
        grad_output = grad_output / counts[indices].unsqueeze(-1)
    grad = grad_output.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return grad.new_zeros((num_weights, grad_output.shape[-1])).index_put([indices], grad, accumulate=True)


# -- the transpose of a matrix, and the like


@elementwise("t.default")
def t(self):
    return self if self.dim() < 2 else self.permute(1, 0)


@elementwise("transpose.int")
def transpose(self, dim0, dim1):
    order = list(range(self.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return self.permute(order)


@elementwise("stack.default")
def stack(tensors, dim=0):
    return rt.cat([tensor.unsqueeze(dim) for tensor in tensors], dim)


@elementwise("unbind.int")
def unbind(self, dim=0):
    return [self.select(dim, i) for i in range(self.shape[dim])]


@elementwise("tril.default")
def tril(self, diagonal=0):
    return rt.where(below_diagonal(self, diagonal), self, 0)


@elementwise("triu.default")
def triu(self, diagonal=0):
    return rt.where(below_diagonal(self, diagonal - 1), 0, self)


def below_diagonal(self, diagonal):
    rows, columns = (rt.arange(n, device=self.device) for n in self.shape[-2:])
    return columns - rows.unsqueeze(-1) <= diagonal


# -- products


@elementwise("addmm.default")
def addmm(self, mat1, mat2, *, beta=1, alpha=1):
    return scaled_sum(self, mat1 @ mat2, beta, alpha)


@elementwise("baddbmm.default")
def baddbmm(self, batch1, batch2, *, beta=1, alpha=1):
    return scaled_sum(self, batch1 @ batch2, beta, alpha)


@elementwise("addmv.default")
def addmv(self, mat, vec, *, beta=1, alpha=1):
    return scaled_sum(self, mat @ vec, beta, alpha)


@elementwise("addr.default")
def addr(self, vec1, vec2, *, beta=1, alpha=1):
    return scaled_sum(self, vec1.unsqueeze(1) * vec2, beta, alpha)


def scaled_sum(self, product, beta, alpha):
    product = product if alpha == 1 else alpha * product
    if beta == 0:  # then nothing of `self` counts, not even nan
        return product
    return (self if beta == 1 else beta * self) + product


@elementwise("dot.default")
def dot(self, tensor):
    return (self * tensor).sum()


@elementwise("mv.default")
def mv(self, vec):
    return (self * vec).sum(1)


# -- arithmetic


@elementwise("rsub.Tensor", "rsub.Scalar")
def rsub(self, other, alpha=1):
    return rt.ops.aten.sub.Tensor(other, self, alpha=alpha)  # which takes numbers, too: `other - self` is an rsub


@elementwise("addcmul.default")
def addcmul(self, tensor1, tensor2, *, value=1):
    return self + value * tensor1 * tensor2


@elementwise("addcdiv.default")
def addcdiv(self, tensor1, tensor2, *, value=1):
    return self + value * (tensor1 / tensor2)


@elementwise("lerp.Scalar", "lerp.Tensor")
def lerp(self, end, weight):
    """From either end, by the nearer one: exact at both."""
    way = end - self
    if isinstance(weight, rt.Tensor):
        return rt.where(weight.abs() < 0.5, self + weight * way, end - way * (1 - weight))
    return self + weight * way if abs(weight) < 0.5 else end - way * (1 - weight)


@elementwise("frac.default")
def frac(self):
    return self - self.trunc()


@elementwise("logit.default")
def logit(self, eps=None):
    self = self if eps is None else self.clamp(eps, 1 - eps)
    return (self / (1 - self)).log()


@elementwise("xlogy.Tensor")
def xlogy(self, other):
    product = self * other.log()
    return rt.where(other.isnan(), other, rt.where(self == 0, rt.zeros_like(product), product))


@elementwise("logaddexp.default")
def logaddexp(self, other):
    top, low = rt.maximum(self, other), rt.minimum(self, other)
    sum_of = top + (low - top).exp().log1p()
    return rt.where(top.isinf() & (top == low), self, sum_of)


@elementwise("nan_to_num.default")
def nan_to_num(self, nan=None, posinf=None, neginf=None):
    if not self.is_floating_point():
        return self.clone()
    limits = rt.finfo(self.dtype)
    out = rt.where(self.isnan(), 0.0 if nan is None else nan, self)
    out = rt.where(self == float("inf"), limits.max if posinf is None else posinf, out)
    return rt.where(self == float("-inf"), limits.min if neginf is None else neginf, out)


@elementwise("heaviside.default")
def heaviside(self, values):
    return rt.where(self == 0, values, rt.where(self > 0, rt.ones_like(values), rt.zeros_like(values)))


@elementwise("trace.default")
def trace(self):
    return self.diagonal().sum()


@elementwise("var_mean.correction")
def var_mean(self, dim=None, *, correction=None, keepdim=False):
    return self.var(dim, correction=correction, keepdim=keepdim), self.mean(dim, keepdim)


@elementwise("std.correction")
def std(self, dim=None, *, correction=None, keepdim=False):
    return self.var(dim, correction=correction, keepdim=keepdim).sqrt()


# -- new tensors


@elementwise("fill.Scalar")
def fill(self, value):
    return rt.full_like(self, value)


@elementwise("zero.default")
def zero(self):
    return rt.zeros_like(self)


@elementwise("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self, mask, value):
    filling = value.to(self.dtype) if isinstance(value, rt.Tensor) else rt.full((), value, dtype=self.dtype)
    return rt.where(mask, filling, self)
