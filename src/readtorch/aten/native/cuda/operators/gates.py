"""Pointwise operators whose second operand opens a gate, is a slope or a logarithm's argument: prelu, rrelu, glu,
xlogy; and celu.

In PyTorch:
`aten/src/ATen/native/cuda/{ActivationPreluKernel,RreluWithNoise,ActivationGluKernel,BinaryMiscOpsKernels}.cu`.
"""

from .....c10.tensor_impl import dtype_of
from .....c10.wrap_dim import wrap_dim
from ....functions import at
from ...tensor_iterator import float_result_type, not_implemented
from ...tensor_iterator import scalar_tensor as weak
from .. import functions as f
from .. import more_functions as g
from .broadcasting import apply
from .copies import copy_elements
from .pointwise import operator_named
from .registration import cuda_kernel, empty, write_back


# ------------------------------------------------------------------------------------------------------- slopes


@cuda_kernel(operator_named("_prelu_kernel"))
def prelu_cuda(self, weight):
    return apply(g.prelu, [self, weight])


@cuda_kernel(operator_named("_prelu_kernel_backward"))
def prelu_backward_cuda(grad_output, self, weight):
    return apply(g.prelu_backward, [grad_output, self, weight]), apply(g.prelu_slope_backward, [grad_output, self])


@cuda_kernel(operator_named("rrelu_with_noise"))
def rrelu_cuda(self, noise, lower, upper, training, generator):
    """Every element draws a slope, also those that do not need it: so each thread knows which numbers are its own.

    In PyTorch: one kernel draws and multiplies.
    """
    if not training:
        return at.leaky_relu(self, (lower + upper) / 2)
    slopes = at.uniform_(at.empty_like(self), lower, upper, generator=generator)
    factors = at.where(self <= 0, slopes, 1.0)
    copy_elements(factors, noise)  # read by backward only, whose node has saved it: this counts as no write
    return self * factors


@cuda_kernel(operator_named("rrelu_with_noise_"))
def rrelu_cuda_(self, *arguments):
    return write_back(self, rrelu_cuda(self, *arguments))


@cuda_kernel(operator_named("rrelu_with_noise_backward"))
def rrelu_backward_cuda(grad_output, self, noise, lower, upper, training, self_is_result):
    """self: the input, or the result, which has the same signs."""
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return apply(f.leaky_relu_backward, [grad_output, self], ((lower + upper) / 2,))


@cuda_kernel(operator_named("celu"))
def celu_cuda(self, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return apply(f.elu, [self], (alpha, 1, 1 / alpha))


cuda_kernel(operator_named("celu_"))(lambda self, alpha: write_back(self, celu_cuda(self, alpha)))


# -------------------------------------------------------------------------------------------------------- gates


def halves(t, dim):
    if not t._array.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    dim = wrap_dim(dim, t._array.ndim)
    size = t._array.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    return t.narrow(dim, 0, size // 2), t.narrow(dim, size // 2, size // 2)


@cuda_kernel(operator_named("glu"))
def glu_cuda(self, dim):
    if not dtype_of(self).is_floating_point:
        raise not_implemented("glu_cuda")(dtype_of(self))
    return apply(g.gated, halves(self, dim))


@cuda_kernel(operator_named("glu_backward"))
def glu_backward_cuda(grad_output, self, dim):
    result = empty(self._array.shape, self._array.dtype)
    (x, gate), (to_x, to_gate) = halves(self, dim), halves(result, dim)
    apply(g.gated, [grad_output, gate], out=to_x)
    apply(g.gated_backward, [grad_output, x, gate], out=to_gate)
    return result


# --------------------------------------------------------------------------------------------------- logarithms


def xlogy_cuda(self, other):
    common = float_result_type(self, other)
    return apply(g.xlogy, [self, other], (), common)


cuda_kernel(operator_named("xlogy.Tensor"))(xlogy_cuda)
cuda_kernel(operator_named("xlogy.Scalar_Self"))(lambda self, other: xlogy_cuda(weak(self), other))
cuda_kernel(operator_named("xlogy.Scalar_Other"))(lambda self, other: xlogy_cuda(self, weak(other)))
