"""Windows: M weights that let a piece of a signal fade in and out before its spectrum is taken.

sym=False gives the periodic window: the symmetric one of M + 1 weights without its last.
All raise ValueError for a negative M, a dtype other than float32 and float64, or a parameter out of its
range.
In PyTorch: `torch/signal/windows/windows.py`.
"""

import math

from readtorch.aten.functions import at
from readtorch.c10 import scalar_type
from readtorch.c10.layout import strided

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


def _options(name, M, dtype, layout, device, requires_grad):
    """The checked options of the tensor, for the factory that makes it. Raises ValueError."""
    dtype = scalar_type.get_default_dtype() if dtype is None else dtype
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (scalar_type.float32, scalar_type.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {"dtype": dtype, "layout": layout, "device": device, "requires_grad": requires_grad}


def _steps(M, first, step, options):
    """first, first + step, …: M numbers."""
    return at.linspace(first * step, (first + (M - 1)) * step, M, **options)


def _length(M, sym):
    """How many steps the whole window has, its last weight included."""
    return M if not sym and M > 1 else M - 1


def exponential(M, *, center=None, tau=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """exp(-|n - center| / tau); the center is the middle unless sym is False."""
    options = _options("exponential", M, dtype, layout, device, requires_grad)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return at.empty((0,), **options)
    center = _length(M, sym) / 2 if center is None else center
    return (-_steps(M, -center, 1 / tau, options).abs()).exp()


def cosine(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Half a period of a sine."""
    options = _options("cosine", M, dtype, layout, device, requires_grad)
    if M == 0:
        return at.empty((0,), **options)
    return _steps(M, 0.5, math.pi / (_length(M, sym) + 1), options).sin()


def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """exp(-(n / std)² / 2), n counted from the middle."""
    options = _options("gaussian", M, dtype, layout, device, requires_grad)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return at.empty((0,), **options)
    return (-(_steps(M, -_length(M, sym) / 2, 1 / (std * math.sqrt(2)), options) ** 2)).exp()


def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """i0(sqrt(beta² - k²)) / i0(beta), k going from -beta to beta."""
    options = _options("kaiser", M, dtype, layout, device, requires_grad)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return at.ones((M,), **options)
    beta = at.full((), beta, dtype=options["dtype"])
    end = at.minimum(beta, -beta + (M - 1) * (2.0 * beta / (M - 1 if sym else M)))
    k = at.linspace(-beta, end, M, **options)
    return at.i0((beta * beta - k.pow(2)).sqrt()) / at.i0(beta)


def bartlett(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """A triangle."""
    options = _options("bartlett", M, dtype, layout, device, requires_grad)
    if M < 2:
        return at.ones((M,), **options)
    step = 2 / (M - 1 if sym else M)
    return 1 - at.linspace(-1, -1 + (M - 1) * step, M, **options).abs()


def general_cosine(M, *, a, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """a[0] - a[1] cos x + a[2] cos 2x - …, x going once round. Raises TypeError if `a` is no list."""
    options = _options("general_cosine", M, dtype, layout, device, requires_grad)
    if M < 2:
        return at.ones((M,), **options)
    if not hasattr(a, "__iter__"):
        raise TypeError("Coefficients must be a list/tuple")
    if not a:
        raise ValueError("Coefficients cannot be empty")
    x = _steps(M, 0, 2 * math.pi / (M - 1 if sym else M), options)
    weights = at.stack([at.full((), (-1) ** i * w, dtype=x.dtype, device=x.device) for i, w in enumerate(a)])
    multiples = at.arange(len(a), dtype=x.dtype, device=x.device)
    return (weights.unsqueeze(-1) * (multiples.unsqueeze(-1) * x).cos()).sum(0)


def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """alpha - (1 - alpha) cos x"""
    return general_cosine(
        M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def hamming(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """0.54 - 0.46 cos x: the nearest sidelobe of its spectrum vanishes."""
    return general_hamming(M, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)


def hann(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """(1 - cos x) / 2, which touches 0 at both ends."""
    return general_hamming(
        M, alpha=0.5, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def blackman(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """0.42 - 0.5 cos x + 0.08 cos 2x"""
    _options("blackman", M, dtype, layout, device, requires_grad)
    return general_cosine(
        M, a=[0.42, 0.5, 0.08], sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad
    )


def nuttall(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False):
    """Four terms, with the lowest sidelobes of these windows."""
    return general_cosine(
        M,
        a=[0.3635819, 0.4891775, 0.1365995, 0.0106411],
        sym=sym,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )
