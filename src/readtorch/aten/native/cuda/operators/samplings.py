"""Permutations, and samples of distributions with parameters in tensors: poisson, binomial, gamma and
Dirichlet numbers; cauchy_, geometric_ and random_.

In PyTorch:
`aten/src/ATen/native/cuda/{Randperm,Distributions,DistributionCauchyKernel,DistributionGeometricKernel,
DistributionRandomKernel}.cu`.
"""

import ml_dtypes
import numpy as np

from .....c10 import scalar_type
from .....c10.scalar_type import SCALAR_TYPE_NAMES
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ....native_function import resize
from ...distributions import check_kernel_type
from ...distribution_templates import CPP_NAMES, DRAWN, DRAWN_FLOATS
from ...tensor_factories import check_randperm
from ...distributions import FLOAT_OR_DOUBLE
from ...tensor_factories import check_options, check_size
from .. import distributions as kernels
from .. import permutations, rejection, sort
from .copies import copy_elements
from .pointwise import operator_named
from .randoms import drawn
from .reductions import LONG, converted
from .registration import broadcast_shape, cuda_kernel, empty

DOUBLE = np.dtype(np.float64)

# ------------------------------------------------------------------------------------- of one distribution


@cuda_kernel(operator_named("geometric_"))
def geometric_cuda_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    check_kernel_type(self, "geometric_cuda", DRAWN - {scalar_type.bool})
    return drawn(self, generator, kernels.geometric, p)


@cuda_kernel(operator_named("cauchy_"))
def cauchy_cuda_(self, median, sigma, generator):
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    if not dtype_of(self).is_floating_point:
        raise RuntimeError("Cauchy distribution is a continuous probability distribution. dtype must be "
                           f"a floating point but you specified {CPP_NAMES[dtype_of(self)]}")
    return drawn(self, generator, kernels.cauchy, median, sigma)


@cuda_kernel(operator_named("random_"))
def random_cuda_(self, generator):
    """Whole numbers from 0 to the largest of an integer type, or as many as a floating one has without
    gaps."""
    check_kernel_type(self, "random_kernel_cuda", DRAWN)
    dtype = self._array.dtype
    if dtype.kind == "b":
        end = 2
    elif dtype.kind in "iu":
        end = int(np.iinfo(dtype).max) + 1
    else:
        end = 2 ** (ml_dtypes.finfo(dtype).nmant + 1) + 1
    wide = dtype in (LONG, DOUBLE)
    run = kernels.wide_integers if wide else kernels.narrow_integers
    return drawn(self, generator, run, 0, end, at_once=2 if wide else 4)


# ---------------------------------------------------------------------------------------------- permutations


def order_of(n, engine):
    """A permutation of 0 … n - 1, int64."""
    result = empty((n,), LONG)
    if n == 0:
        return result
    bits = permutations.bits_of_keys(n)
    kind = np.dtype(np.int32) if bits <= 32 else LONG
    keys, sorted_keys, width = empty((n,), kind), empty((n,), LONG), 8 * kind.itemsize
    drawn(keys, engine, kernels.integers, -(1 << width - 1), (1 << width - 1) - 1, at_once=2)
    if bits < width:  # else a sort of signed numbers
        keys = at.bitwise_and(converted(keys, LONG), (1 << bits) - 1)
    sort.sort(converted(keys, LONG)._array, 0, False, sorted_keys._array, result._array)
    permutations.shuffle_equal(engine.philox_state(n), sorted_keys._array, result._array)
    return result


@cuda_kernel(operator_named("randperm.generator"))
def randperm_cuda(n, generator, dtype, layout, device, pin_memory):
    check_options(layout, device)
    check_size((n,))
    dtype = dtype or scalar_type.int64
    check_randperm(n, dtype)
    return converted(order_of(n, generator), dtype.numpy)


@cuda_kernel(operator_named("randperm.generator_out"))
def randperm_out_cuda(n, generator, out):
    check_randperm(n, dtype_of(out))
    if out._array.shape != (n,):
        resize(out, (n,))
    copy_elements(order_of(n, generator), out)
    out._counter[0] += 1
    return out


# ------------------------------------------------------------------------------------ parameters in tensors


def sampled(draw, generator, dtype, shape, *parameters):
    """Samples of `dtype` by a function of rejection.py; the parameters are broadcast."""
    result = empty(shape, DOUBLE)
    if result._array.size:
        doubles = [converted(t, DOUBLE).expand(shape).contiguous()._array for t in parameters]
        rejection.sample(draw, generator.philox_state(rejection.DRAWS_USED), doubles, result._array)
    return converted(result, dtype)


@cuda_kernel(operator_named("poisson"))
def poisson_cuda(self, generator):
    """The rates stay unchecked: to look at them, the host would have to wait."""
    check_kernel_type(self, "poisson_cuda", DRAWN_FLOATS)
    return sampled(rejection.one_poisson, generator, self._array.dtype, self._array.shape, self)


@cuda_kernel(operator_named("binomial"))
def binomial_cuda(count, prob, generator):
    for name, t in (("count", count), ("prob", prob)):
        if not dtype_of(t).is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{SCALAR_TYPE_NAMES[dtype_of(t)]}")
    check_kernel_type(count, "binomial_cuda", FLOAT_OR_DOUBLE)
    shape = broadcast_shape(count._array.shape, prob._array.shape)
    return sampled(rejection.one_binomial, generator, count._array.dtype, shape, count, prob)


def positive(t):
    """At least the type's smallest positive number, so that a logarithm can follow."""
    return t.clamp(min=float(ml_dtypes.finfo(t._array.dtype).smallest_normal))


@cuda_kernel(operator_named("_standard_gamma"))
def standard_gamma_cuda(self, generator):
    check_kernel_type(self, "gamma_cuda", FLOAT_OR_DOUBLE)
    return positive(sampled(rejection.one_gamma, generator, self._array.dtype, self._array.shape, self))


@cuda_kernel(operator_named("_sample_dirichlet"))
def sample_dirichlet_cuda(self, generator):
    check_kernel_type(self, "dirichlet", FLOAT_OR_DOUBLE)
    gamma = sampled(rejection.one_gamma, generator, DOUBLE, self._array.shape, self)
    share = converted(gamma / gamma.sum(-1, True), self._array.dtype)
    below_one = np.nextafter(self._array.dtype.type(1), self._array.dtype.type(0))
    return positive(share).clamp(max=float(below_one))
