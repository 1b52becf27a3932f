"""Pointwise CUDA kernels on the simulator against NumPy and torch."""

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from readtorch.aten.native import math as functions
from readtorch.aten.native.cuda.loops import pointwise
from readtorch.aten.native.cuda.offset_calculator import divided, divider, in_32_bits, reach_of
from tests.cuda.launches import aligned, checked, floats

ONE = {
    "neg": torch.neg,
    "absolute": torch.abs,
    "exp": torch.exp,
    "sqrt": torch.sqrt,
    "rsqrt": torch.rsqrt,
    "log": torch.log,
    "reciprocal": torch.reciprocal,
    "sin": torch.sin,
    "cos": torch.cos,
    "tanh": torch.tanh,
    "erf": torch.erf,
    "square": torch.square,
    "sign": torch.sign,
    "sigmoid": torch.sigmoid,
    "relu": torch.relu,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "hardswish": torch.nn.functional.hardswish,
    "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "copy": torch.clone,
}
WITH_NUMBERS = {
    "leaky_relu": ((0.1,), lambda x: torch.nn.functional.leaky_relu(x, 0.1)),
    "elu": ((0.5, 1.0, 1.0), lambda x: torch.nn.functional.elu(x, 0.5)),
    "softplus": ((2.0, 3.0), lambda x: torch.nn.functional.softplus(x, 2, 3)),
    "clamp": ((-0.5, 0.7), lambda x: torch.clamp(x, -0.5, 0.7)),
    "power_of_number": ((3.0,), lambda x: x**3),
    "scale_and_shift": ((3.0, 0.5), lambda x: x * 3 + 0.5),
}
aten = torch.ops.aten
TWO = {
    "add": ((2.0,), lambda x, y: torch.add(x, y, alpha=2)),
    "sub": ((2.0,), lambda x, y: torch.sub(x, y, alpha=2)),
    "mul": ((), torch.mul),
    "div": ((), torch.div),
    "atan2": ((), torch.atan2),
    "power": ((), torch.pow),
    "maximum": ((), torch.maximum),
    "minimum": ((), torch.minimum),
    "threshold_backward": ((0.0,), lambda g, x: aten.threshold_backward(g, x, 0)),
    "sigmoid_backward": ((), aten.sigmoid_backward),
    "tanh_backward": ((), aten.tanh_backward),
    "silu_backward": ((), aten.silu_backward),
    "gelu_backward": ((), aten.gelu_backward),
    "gelu_tanh_backward": ((), lambda g, x: aten.gelu_backward(g, x, approximate="tanh")),
    "leaky_relu_backward": ((0.1,), lambda g, x: aten.leaky_relu_backward(g, x, 0.1, False)),
}
COMPARISONS = {
    "equal": torch.eq,
    "not_equal": torch.ne,
    "less": torch.lt,
    "less_equal": torch.le,
    "greater": torch.gt,
    "greater_equal": torch.ge,
}


def f32s(numbers):
    return tuple(map(np.float32, numbers)) or (np.float32(0),)


def compare(name, inputs, numbers, expected, dtype=np.float32):
    out = aligned(np.zeros(np.broadcast_shapes(*(x.shape for x in inputs)), dtype))
    checked(pointwise, getattr(functions, name), [aligned(x) for x in inputs], out, f32s(numbers))
    np.testing.assert_allclose(out, expected(*map(torch.from_numpy, inputs)).numpy(), rtol=1e-5, atol=1e-6)


SPECIAL = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 88, -104, 1e-40, 3e38], np.float32)


@pytest.mark.parametrize("name", ONE)
def test_one_argument(name):
    special = SPECIAL[np.abs(SPECIAL) < 1e9] if name == "gelu" else SPECIAL  # beyond, torch's loops disagree
    compare(name, [np.concatenate([floats(27), special])], (), ONE[name])


@pytest.mark.parametrize("name", WITH_NUMBERS)
def test_numbers(name):
    numbers, expected = WITH_NUMBERS[name]
    compare(name, [floats(31)], numbers, expected)


@pytest.mark.parametrize("name", TWO)
def test_two_arguments(name):
    numbers, expected = TWO[name]
    compare(name, [floats(30, seed=1), floats(30, seed=2)], numbers, expected)


@pytest.mark.parametrize("name", COMPARISONS)
def test_comparisons(name):
    x, y = np.round(floats(40, seed=1)), np.round(floats(40, seed=2))
    x[0] = y[1] = np.nan
    compare(name, [x, y], (), COMPARISONS[name], bool)


def test_three_arguments():
    x, y, z = floats(6, 5), floats(6, 5, seed=1), floats(5, seed=2)
    compare("where", [x > 0, y, z], (), torch.where)
    compare("addcmul", [x, y, z], (0.5,), lambda x, y, z: torch.addcmul(x, y, z, value=0.5))
    compare("addcdiv", [x, y, z], (0.5,), lambda x, y, z: torch.addcdiv(x, y, z, value=0.5))
    compare("lerp", [x, y, np.abs(z)], (), torch.lerp)


@pytest.mark.parametrize(
    "a, b",
    [
        ((3, 1), (1, 4)),
        ((), (5,)),
        ((2, 3, 4), (3, 1)),
        ((1,), (1,)),
        ((0, 3), (3,)),
        ((2, 1, 2, 1, 2, 3), (2, 1, 3, 1, 3)),
    ],
)
def test_broadcasting(a, b):
    compare("mul", [floats(*a), floats(*b, seed=1)], (), torch.mul)


def views(x):
    yield "transposed", x.T
    yield "every other", x[::2, 1::3]
    yield "backwards", x[::-1, ::-1]
    yield "permuted", x.reshape(2, 4, 3, 3).transpose(2, 0, 3, 1)


@pytest.mark.parametrize("which", range(4))
def test_strides(which):
    name, x = list(views(floats(8, 9)))[which]
    _, y = list(views(floats(8, 9, seed=1)))[which]
    for out in (np.zeros(x.shape, np.float32), np.zeros(x.shape[::-1], np.float32).T):
        checked(pointwise, functions.div, [x, y], out)
        np.testing.assert_array_equal(out, x / y, err_msg=name)


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
def test_dtypes(dtype):
    x, y = (floats(20) * 9).astype(dtype), (floats(20, seed=1) * 9).astype(dtype)
    out = np.zeros(20, dtype)
    checked(pointwise, functions.maximum, [x, y], out)
    np.testing.assert_array_equal(out, np.maximum(x, y))


def test_in_place():
    x = aligned(floats(70))
    expected = x * 2
    checked(pointwise, functions.scale_and_shift, [x], x, f32s((2, 0)))
    np.testing.assert_array_equal(x, expected)


@given(d=st.integers(1, 2**31 - 1), i=st.integers(0, 2**31 - 1))
@example(d=1, i=2**31 - 1)
@example(d=2**31 - 1, i=2**31 - 1)
@example(d=3, i=2**31 - 2)
def test_division_by_multiplication(d, i):
    assert divided(i, divider(d)) == i // d


@given(data=st.data(), shape=st.lists(st.integers(1, 5), min_size=1, max_size=5))
@settings(max_examples=25, deadline=None)
def test_any_strides(data, shape):
    """Dimensions in any order, with gaps, repeated, and against their direction."""
    arrays = []
    for seed in range(2):
        order = data.draw(st.permutations(range(len(shape))))
        x = floats(*(2 * shape[d] for d in order), seed=seed).transpose(np.argsort(order))
        steps = data.draw(st.lists(st.sampled_from([2, -2, None]), min_size=len(shape), max_size=len(shape)))
        arrays.append(x[tuple(slice(1) if step is None else slice(None, None, step) for step in steps)])
    whole = np.broadcast_shapes(*(x.shape for x in arrays))
    out = np.zeros(whole[::-1], np.float32).T
    checked(pointwise, functions.mul, arrays, out)
    np.testing.assert_array_equal(out, arrays[0] * arrays[1])


def test_arrays_beyond_32_bits_are_taken_apart():
    """None of them is touched: each element is the same one, or none."""
    one = np.zeros((), np.float32)
    wide = np.lib.stride_tricks.as_strided(one, (3, 2**31, 1, 1), (0, 0, 0, 0))
    far = np.lib.stride_tricks.as_strided(one, (3, 2, 1, 1), (2**33, 4, 0, 0))
    for x in (wide, far):
        parts = [a for [a] in in_32_bits([x])]
        assert sum(a.size for a in parts) == x.size and all(reach_of(a) < 2**31 for a in parts)
    assert list(in_32_bits([wide[:1, : 2**31 - 1]]))[0][0].size == 2**31 - 1
