"""Windows: weights that let a piece of a signal fade in and out before its spectrum is taken.

A periodic window is one that, repeated, fits to itself: the first so many of a symmetric one that is longer by one.

In PyTorch: `aten/src/ATen/native/TensorFactories.cpp`.
"""
import math

from ...c10 import scalar_type
from ...c10.tensor_impl import detached
from ..functions import at
from ..native_function import below_autograd, native_function
from .tensor_factories import OPTIONS, check_options

_C_NAMES = scalar_type.C_TYPE_NAMES


def window_function(name, values, **parameters):
    """Declare the overloads of a window: without and with `periodic`, and with each more of its parameters.

    values(n, length, …): the window, from the tensor 0 … length - 1 and the parameters.
    """
    given = []
    _declare(name, "", "", values, (), parameters)
    _declare(name, ".periodic", ", bool periodic", values, (), parameters)
    for parameter in parameters:
        given.append(parameter)
        overload = ".periodic_" + "_".join(given) if len(parameters) > 1 else f".{parameter}"
        taken = "".join(f", float {p}" for p in given)
        _declare(name, overload, f", bool periodic{taken}", values, tuple(given), parameters)


def _declare(name, overload, taken, values, given, parameters):
    operator = native_function(f"{name}{overload}(int window_length{taken}, *, {OPTIONS}) -> Tensor")
    has_periodic = bool(taken)

    @operator.kernel
    def window(window_length, *arguments):
        own, (dtype, layout, device, _) = arguments[:-4], arguments[-4:]
        dtype = dtype or scalar_type.get_default_dtype()
        check(name, window_length, dtype)
        check_options(layout, device)
        periodic = own[0] if has_periodic else True
        chosen = {**parameters, **dict(zip(given, own[1:]))}
        with below_autograd():
            if window_length < 2:
                return at.ones(window_length, dtype=dtype, device=device)
            whole = window_length + 1 if periodic else window_length
            numbers = at.arange(whole, dtype=dtype, device=device)
            return detached(values(numbers, whole, *chosen.values()).narrow(0, 0, window_length))


def check(name, window_length, dtype):
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} expects floating point dtypes, got: TensorOptions(dtype={_C_NAMES[dtype]}, device=cpu, "
                           "layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
                           "memory_format=(nullopt))")
    if window_length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={window_length}")


# ------------------------------------------------------------------------------------------------- the windows

def bartlett(n, length):
    """A triangle."""
    up = n.mul_(2.0 / (length - 1))
    half = (length - 1) // 2 + 1
    up.narrow(0, half, length - half).mul_(-1).add_(2)
    return up


def hamming(n, length, alpha, beta):
    """A cosine, from alpha - beta up to alpha + beta and back."""
    return n.mul_(math.pi * 2.0 / (length - 1)).cos_().mul_(-beta).add_(alpha)


def hann(n, length):
    """A cosine from 0 up to 1 and back."""
    return hamming(n, length, 0.5, 0.5)


def blackman(n, length):
    """A cosine and one of twice the frequency, which makes the ends flatter."""
    n = n.mul_(math.pi / (length - 1))
    return n.mul(4).cos_().mul_(0.08) - n.mul(2).cos_().mul_(0.5) + 0.42


def kaiser(n, length, beta):
    """A Bessel function of the height of a half circle; beta: how narrow."""
    middle = (length - 1) / 2
    x = ((n.double() if n.dtype is scalar_type.float64 else n.float()) - middle) / middle
    whole = at.i0(at.full((), beta, dtype=x.dtype, device=x.device))
    return (at.i0(beta * at.sqrt(1 - x * x)) / whole).to(n.dtype)


window_function("bartlett_window", bartlett)
window_function("blackman_window", blackman)
window_function("hamming_window", hamming, alpha=0.54, beta=0.46)
window_function("hann_window", hann)
window_function("kaiser_window", kaiser, beta=12.0)
