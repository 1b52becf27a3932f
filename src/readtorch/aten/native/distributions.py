"""Random numbers in place (uniform_, normal_, random_, bernoulli_ …), and samples whose parameters are tensors
(multinomial, poisson, binomial, gamma, Dirichlet).

In PyTorch: `aten/src/ATen/native/Distributions.cpp`; the checks in `aten/src/ATen/native/DistributionTemplates.h`. The
numbers come from `cpu/distribution_kernels.py`. Explained in the chapter "Where numbers come from: init and random".
"""

import math

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.expand_utils import broadcast_shape
from readtorch.aten.functions import at
from readtorch.aten.native_function import BOTH, below_autograd, native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.aten.register_dispatch_key import any_device, resize
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10 import scalar_type
from readtorch.c10.cpu_generator_impl import of_thread
from readtorch.c10.cuda.cuda_generator_impl import CUDAGeneratorImpl
from readtorch.c10.dispatch_key import META
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import FLOAT, SCALAR_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of, type_name, wrap

from .cpu import distribution_kernels as kernels
from .distribution_templates import (
    CPP_NAMES,
    DRAWN,
    DRAWN_FLOATS,
    INT64_MIN,
    LARGEST,
    check_from_to_in_range,
    closed_range,
    open_range,
)
from .exact_out import exact_out

# ---------------------------------------------------------------------------------------------------- checks


def generator_of(generator):
    """The engine behind a `Generator` argument; None stands for the default one."""
    if generator is None:
        return of_thread.generator
    if isinstance(generator, CUDAGeneratorImpl):
        return generator
    if generator.device.type != "cpu":
        raise RuntimeError(f"Expected a 'cpu' device type for generator but found '{generator.device.type}'")
    return generator._impl


def check_kernel_type(self, kernel, allowed):
    """NotImplementedError, as PyTorch words it, unless `kernel` exists for the tensor's type."""
    dtype = dtype_of(self)
    if dtype not in allowed:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{SCALAR_TYPE_NAMES[dtype]}'")


def check_no_internal_overlap(array):
    """An expanded tensor has one element at many indices; it cannot be filled with different numbers."""
    if not array.flags.c_contiguous and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape)):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single "
            "memory location. Please clone() the tensor before performing the operation."
        )


def real_parts(array):
    """A complex array as a real one with a last dimension of 2; any other array as it is."""
    if array.dtype.kind != "c":
        return array
    part = array.real
    return np.lib.stride_tricks.as_strided(part, part.shape + (2,), part.strides + (part.itemsize,))


def run(kernel, *parameters):
    """Call a kernel of `distribution_kernels`, or its twin that draws from a device's engine, the last parameter."""
    if isinstance(parameters[-1], CUDAGeneratorImpl):
        from .cpu import philox_kernels

        kernel = getattr(philox_kernels, kernel.__name__)
    return kernel(*parameters)


def fill(self, kernel, *parameters):
    """Run a kernel of `distribution_kernels` on the tensor's memory and count the write."""
    array = self._array
    if array.size:
        check_no_internal_overlap(array)
        run(kernel, real_parts(array), *parameters)
    return self


def filler(name, arguments=""):
    """Declare an in-place operator that takes, beside `arguments`, the generator to draw from."""
    separator = ", " if arguments else ""
    text = f"{name}(Tensor(a!) self{separator}{arguments}, *, Generator? generator=None) -> Tensor(a!)"
    return native_function(text, "method")


def zero_gradient(name, *inputs):
    """Formulas of an operator whose result no longer depends on its inputs: their gradients are zeros."""

    def zeros(grad):
        return at.zeros_like(grad)

    def result(self_t):
        return self_t.zero_()

    return type(name, (), {given: zeros for given in inputs or ("self",)} | {"result": result})


def quick_binding(operator):
    """A Python binding for an operator of plain numbers; only unusual calls go through the argument parser."""
    name = operator.schema.name
    parse = make_parser(packets["torch", name], True)
    defaults = tuple(a.default if a.has_default else None for a in operator.schema.arguments[1:-1])
    required = sum(not a.has_default for a in operator.schema.arguments[1:-1])
    call = operator.call

    def binding(self, *numbers, generator=None, **named):
        if (
            named
            or not required <= len(numbers) <= len(defaults)
            or not all([type(number) in (int, float) for number in numbers])
        ):
            return parse((self, *numbers), named if generator is None else {"generator": generator, **named})
        return call(self, *numbers, *defaults[len(numbers) :], generator)

    binding.__name__ = binding.__qualname__ = name
    python_binding(name, "method")(binding)


# -------------------------------------------------------------------------------------------------- uniform_

uniform_ = filler("uniform_", "float from=0, float to=1")
uniform_.backward(zero_gradient("UniformBackward0"))


@uniform_.meta
def uniform_meta_(self, low, high, generator):
    dtype = dtype_of(self)
    if not dtype.is_complex:
        check_uniform_bounds(dtype, low, high)
    elif self._array.size:
        check_uniform_bounds(dtype.to_real(), low, high)


@uniform_.kernel
def uniform_cpu_(self, low, high, generator):
    uniform_meta_(self, low, high, generator)
    return fill(self, kernels.uniform_, low, high, generator_of(generator))


def check_uniform_bounds(dtype, low, high):
    limit = LARGEST.get(dtype)
    if limit is None:
        name = SCALAR_TYPE_NAMES[dtype]
        raise NotImplementedError(f"\"check_uniform_bounds\" not implemented for '{name}'")
    for name, value in (("from", low), ("to", high)):
        if not -limit <= value <= limit:
            raise RuntimeError(f"{name} is out of bounds for {CPP_NAMES[dtype]}")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if not high - low <= limit:
        name = SCALAR_TYPE_NAMES[dtype]
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{name}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


# --------------------------------------------------------------------------------------------------- normal_

normal_ = filler("normal_", "float mean=0, float std=1")
normal_.backward(zero_gradient("NormalBackward0"))


def check_std(std):
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@normal_.meta
def normal_meta_(self, mean, std, generator):
    check_std(std)
    if self._keys & META and dtype_of(self).category < FLOAT:
        raise RuntimeError(f"expected a floating-point or complex dtype, but got dtype={dtype_of(self)}")


@normal_.kernel
def normal_cpu_(self, mean, std, generator):
    check_std(std)
    dtype = dtype_of(self)
    if self._array.size and not dtype.is_complex:
        check_kernel_type(self, "normal_kernel_cpu", DRAWN_FLOATS)
    part_std = std / math.sqrt(2) if dtype.is_complex else std  # the two parts share the variance
    return fill(self, kernels.normal_, mean, part_std, generator_of(generator))


log_normal_ = filler("log_normal_", "float mean=1, float std=2")
log_normal_.backward(zero_gradient("LogNormalBackward0"))


@log_normal_.meta
def log_normal_meta_(self, mean, std, generator):
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")


@log_normal_.kernel
def log_normal_cpu_(self, mean, std, generator):
    log_normal_meta_(self, mean, std, generator)
    if self._array.size:
        check_kernel_type(self, "log_normal_cpu", DRAWN_FLOATS)
    return fill(self, kernels.log_normal_, mean, std, generator_of(generator))


# ------------------------------------------------------------------------- exponential_, geometric_, cauchy_

exponential_ = filler("exponential_", "float lambd=1")
exponential_.backward(zero_gradient("ExponentialBackward0"))


@exponential_.meta
def exponential_meta_(self, lambd, generator):
    if not lambd > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")


def check_exponential_type(self):
    dtype = dtype_of(self)
    if self._array.size and not dtype.is_floating_point:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {SCALAR_TYPE_NAMES[dtype]}"
        )


@exponential_.kernel
def exponential_cpu_(self, lambd, generator):
    exponential_meta_(self, lambd, generator)
    check_exponential_type(self)
    return fill(self, kernels.exponential_, lambd, generator_of(generator))


geometric_ = filler("geometric_", "float p")
geometric_.backward(zero_gradient("GeometricBackward0"))


@geometric_.meta
def geometric_meta_(self, p, generator):
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")


@geometric_.kernel
def geometric_cpu_(self, p, generator):
    geometric_meta_(self, p, generator)
    if self._array.size:
        check_kernel_type(self, "geometric_cpu", DRAWN - {scalar_type.bool})
    return fill(self, kernels.geometric_, p, generator_of(generator))


cauchy_ = filler("cauchy_", "float median=0, float sigma=1")
cauchy_.backward(zero_gradient("CauchyBackward0"))


@cauchy_.meta
def cauchy_meta_(self, median, sigma, generator):
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    dtype = dtype_of(self)
    if not dtype.is_floating_point:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be "
            f"a floating point but you specified {CPP_NAMES[dtype]}"
        )


@cauchy_.kernel
def cauchy_cpu_(self, median, sigma, generator):
    cauchy_meta_(self, median, sigma, generator)
    return fill(self, kernels.cauchy_, median, sigma, generator_of(generator))


# --------------------------------------------------------------------------------------------------- random_

random_from = filler("random_.from", "int from, int? to")
random_to = filler("random_.to", "int to")
random_ = filler("random_")
random_from.backward(zero_gradient("RandomBackward0"))
random_to.backward(zero_gradient("RandomBackward1"))
random_.backward(zero_gradient("RandomBackward2"))


parse_random = make_parser(packets["torch", "random_"], True)
RANDOM_BY_ENDS = (random_, random_to, random_from)


@python_binding("random_", "method")
def random_binding(self, *ends, generator=None, **named):
    """`random_()`, `random_(to)` or `random_(from, to)`."""
    if named or len(ends) > 2 or not all([type(end) is int for end in ends]):
        return parse_random((self, *ends), named if generator is None else {"generator": generator, **named})
    return RANDOM_BY_ENDS[len(ends)].call(self, *ends, generator)


@random_.kernel
def random_cpu_(self, generator):
    if self._array.size:
        check_kernel_type(self, "random_kernel_cpu", DRAWN)
    return fill(self, kernels.random_, generator_of(generator))


@random_to.meta
def random_to_meta_(self, to, generator):
    random_from_meta_(self, 0, to, generator)


@random_to.kernel
def random_to_cpu_(self, to, generator):
    return random_from_cpu_(self, 0, to, generator)


def ends_of(dtype, low, to):
    """The first and the last number to draw; None for all of 64 bits."""
    if to is not None:
        return closed_range(dtype, low, to)
    return None if low == INT64_MIN else open_range(dtype, low)


@random_from.meta
def random_from_meta_(self, low, to, generator):
    ends = ends_of(dtype_of(self), low, to)
    if ends is not None:
        check_from_to_in_range(dtype_of(self), *ends)


@random_from.kernel
def random_from_cpu_(self, low, to, generator):
    """Whole numbers of [low, to); without `to`, up to the type's largest."""
    check_no_internal_overlap(self._array)
    dtype = dtype_of(self)
    ends = ends_of(dtype, low, to)
    if ends is None:
        if self._array.size:
            check_kernel_type(self, "random_full_64_bits_range_kernel_cpu", NOT_HALF_OR_BOOL)
            if dtype not in FULL_RANGE:
                raise RuntimeError(
                    "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16"
                )
        return fill(self, kernels.random_from_to_, 0, 0, generator_of(generator))
    low, last = ends
    check_from_to_in_range(dtype, low, last)
    return fill(self, kernels.random_from_to_, last - low + 1 & (1 << 64) - 1, low, generator_of(generator))


NOT_HALF_OR_BOOL = DRAWN - {scalar_type.float16, scalar_type.bool}
FULL_RANGE = frozenset({scalar_type.int64, scalar_type.float64, scalar_type.float32, scalar_type.bfloat16})


# ------------------------------------------------------------------------------------------------ bernoulli_

bernoulli_tensor_ = filler("bernoulli_.Tensor", "Tensor p")
bernoulli_float_ = filler("bernoulli_.float", "float p=0.5")
bernoulli_float_.backward(zero_gradient("BernoulliBackward2"))


parse_bernoulli = make_parser(packets["torch", "bernoulli_"], True)


@python_binding("bernoulli_", "method")
def bernoulli_binding(self, p=0.5, *, generator=None):
    """`bernoulli_(p)` with a number or a tensor of probabilities."""
    if type(p) in (float, int):
        return bernoulli_float_.call(self, p, generator)
    return parse_bernoulli((self, p), {} if generator is None else {"generator": generator})


@bernoulli_float_.meta
def bernoulli_float_meta_(self, p, generator):
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")


@bernoulli_float_.kernel
def bernoulli_float_cpu_(self, p, generator):
    bernoulli_float_meta_(self, p, generator)
    if self._array.size:
        check_no_internal_overlap(self._array)
        check_kernel_type(self, "bernoulli_scalar_cpu_", DRAWN)
    return fill(self, kernels.bernoulli_, p, generator_of(generator))


@bernoulli_tensor_.kernel
def bernoulli_tensor_cpu_(self, p, generator):
    if self._array.size:
        check_no_internal_overlap(self._array)
        check_kernel_type(self, "bernoulli_tensor_cpu_self_", DRAWN)
        p = at.expand(p, self._array.shape)
        check_kernel_type(p, "bernoulli_tensor_cpu_p_", DRAWN_FLOATS)
        check_probabilities(p._array)
    return fill(self, kernels.bernoulli_, p._array, generator_of(generator))


def check_probabilities(p):
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error "
            "message be improved?  If so, please report an enhancement request to PyTorch.)"
        )


@bernoulli_tensor_.backward
class BernoulliBackward1:
    def self(grad):
        return at.zeros_like(grad)

    def p(p):
        return at.zeros_like(p)

    def result(self_t):
        return self_t.zero_()


for operator in (uniform_, normal_, log_normal_, exponential_, cauchy_, geometric_):
    quick_binding(operator)


# -------------------------------------------------------------------------- bernoulli, multinomial, poisson …

FLOAT_OR_DOUBLE = frozenset({scalar_type.float32, scalar_type.float64})


def row_by_row(self, *rest):
    """A shape rule: the first argument's shape and type, rows first."""
    return TensorMeta(self._array.shape, dtype_of(self))


def empty_contiguous(t):
    return at.empty_like(t, memory_format=contiguous_format)


# ------------------------------------------------------------------------------------------------- bernoulli

bernoulli = native_function("bernoulli(Tensor self, *, Generator? generator=None) -> Tensor", BOTH, out=True)
bernoulli_p = native_function("bernoulli.p(Tensor self, float p, *, Generator? generator=None) -> Tensor", BOTH)


@bernoulli.backward
class BernoulliBackward0:
    def self(grad):
        return at.zeros_like(grad)

    result = "auto_element_wise"


@bernoulli.kernel
@any_device
def bernoulli_any(self, generator):
    with below_autograd():
        return bernoulli_tensor_.call(empty_contiguous(self), self, generator)


@bernoulli.out.kernel
@any_device
def bernoulli_out_any(self, generator, out):
    if out._array.shape != self._array.shape:
        resize(out, self._array.shape)
    with below_autograd():
        return bernoulli_tensor_.call(out, self, generator)


def never_written(t):
    """A tensor that was made by filling it counts no write. In PyTorch: the kernel at Autograd excludes what would count."""
    t._counter[0] = 0
    return t


@bernoulli_p.kernel
@any_device
def bernoulli_p_any(self, p, generator):
    return never_written(bernoulli_float_.call(empty_contiguous(self), p, generator))


# ----------------------------------------------------------------------------------------------- multinomial

multinomial = native_function(
    "multinomial(Tensor self, SymInt num_samples, bool replacement=False, *, Generator? generator=None) -> Tensor",
    BOTH,
    out=exact_out(lambda out, *_: f"multinomial expects Long tensor out, got: {type_name(out)}"),
)
MOST_CATEGORIES = 2**24  # the largest whole number up to which float32 has all of them


@multinomial.meta
def multinomial_meta(self, num_samples, replacement, generator):
    array, dtype = self._array, dtype_of(self)
    if array.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not dtype.is_floating_point:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {SCALAR_TYPE_NAMES[dtype]}"
        )
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > array.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if array.shape[-1] > MOST_CATEGORIES:
        raise RuntimeError("number of categories cannot exceed 2^24")
    return TensorMeta((*array.shape[:-1], num_samples), scalar_type.int64)


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
        raise RuntimeError("invalid multinomial distribution (encountering probability entry = infinity or NaN)")
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
    multinomial_meta(self, num_samples, replacement, generator)
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


# --------------------------------------------------------------------------------------- poisson, binomial, …

poisson = native_function("poisson(Tensor self, Generator? generator=None) -> Tensor")


poisson.meta(row_by_row)


@poisson.impl()
def poisson_cpu(self, generator, out):
    check_kernel_type(self, "poisson_cpu", DRAWN_FLOATS)
    if not (self._array >= 0).all():
        raise RuntimeError("invalid Poisson rate, expected rate to be non-negative")
    run(kernels.poisson, out._array, self._array, generator_of(generator))


@poisson.backward
class PoissonBackward0:
    def self(self):
        return at.zeros_like(self)

    result = "auto_element_wise"


binomial = native_function("binomial(Tensor count, Tensor prob, Generator? generator=None) -> Tensor")


@binomial.meta
def binomial_meta(count, prob, generator):
    for name, t in (("count", count), ("prob", prob)):
        if not dtype_of(t).is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {SCALAR_TYPE_NAMES[dtype_of(t)]}"
            )
    return TensorMeta(broadcast_shape(count._array.shape, prob._array.shape), dtype_of(count))


@binomial.impl()
def binomial_cpu(count, prob, generator, out):
    if dtype_of(count) is not dtype_of(prob):
        raise RuntimeError(
            f"Found dtype {SCALAR_TYPE_NAMES[dtype_of(prob)]} but expected {SCALAR_TYPE_NAMES[dtype_of(count)]}"
        )
    check_kernel_type(count, "binomial_cpu", FLOAT_OR_DOUBLE)
    trials, p = np.broadcast_arrays(count._array, prob._array)
    run(kernels.binomial, out._array, trials, p, generator_of(generator))


binomial.backward(NOT_IMPLEMENTED)


# ---------------------------------------------------------------------------------------- gamma and Dirichlet

_standard_gamma = native_function("_standard_gamma(Tensor self, Generator? generator=None) -> Tensor")
_standard_gamma_grad = native_function("_standard_gamma_grad(Tensor self, Tensor output) -> Tensor")
_sample_dirichlet = native_function("_sample_dirichlet(Tensor self, Generator? generator=None) -> Tensor")
_sample_dirichlet.backward(NOT_IMPLEMENTED)
_dirichlet_grad = native_function("_dirichlet_grad(Tensor x, Tensor alpha, Tensor total) -> Tensor")
_dirichlet_grad.backward(NOT_IMPLEMENTED)


@_dirichlet_grad.meta
def dirichlet_grad_meta(x, alpha, total):
    return TensorMeta(broadcast_shape(x._array.shape, alpha._array.shape, total._array.shape), dtype_of(x))


@_dirichlet_grad.kernel
def dirichlet_grad_cpu(x, alpha, total):
    """For `torch.distributions.Dirichlet`: the derivative of each part by its concentration."""
    check_kernel_type(x, "_dirichlet_grad_cpu", FLOAT_OR_DOUBLE)
    dirichlet_grad_meta(x, alpha, total)
    return wrap(kernels.dirichlet_grad(*np.broadcast_arrays(x._array, alpha._array, total._array)))


_standard_gamma.meta(row_by_row)


@_standard_gamma.impl()
def standard_gamma_cpu(self, generator, out):
    check_kernel_type(self, "gamma_cpu", FLOAT_OR_DOUBLE)
    run(kernels.standard_gamma, out._array, self._array, generator_of(generator))


@_standard_gamma.backward
class StandardGammaBackward0:
    def self(grad, self, result):
        return grad * at._standard_gamma_grad(self, result)


_standard_gamma_grad.meta(lambda self, output: like(self))


@_standard_gamma_grad.kernel
def standard_gamma_grad_cpu(self, output):
    check_kernel_type(self, "_standard_gamma_grad_cpu", FLOAT_OR_DOUBLE)
    return wrap(kernels.standard_gamma_grad(self._array, output._array))


_standard_gamma_grad.backward(NOT_IMPLEMENTED)


_sample_dirichlet.meta(row_by_row)


@_sample_dirichlet.impl()
def sample_dirichlet_cpu(self, generator, out):
    check_kernel_type(self, "dirichlet", FLOAT_OR_DOUBLE)
    run(kernels.dirichlet, out._array, self._array, generator_of(generator))
