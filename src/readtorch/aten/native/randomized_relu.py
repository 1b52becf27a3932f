"""Randomized leaky relu: rrelu.

In PyTorch: `aten/src/ATen/native/Activation.cpp` (`rrelu_with_noise_cpu`). Explained in "Layers, functional, init".
"""
import numpy as np

from ...c10.tensor_impl import wrap
from ..functions import at
from ..native_function import native_function
from .cpu import distribution_kernels
from .distributions import generator_of

_ARGUMENTS = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"

rrelu_with_noise = native_function(f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor", module="nn")
rrelu_with_noise_ = native_function(
    f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor(a!)", module="nn")


def slopes(array, lower, upper, training, generator):
    """The factor of each element: 1 where positive, else drawn from [lower, upper) (its middle outside training)."""
    noise = np.ones(array.shape, array.dtype)
    negative = array <= 0
    if training:
        drawn = np.empty(int(negative.sum()), np.float64)
        distribution_kernels.uniform_(drawn, lower, upper, generator_of(generator))
        noise[negative] = drawn.astype(array.dtype)
    else:
        noise[negative] = (lower + upper) / 2
    return noise


def keep_noise(noise, factors, training):
    if training:
        noise._array[...] = factors
        noise._counter[0] += 1


@rrelu_with_noise.kernel
def rrelu_with_noise_cpu(self, noise, lower, upper, training, generator):
    factors = slopes(self._array, lower, upper, training, generator)
    keep_noise(noise, factors, training)
    return wrap(self._array * factors)


@rrelu_with_noise.backward
class RreluWithNoiseBackward0:
    def self(grad, self, noise, lower, upper, training):
        if training and upper - lower > 1e-6:
            return grad * noise
        return at.where(self > 0, grad, grad * ((lower + upper) / 2))


@rrelu_with_noise_.kernel
def rrelu_with_noise_cpu_(self, noise, lower, upper, training, generator):
    factors = slopes(self._array, lower, upper, training, generator)
    keep_noise(noise, factors, training)
    self._array *= factors
    self._counter[0] += 1
    return self


@rrelu_with_noise_.backward
class RreluWithNoiseBackward1:
    def self(grad, result, noise, lower, upper, training):
        if training and upper - lower > 1e-6:
            return grad * noise
        return at.where(result > 0, grad, grad * ((lower + upper) / 2))


rrelu = native_function(f"rrelu(Tensor self, {_ARGUMENTS}) -> Tensor")
rrelu_ = native_function(f"rrelu_(Tensor(a!) self, {_ARGUMENTS}) -> Tensor(a!)")


def check_bounds(lower, upper):
    if lower > upper:
        raise RuntimeError(f"Lower bound should be less than or equal to the upper bound (got lower={lower:g}, upper={upper:g})")


@rrelu.compose
def rrelu_composite(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise.call(self, at.empty_like(self), lower, upper, training, generator)


@rrelu_.compose
def rrelu_composite_(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise_.call(self, at.empty_like(self), lower, upper, training, generator)
