"""Special functions: erf, lgamma, digamma and their relatives, and the names of `torch.special`.

SciPy computes them; it is imported when one of them is first used.
In PyTorch: `aten/src/ATen/native/UnaryOps.cpp` and `aten/src/ATen/native/Math.h`.
"""

import math

import numpy as np

from readtorch.aten.expand_utils import broadcast_error
from readtorch.aten.functions import at
from readtorch.aten.native import math as f
from readtorch.aten.native import math_special as special
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native.tensor_iterator import (
    compute,
    conj,
    elementwise,
    float_result_type,
    is_real,
    is_wide,
    laid_out,
    not_implemented,
    scalar_tensor,
    unary_float_kernel,
)
from readtorch.aten.native.vectorized import or_loop
from readtorch.aten.native_function import BOTH, alias_of, native_function
from readtorch.aten.register_dispatch_key import any_device, write_result
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10 import scalar_type
from readtorch.c10.scalar_type import COMPLEX
from readtorch.c10.tensor_impl import wrap_result

from .elementary import node_of_its_own, unary


def scipy_function(name):
    """A function on arrays that looks up `scipy.special.<name>` at its first call."""

    def function(*arrays):
        from scipy import special

        return getattr(special, name)(*arrays)

    return function


def special_unary(name, refusal, array_function, scalar_function):
    """Declare a function of real numbers. refusal: the CPU kernel's name in PyTorch, which errors say."""
    kernel = unary_float_kernel(array_function, not_implemented(refusal))
    return unary(name, kernel, scalar_function, float_result_type, takes=is_real)


# -------------------------------------------------------------------------------------------------------- erf

erf = special_unary("erf", "erf_vml_cpu", or_loop(f.erf, scipy_function("erf")), f.erf)
erfc = special_unary("erfc", "erfc_vml_cpu", scipy_function("erfc"), f.erfc)
erfinv = special_unary("erfinv", "erfinv_vml_cpu", scipy_function("erfinv"), special.erfinv)


@erf.backward
class ErfBackward0:
    def self(grad, self):
        return mul_scalar.call((-self.pow(2)).exp(), 2 / math.sqrt(math.pi)) * grad

    result = "auto_element_wise"


@erfc.backward
class ErfcBackward0:
    def self(grad, self):
        return mul_scalar.call((-self.pow(2)).exp(), -2 / math.sqrt(math.pi)) * grad

    result = "auto_element_wise"


@erfinv.backward
class ErfinvBackward0:
    def self(grad, self):
        return mul_scalar.call(self.erfinv().pow(2).exp(), 0.5 * math.sqrt(math.pi)) * grad

    result = "auto_element_wise"


# ------------------------------------------------------------------------------------------------------ gamma


def lgamma_array(x):
    """SciPy gives a negative infinity at that infinity, PyTorch a positive one at both."""
    return np.where(np.isinf(x), np.abs(x), scipy_function("gammaln")(x))


lgamma = special_unary("lgamma", "lgamma_vml_cpu", lgamma_array, special.lgamma)


def zeta_array(x, q):
    """Hurwitz's zeta function, the sum of (q + i) ** -x over all i >= 0.

    The first terms are added up, the rest is what the Euler-Maclaurin formula makes of it. As in PyTorch, all but the first
    term are computed in double precision, and an element is done as soon as a term no longer counts. (SciPy computes the
    first one so, too, and gives float32 numbers that differ from PyTorch's in the fifth digit.)
    """
    operands, dtype = (x, q), q.dtype
    x, q = np.broadcast_arrays(x, q)
    first, place, x = (q**-x).astype(np.float64), q.astype(np.float64), x.astype(np.float64)
    total, done, term = first, np.zeros(q.shape, bool), np.zeros_like(place)
    least = np.min(np.nan_to_num(q), initial=0, where=q != np.floor(q))  # of those that are no poles
    for i in range(1, 10 + int(-least)):
        further = ~done & ((i <= 9) | (place <= 9))
        place = np.where(further, place + 1, place)
        term = np.where(further, place**-x, term)
        total = np.where(further, total + term, total)
        done |= further & (np.abs(term) < LEAST * total)
    tail = term * place / (x - 1) - 0.5 * term
    total = np.where(done, total, total + tail)
    factor, power = np.ones_like(place), term
    for i, divisor in enumerate(special.DIVISORS):
        factor, power = factor * (x + 2 * i), power / place
        part = factor * power / divisor
        total = np.where(done, total, total + part)
        done |= np.abs(part / total) < LEAST
        factor, power = factor * (x + 2 * i + 1), power / place
    poles = np.where(q == np.floor(q), np.inf, np.where(x == np.floor(x), total, np.nan))
    result = np.where(x < 1, np.nan, np.where(x == 1, np.inf, np.where(q <= 0, poles, total)))
    return laid_out(result.astype(dtype), *operands)


LEAST = 1.11022302462515654042e-16  # of a sum: a smaller term changes no digit of it


def digamma_array(x):
    """SciPy gives nan at 0, where PyTorch gives an infinity of the opposite sign."""
    return np.where(x == 0, np.copysign(x.dtype.type(np.inf), -x), scipy_function("digamma")(x))


digamma = special_unary("digamma", "digamma", digamma_array, special.digamma)


@lgamma.backward
class LgammaBackward0:
    def self(grad, self):
        return grad * at.digamma(self)

    result = "auto_element_wise"


@digamma.backward
class DigammaBackward0:
    def self(grad, self):
        return grad * at.polygamma(1, self)

    result = "auto_element_wise"


polygamma = native_function("polygamma(int n, Tensor self) -> Tensor", "function", out=True)
polygamma_method = native_function("polygamma.method(Tensor self, int n) -> Tensor", "method", inplace=True)


def check_polygamma(n, self):
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


def polygamma_scalars(n):
    return (n + 1, math.factorial(n) * (1.0 if n % 2 else -1.0), *special.DIVISORS) if n > 1 else ()


elementwise(
    polygamma,
    lambda n: (special.digamma, special.trigamma, special.polygamma)[min(n, 2)],
    float_result_type,
    by_number=True,
    scalars=polygamma_scalars,
    check=check_polygamma,
    takes=is_real,
)


@polygamma.kernel
def polygamma_cpu(n, self):
    check_polygamma(n, self)
    if n == 0:
        return digamma.call(self)
    if n == 1:
        return unary_float_kernel(trigamma_array, not_implemented("polygamma"))(self)
    n = int(np.int64(n).astype(np.int32))  # as PyTorch hands it on
    factor = np.exp(scipy_function("gammaln")(np.float64(n + 1.0))) * (1.0 if n % 2 else -1.0)

    def zeta_series(x):
        return (factor * zeta_array(x.dtype.type(n + 1.0), x).astype(np.float64)).astype(x.dtype)

    return unary_float_kernel(zeta_series, not_implemented("polygamma"))(self)


polygamma_method.compose(lambda self, n: polygamma.call(n, self))


def trigamma_array(x):
    """The derivative of digamma: six steps up, and the asymptotic series there; mirrored below 1/2."""
    mirrored = x < 0.5
    place, total = np.where(mirrored, 1 - x, x), np.zeros_like(x)
    for _ in range(6):
        total += 1 / (place * place)
        place = place + 1
    square = 1 / (place * place)
    total += (1 + 1 / (2 * place) + square * (1 / 6 - square * (1 / 30 - square / 42))) / place
    return np.where(mirrored, (x.dtype.type(np.pi) / np.sin(x.dtype.type(np.pi) * x)) ** 2 - total, total)


@polygamma.backward
class PolygammaBackward0:
    def self(grad, n, self):
        return grad * at.polygamma(n + 1, self)

    result = "auto_element_wise"


polygamma_ = node_of_its_own(polygamma_method)
polygamma_.kernel(any_device(lambda self, n: write_result(self, polygamma.call(n, self))))


@polygamma_.backward
class PolygammaBackward1:
    def self(grad, self, n):
        return grad * at.polygamma(n + 1, self)

    result = "auto_element_wise"


mvlgamma = native_function("mvlgamma(Tensor self, int p) -> Tensor", BOTH, inplace=True, out=True)


def check_mvlgamma(self, p):
    if self._array.dtype.kind == "b":
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")


@mvlgamma.meta
def mvlgamma_meta(self, p):
    check_mvlgamma(self, p)
    return TensorMeta(self._array.shape, float_result_type(self))


@mvlgamma.kernel
def mvlgamma_cpu(self, p):
    """log of the multivariate gamma function."""
    check_mvlgamma(self, p)

    def sum_of_logs(x):
        shifts = (np.arange(p) / 2 - (p - 1) / 2).astype(x.dtype)
        total = scipy_function("gammaln")(x[..., None] + shifts).sum(-1)
        return np.add(total, x.dtype.type(p * (p - 1) * math.log(math.pi) / 4), order="C")

    return unary_float_kernel(sum_of_logs)(self)


@mvlgamma.backward
class MvlgammaBackward0:
    def self(grad, self, p):
        shifts = at.arange(-p / 2 + 0.5, 0.5, 0.5, dtype=self.dtype, device=self.device)
        return grad * shifts.add(self.unsqueeze(-1)).digamma_().sum(-1)

    result = "auto_element_wise"


# --------------------------------------------------------------------------------------------- sinc, i0, entr


def sinc_array(x):
    product = x * x.dtype.type(math.pi)
    return np.where(x == 0, x.dtype.type(1), np.sin(product) / product)


sinc = unary("sinc", unary_float_kernel(sinc_array), special.sinc, float_result_type, takes=is_real)


@sinc.backward
class SincBackward0:
    def self(grad, self):
        product = self * math.pi
        slope = grad * conj((product * product.cos() - product.sin()) / (product * self))
        return at.where(product == 0, at.zeros_like(slope), slope)

    result = "auto_element_wise"


i0 = special_unary("i0", "i0_vml_cpu", scipy_function("i0"), special.i0)
i1 = native_function("special_i1(Tensor self) -> Tensor", module="special", name="i1", out=True)
elementwise(i1, special.i1, float_result_type, takes=is_wide)
i1.kernel(unary_float_kernel(scipy_function("i1")))


@i0.backward
class I0Backward0:
    def self(grad, self):
        return grad * i1.call(self)

    result = "auto_element_wise"


@i1.backward
class SpecialI1Backward0:
    def self(grad, self, result):
        safe = at.where(self == 0, at.ones_like(self), self)
        return grad * at.where(self == 0, at.full_like(self, 0.5), at.i0(self) - result / safe)

    result = "auto_element_wise"


entr = native_function("special_entr(Tensor self) -> Tensor", module="special", name="entr", out=True)
elementwise(entr, special.entropy, float_result_type, takes=is_real)
entr.kernel(unary_float_kernel(scipy_function("entr"), not_implemented("entr")))


@entr.backward
class SpecialEntrBackward0:
    def self(grad, self):
        return grad * -(1 + self.log())

    result = "auto_element_wise"


ndtr = native_function("special_ndtr(Tensor self) -> Tensor", module="special", name="ndtr", out=True)


@ndtr.compose
def ndtr_composite(self):
    x = self if self.dtype.category >= scalar_type.FLOAT else self.to(scalar_type.get_default_dtype())
    return mul_scalar.call(at.erfc(mul_scalar.call(x, -math.sqrt(0.5))), 0.5)


# ------------------------------------------------------------------------------------------------------ xlogy


def product_with_log(
    name, function, scalar_function, module="torch", method=True, scalar_names=("Scalar_Self", "Scalar_Other")
):
    """Declare x * log(y): 0 where x is 0, whatever y. Returns the three overloads."""
    python_name = name.removeprefix("special_")
    variants = BOTH if method else "function"
    overload = ".Tensor" if method else ""
    of_tensors = native_function(
        f"{name}{overload}(Tensor self, Tensor other) -> Tensor",
        variants,
        module=module,
        name=python_name,
        inplace=method,
        out=True,
    )
    of_number = native_function(
        f"{name}.{scalar_names[0]}(Scalar self, Tensor other) -> Tensor",
        "function",
        module=module,
        name=python_name,
        out=True,
    )
    with_number = native_function(
        f"{name}.{scalar_names[1]}(Tensor self, Scalar other) -> Tensor",
        variants,
        module=module,
        name=python_name,
        inplace=method,
        out=True,
    )
    refusal = not_implemented(f"{python_name}_cpu")

    @of_tensors.kernel
    def product_cpu(self, other):
        common = float_result_type(self, other)
        if common.category == COMPLEX:
            raise refusal(common)
        try:
            return wrap_result(compute(function, (self._array, other._array), common))
        except ValueError:
            raise broadcast_error(self._array.shape, other._array.shape) from None

    elementwise(of_tensors, scalar_function, float_result_type, takes=is_real)
    of_number.kernel(any_device(lambda self, other: of_tensors.call(scalar_tensor(self), other)))
    with_number.kernel(any_device(lambda self, other: of_tensors.call(self, scalar_tensor(other))))
    return of_tensors, of_number, with_number


def xlogy_array(x, y):
    value = np.where(x == 0, x.dtype.type(0), x * np.log(y))
    return np.where(np.isnan(y), y, value)


def xlog1py_array(x, y):
    value = np.where(x == 0, x.dtype.type(0), x * np.log1p(y))
    return np.where(np.isnan(y), y, value)


xlogy, xlogy_of_number, xlogy_with_number = product_with_log("xlogy", xlogy_array, f.xlogy)
xlog1py, xlog1py_of_number, xlog1py_with_number = product_with_log(
    "special_xlog1py",
    xlog1py_array,
    special.xlog1py,
    module="special",
    method=False,
    scalar_names=("self_scalar", "other_scalar"),
)


@xlogy.backward
class XlogyBackward0:
    def self(grad, self, other):
        return at.xlogy(grad, other).masked_fill((self == 0) & (other <= 0), 0)

    def other(grad, self, other):
        return grad * self / other

    def result(self_p, self_t, other_p, other_t):
        by_self = at.xlogy(self_t, other_p).masked_fill((self_p == 0) & (other_p <= 0), 0)
        return by_self + other_t * self_p / other_p


@xlogy_of_number.backward
class XlogyBackward1:
    def other(grad, self, other):
        return grad * self / other

    result = "auto_element_wise"


@xlogy_with_number.backward
class XlogyBackward2:
    def self(grad, self, other):
        slope = at.xlogy(grad, other)
        return slope if other > 0 else slope.masked_fill(self == 0, 0)

    result = "auto_element_wise"


@xlog1py.backward
class SpecialXlog1PyBackward0:
    def self(grad, self, other):
        return xlog1py.call(grad, other).masked_fill((self == 0) & (other <= -1), 0)

    def other(grad, self, other):
        return grad * self / (other + 1)

    def result(self_p, self_t, other_p, other_t):
        by_self = xlog1py.call(self_t, other_p).masked_fill((self_p == 0) & (other_p <= -1), 0)
        return by_self + other_t * self_p / (other_p + 1)


@xlog1py_of_number.backward
class SpecialXlog1PyBackward1:
    def other(grad, self, other):
        return grad * self / (other + 1)

    result = "auto_element_wise"


@xlog1py_with_number.backward
class SpecialXlog1PyBackward2:
    def self(grad, self, other):
        slope = xlog1py_with_number.call(grad, other)
        return slope if other > -1 else slope.masked_fill(self == 0, 0)

    result = "auto_element_wise"


for _name in (
    "erf",
    "erfc",
    "erfinv",
    "digamma",
    "polygamma",
    "exp2",
    "expm1",
    "log1p",
    "round",
    "sinc",
    "xlogy",
    "i0",
):
    alias_of(_name, _name, module="special")
alias_of("gammaln", "lgamma", module="special")
alias_of("psi", "digamma", module="special")
alias_of("multigammaln", "mvlgamma", module="special")
