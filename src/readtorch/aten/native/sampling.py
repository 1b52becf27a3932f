"""Samples whose parameters are tensors: bernoulli, multinomial, poisson, binomial, gamma and Dirichlet
numbers.

In PyTorch: `aten/src/ATen/native/Distributions.cpp`. Explained in the chapter "Tensor and Storage".
"""
import numpy as np

from ...c10 import scalar_type
from ...c10.scalar_type import SCALAR_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap
from ..dispatcher import NOT_IMPLEMENTED
from ..functions import at
from ..native_function import any_device, below_autograd, native_function, resize, write_out
from .cpu import distribution_kernels as kernels
from .distributions import (DRAWN_FLOATS, bernoulli_float_, bernoulli_tensor_, check_kernel_type,
                            generator_of, run, zero_gradient)
from .tensor_iterator import broadcast_error

BOTH = "function, method"
FLOAT_OR_DOUBLE = frozenset({scalar_type.float32, scalar_type.float64})


def empty_contiguous(t):
    """A tensor of `t`'s shape and type, rows first."""
    return wrap(np.empty(t._array.shape, t._array.dtype))


# ------------------------------------------------------------------------------------------------- bernoulli

bernoulli = native_function("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", BOTH, out=True)
bernoulli_p = native_function(
    "bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", BOTH)
bernoulli.backward(zero_gradient("BernoulliBackward0"))


@bernoulli.kernel
def bernoulli_cpu(self, generator):
    with below_autograd():
        return bernoulli_tensor_.call(empty_contiguous(self), self, generator)


@bernoulli.out.kernel
def bernoulli_out_cpu(self, generator, out):
    if out._array.shape != self._array.shape:
        resize(out, self._array.shape)
    with below_autograd():
        return bernoulli_tensor_.call(out, self, generator)


@bernoulli_p.compose
def bernoulli_p_composite(self, p, generator):
    return bernoulli_float_.call(empty_contiguous(self), p, generator)


# ----------------------------------------------------------------------------------------------- multinomial

multinomial = native_function(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> "
    "Tensor", BOTH, out=True)
MOST_CATEGORIES = 2**24     # the largest whole number up to which float32 has all of them


def check_multinomial(self, num_samples, replacement):
    array, dtype = self._array, dtype_of(self)
    if array.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not dtype.is_floating_point:
        raise RuntimeError("multinomial only supports floating-point dtypes for input, got: "
                           f"{SCALAR_TYPE_NAMES[dtype]}")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > array.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if array.shape[-1] > MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")


def check_race(rows):
    """What the fast path asks of its probabilities."""
    if not (rows.max() < np.inf and rows.min() >= 0):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if not rows.any(axis=-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def check_rows(rows):
    """What drawing with replacement asks of them."""
    if not (rows >= 0).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry < 0)")
    if not np.isfinite(rows).all():
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or "
                           "NaN)")
    if not rows.any(axis=-1).all():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")


def winners(race, count):
    """The indices of each row's `count` largest, largest first."""
    if count == 1:
        return race.argmax(-1).reshape(-1, 1)
    descending = -race.astype(kernels.FLOAT if race.dtype in kernels.REDUCED else race.dtype)
    first = np.sort(np.argpartition(descending, count - 1, axis=-1)[:, :count], axis=-1)
    order = np.argsort(np.take_along_axis(descending, first, -1), axis=-1, kind="stable")
    return np.take_along_axis(first, order, -1)


@multinomial.kernel
def multinomial_cpu(self, num_samples, replacement, generator):
    check_multinomial(self, num_samples, replacement)
    array = self._array
    rows = array if array.ndim == 2 else array[None]
    if not rows.shape[0]:
        return wrap(np.empty((0, num_samples), np.int64))
    if replacement and num_samples > 1:
        check_rows(rows)
        drawn = run(kernels.multinomial_with_replacement, rows, num_samples, generator_of(generator))
    else:
        check_race(rows)
        drawn = winners(run(kernels.exponential_race, rows, generator_of(generator)), num_samples)
    return wrap(np.ascontiguousarray(drawn if array.ndim == 2 else drawn[0]))


@multinomial.out.kernel
@any_device
def multinomial_out(self, num_samples, replacement, generator, out):
    if dtype_of(out) is not scalar_type.int64:
        raise RuntimeError(f"multinomial expects Long tensor out, got: {SCALAR_TYPE_NAMES[dtype_of(out)]}")
    return write_out(multinomial.call(self, num_samples, replacement, generator), (out,))


# --------------------------------------------------------------------------------------- poisson, binomial, …

poisson = native_function("poisson(Tensor self, Generator? generator=None) -> Tensor")


@poisson.kernel
def poisson_cpu(self, generator):
    check_kernel_type(self, "poisson_cpu", DRAWN_FLOATS)
    if not (self._array >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    result = empty_contiguous(self)
    run(kernels.poisson, result._array, self._array, generator_of(generator))
    return result


@poisson.backward
class PoissonBackward0:
    def self(self):
        return at.zeros_like(self)


binomial = native_function("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")


@binomial.kernel
def binomial_cpu(count, prob, generator):
    for name, t in (("count", count), ("prob", prob)):
        if not dtype_of(t).is_floating_point:
            raise ValueError(f"binomial only supports floating-point dtypes for {name}, got: "
                             f"{SCALAR_TYPE_NAMES[dtype_of(t)]}")
    if dtype_of(count) is not dtype_of(prob):
        raise RuntimeError(f"Found dtype {SCALAR_TYPE_NAMES[dtype_of(prob)]} but expected "
                           f"{SCALAR_TYPE_NAMES[dtype_of(count)]}")
    check_kernel_type(count, "binomial_cpu", FLOAT_OR_DOUBLE)
    try:
        trials, p = np.broadcast_arrays(count._array, prob._array)
    except ValueError:
        raise broadcast_error(count._array.shape, prob._array.shape) from None
    result = wrap(np.empty(trials.shape, trials.dtype))
    run(kernels.binomial, result._array, trials, p, generator_of(generator))
    return result


binomial.backward(NOT_IMPLEMENTED)


# ---------------------------------------------------------------------------------------- gamma and Dirichlet

_standard_gamma = native_function("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor")
_standard_gamma_grad = native_function("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor")
_sample_dirichlet = native_function("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor")
_sample_dirichlet.backward(NOT_IMPLEMENTED)
_dirichlet_grad = native_function("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor")
_dirichlet_grad.backward(NOT_IMPLEMENTED)


@_dirichlet_grad.kernel
def dirichlet_grad_cpu(x, alpha, total):
    """For `torch.distributions.Dirichlet`: how each part moves with its concentration."""
    check_kernel_type(x, "_dirichlet_grad_cpu", FLOAT_OR_DOUBLE)
    try:
        arrays = np.broadcast_arrays(x._array, alpha._array, total._array)
    except ValueError:
        raise broadcast_error(x._array.shape, alpha._array.shape, total._array.shape) from None
    return wrap(kernels.dirichlet_grad(*arrays))


@_standard_gamma.kernel
def standard_gamma_cpu(self, generator):
    check_kernel_type(self, "gamma_cpu", FLOAT_OR_DOUBLE)
    result = empty_contiguous(self)
    run(kernels.standard_gamma, result._array, self._array, generator_of(generator))
    return result


@_standard_gamma.backward
class StandardGammaBackward0:
    def self(grad, self, result):
        return grad * at._standard_gamma_grad(self, result)


@_standard_gamma_grad.kernel
def standard_gamma_grad_cpu(self, output):
    check_kernel_type(self, "_standard_gamma_grad_cpu", FLOAT_OR_DOUBLE)
    return wrap(kernels.standard_gamma_grad(self._array, output._array))


_standard_gamma_grad.backward(NOT_IMPLEMENTED)


@_sample_dirichlet.kernel
def sample_dirichlet_cpu(self, generator):
    check_kernel_type(self, "dirichlet", FLOAT_OR_DOUBLE)
    result = empty_contiguous(self)
    run(kernels.dirichlet, result._array, self._array, generator_of(generator))
    return result
