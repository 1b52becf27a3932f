"""Functions that are made of pieces, exactly where the pieces meet, and one step beside: values and gradients.

Small tensors are computed by NumPy, large ones by compiled loops, those on a device by kernels: three texts or three compilers.
"""

import gc

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import readtorch as rt
import readtorch.nn.functional as RF
from readtorch import cuda

# The function, and where its pieces meet.
PIECES = {
    "relu": (lambda T, F, x: T.relu(x), [0]),
    "relu6": (lambda T, F, x: F.relu6(x), [0, 6]),
    "hardtanh": (lambda T, F, x: F.hardtanh(x, -1.5, 0.5), [-1.5, 0.5]),
    "hardsigmoid": (lambda T, F, x: F.hardsigmoid(x), [-3, 3]),
    "hardswish": (lambda T, F, x: F.hardswish(x), [-3, 0, 3]),
    "hardshrink": (lambda T, F, x: F.hardshrink(x, 0.5), [-0.5, 0, 0.5]),
    "softshrink": (lambda T, F, x: F.softshrink(x, 0.5), [-0.5, 0, 0.5]),
    "threshold": (lambda T, F, x: F.threshold(x, 0.5, -2.0), [0.5]),
    "leaky_relu": (lambda T, F, x: F.leaky_relu(x, 0.25), [0]),
    "leaky_relu, negative slope": (lambda T, F, x: F.leaky_relu(x, -0.25), [0]),
    "elu": (lambda T, F, x: F.elu(x, 1.5), [0]),
    "celu": (lambda T, F, x: F.celu(x, 1.5), [0]),
    "selu": (lambda T, F, x: F.selu(x), [0]),
    "softplus": (lambda T, F, x: F.softplus(x, 2.0, 3.0), [1.5]),
    "abs": (lambda T, F, x: x.abs(), [0]),
    "sign": (lambda T, F, x: x.sign(), [0]),
    "clamp": (lambda T, F, x: x.clamp(-0.5, 1.25), [-0.5, 1.25]),
    "clamp to a minimum": (lambda T, F, x: x.clamp(min=0.5), [0.5]),
    "clamp to a maximum": (lambda T, F, x: x.clamp(max=0.5), [0.5]),
    "clamp of tensors": (lambda T, F, x: x.clamp(T.full_like(x, -0.5), T.full_like(x, 1.25)), [-0.5, 1.25]),
    "maximum": (lambda T, F, x: T.maximum(x, T.full_like(x, 0.5)), [0.5]),
    "minimum": (lambda T, F, x: T.minimum(x, T.full_like(x, 0.5)), [0.5]),
    "fmax": (lambda T, F, x: T.fmax(x, T.full_like(x, 0.5)), [0.5]),
    "fmin": (lambda T, F, x: T.fmin(x, T.full_like(x, 0.5)), [0.5]),
    "huber_loss": (lambda T, F, x: F.huber_loss(x, T.zeros_like(x), "none", 0.75), [-0.75, 0, 0.75]),
    "smooth_l1_loss": (
        lambda T, F, x: F.smooth_l1_loss(x, T.zeros_like(x), reduction="none", beta=0.75),
        [-0.75, 0, 0.75],
    ),
    "l1_loss": (lambda T, F, x: F.l1_loss(x, T.zeros_like(x), reduction="none"), [0]),
    "hinge_embedding_loss": (
        lambda T, F, x: F.hinge_embedding_loss(x, -T.ones_like(x), 0.75, reduction="none"),
        [0.75],
    ),
    "xlogy": (lambda T, F, x: T.xlogy(x, T.full_like(x, 2.0)), [0]),
    "heaviside": (lambda T, F, x: T.heaviside(x.detach(), T.full_like(x, 0.5).detach()), [0]),
    "prelu": (lambda T, F, x: F.prelu(x, T.full((1,), 0.25, dtype=x.dtype, device=x.device)), [0]),
    "round": (lambda T, F, x: x.round(), [-1.5, -0.5, 0.5, 1.5, 2.5]),
    "frac": (lambda T, F, x: x.frac(), [-1, 0, 1]),
    "remainder": (lambda T, F, x: T.remainder(x, 1.5), [-1.5, 0, 1.5]),
    "fmod": (lambda T, F, x: T.fmod(x, 1.5), [-1.5, 0, 1.5]),
    "logit": (lambda T, F, x: T.logit(x, 0.25), [0.25, 0.75]),
}
CONTIGUOUS_LOOP = 1 << 15  # elements from which on compiled loops take over


def around(edges, dtype):
    """Each edge, the numbers next to it, the two zeros, and points well apart. No nan: there PyTorch's own loops differ."""
    edges = np.array([*edges, 0.0, -0.0], dtype)
    infinity = np.array(np.inf, dtype)
    far = np.array([-7.5, -1.0, 0.3, 7.5, np.inf, -np.inf], dtype)
    return np.concatenate([edges, np.nextafter(edges, infinity), np.nextafter(edges, -infinity), far])


def result_and_gradient(T, functional, call, x):
    x = x.requires_grad_()
    y = call(T, functional, x)
    grad = T.autograd.grad(y, x, T.full_like(y, 1.5))[0] if y.requires_grad else y
    return [t.detach().cpu().numpy() for t in (y, grad)]


def alike(ours, theirs):
    for mine, expected in zip(ours, theirs):
        np.testing.assert_allclose(mine, expected, rtol=3e-6, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("repeats", [1, CONTIGUOUS_LOOP], ids=["small", "large"])
@pytest.mark.parametrize("name", PIECES)
def test_on_the_cpu(name, repeats, dtype):
    call, edges = PIECES[name]
    numbers = around(edges, dtype)
    if repeats > 1:
        numbers = np.resize(numbers, repeats)
    theirs = result_and_gradient(torch, F, call, torch.from_numpy(numbers.copy()))
    alike(result_and_gradient(rt, RF, call, rt.from_numpy(numbers.copy())), theirs)


@pytest.fixture(scope="module")
def device():
    cuda.simulate(1, "64MiB", kernels=True)
    yield "cuda"
    gc.collect()
    cuda.simulate(0)


@pytest.mark.parametrize("name", PIECES)
def test_on_cuda(name, device):
    call, edges = PIECES[name]
    numbers = around(edges, np.float32)
    theirs = result_and_gradient(torch, F, call, torch.from_numpy(numbers.copy()))
    alike(result_and_gradient(rt, RF, call, rt.from_numpy(numbers.copy()).to(device)), theirs)


OF_TWO = {
    name: lambda T, x, y, name=name: getattr(T.special if hasattr(T.special, name) else T, name)(x, y)
    for name in (
        "gammainc",
        "gammaincc",
        "xlogy",
        "xlog1py",
        "zeta",
        "pow",
        "atan2",
        "hypot",
        "logaddexp",
        "logaddexp2",
    )
} | {
    name: lambda T, x, y, name=name: getattr(T, name)(x, y)
    for name in ("fmod", "remainder", "copysign", "nextafter", "heaviside", "fmax", "fmin", "maximum", "floor_divide")
}
MARKS = [0.0, -0.0, 0.5, 1.0, 2.0, 3.5, -1.0, -2.5, 1e-30, 1e30, np.inf, -np.inf, np.nan]
# Where PyTorch's answers are chance: a nan that it does not look at, a quotient beyond its integers, a rounded logarithm.
LEFT_OUT = {
    "gammainc": (1e-30, 1e30, "nan"),
    "gammaincc": (1e-30, 1e30, "nan"),
    "zeta": (np.inf,),
    "fmod": (1e30,),
    "remainder": (1e30,),
    "logaddexp2": (-1.0,),
}


@pytest.mark.parametrize("place", ["cpu", "cuda"])
@pytest.mark.parametrize("name", OF_TWO)
def test_two_numbers_at_the_ends_of_their_range(name, place, request):
    if place == "cuda":
        request.getfixturevalue("device")
    left_out = LEFT_OUT.get(name, ())
    marks = [x for x in MARKS if x not in left_out and str(x) not in left_out]
    pairs = np.array([(x, y) for x in marks for y in marks], np.float32)
    found = []
    for T in (rt, torch):
        x, y = [T.from_numpy(column.copy()).to(place if T is rt else "cpu") for column in pairs.T]
        found.append(OF_TWO[name](T, x, y).cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-5, atol=1e-30)
