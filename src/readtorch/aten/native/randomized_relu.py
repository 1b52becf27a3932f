"""Randomized leaky relu: rrelu.

In PyTorch: `aten/src/ATen/native/Activation.cpp` (`rrelu_with_noise_cpu`). Explained in "Layers, functional, init".
"""
import numpy as np

from ...c10.tensor_impl import wrap, wrap_result
from ..functions import at
from ..native_function import native_function
from .cpu import distribution_kernels
from .distributions import generator_of, run
from .tensor_iterator import refuse_overlap

_ARGUMENTS = "Scalar lower=0.125, Scalar upper=0.3333333333333333, bool training=False, Generator? generator=None"

rrelu_with_noise = native_function(f"rrelu_with_noise(Tensor self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor", module="nn")
rrelu_with_noise_ = native_function(
    f"rrelu_with_noise_(Tensor(a!) self, Tensor(b!) noise, {_ARGUMENTS}) -> Tensor(a!)", module="nn")
rrelu_with_noise_backward = native_function(
    "rrelu_with_noise_backward(Tensor grad_output, Tensor self, Tensor noise, Scalar lower, Scalar upper, bool training, "
    "bool self_is_result) -> Tensor", "")


def slopes(array, lower, upper, training, generator):
    """The factor of each element: 1 where positive, else drawn from [lower, upper) (its middle outside training)."""
    noise = np.ones(array.shape, array.dtype)
    negative = array <= 0
    if training:
        drawn = np.empty(int(negative.sum()), np.float64)
        run(distribution_kernels.uniform_, drawn, lower, upper, generator_of(generator))
        noise[negative] = drawn.astype(array.dtype)
    else:
        noise[negative] = (lower + upper) / 2
    return noise


def keep_noise(noise, factors, training):
    """Nobody but backward reads the noise, which the node has saved already: this counts as no write."""
    if training:
        noise._array[...] = factors


@rrelu_with_noise.kernel
def rrelu_with_noise_cpu(self, noise, lower, upper, training, generator):
    factors = slopes(self._array, lower, upper, training, generator)
    keep_noise(noise, factors, training)
    return wrap_result(self._array * factors)


@rrelu_with_noise.backward
class RreluWithNoiseBackward0:
    def self(grad, self, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, self, noise, lower, upper, training, False)


@rrelu_with_noise_backward.kernel
def rrelu_with_noise_backward_cpu(grad_output, self, noise, lower, upper, training, self_is_result):
    """self: the input, or the result, which has the same signs."""
    g = grad_output._array
    if training and upper - lower > 1e-6:
        return wrap_result(g * noise._array)
    return wrap(np.where(self._array > 0, g, g * g.dtype.type((lower + upper) / 2)))


@rrelu_with_noise_backward.backward
class RreluWithNoiseBackwardBackward0:
    def grad_output(grad, self, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, self, noise, lower, upper, training, False)

    def self(grad):
        return at.zeros_like(grad)


@rrelu_with_noise_.kernel
def rrelu_with_noise_cpu_(self, noise, lower, upper, training, generator):
    refuse_overlap(self)
    factors = slopes(self._array, lower, upper, training, generator)
    keep_noise(noise, factors, training)
    self._array *= factors
    self._counter[0] += 1
    return self


@rrelu_with_noise_.backward
class RreluWithNoiseBackward1:
    def self(grad, result, noise, lower, upper, training):
        return rrelu_with_noise_backward.call(grad, result, noise, lower, upper, training, True)


rrelu = native_function(f"rrelu(Tensor self, {_ARGUMENTS}) -> Tensor")
rrelu_ = native_function(f"rrelu_(Tensor(a!) self, {_ARGUMENTS}) -> Tensor(a!)")


def check_bounds(lower, upper):
    if lower > upper:
        raise RuntimeError("Lower bound should be less than or equal to the upper bound")


@rrelu.compose
def rrelu_composite(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise.call(self, at.empty_like(self), lower, upper, training, generator)


@rrelu_.compose
def rrelu_composite_(self, lower, upper, training, generator):
    check_bounds(lower, upper)
    return rrelu_with_noise_.call(self, at.empty_like(self), lower, upper, training, generator)
