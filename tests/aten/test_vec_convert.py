"""16-bit floats in large tensors, which compiled loops convert: PyTorch's numbers, bit by bit where it rounds once."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch as rt
from readtorch.aten.native.vec_convert import FROM_SIZE

HALVES = ["bfloat16", "float16"]
both_halves = pytest.mark.parametrize("kind", HALVES)


def bits_of(T, t):
    return np.asarray(t.contiguous().view(T.int16).numpy()).view(np.uint16)


def both(array, kind):
    """The array as a tensor of `kind`, here and in PyTorch."""
    return [T.from_numpy(array).to(getattr(T, kind)) for T in (rt, torch)]


def assert_same_halves(ours, theirs):
    """The same bits, or a nan on both sides; the same strides."""
    assert str(ours.dtype) == str(theirs.dtype) and ours.stride() == theirs.stride()
    is_nan = theirs.isnan().numpy()
    assert (ours.isnan().numpy() == is_nan).all()
    assert (bits_of(rt, ours)[~is_nan] == bits_of(torch, theirs)[~is_nan]).all()


def all_numbers():
    return np.arange(2**16, dtype=np.uint16).view(np.int16)


@both_halves
def test_every_number_is_widened(kind):
    ours, theirs = [T.from_numpy(all_numbers()).view(getattr(T, kind)).float().numpy() for T in (rt, torch)]
    np.testing.assert_array_equal(ours, theirs)
    assert (np.signbit(ours) == np.signbit(theirs)).all()


@both_halves
@pytest.mark.parametrize("towards", [None, np.inf, -np.inf])
def test_halfway_between_two_numbers(kind, towards):
    """And beside it."""
    numbers = torch.from_numpy(all_numbers()).view(getattr(torch, kind)).double().numpy()
    numbers = np.sort(numbers[np.isfinite(numbers)])
    middles = ((numbers[1:] + numbers[:-1]) / 2).astype(np.float32)
    assert_same_halves(*both(middles if towards is None else np.nextafter(middles, np.float32(towards)), kind))


@both_halves
@given(seed=st.integers(0, 2**32 - 1))
def test_any_number_is_rounded(kind, seed):
    """infinities, nan and denormal numbers among them"""
    bits = np.random.default_rng(seed).integers(0, 2**32, FROM_SIZE, dtype=np.uint32)
    assert_same_halves(*both(bits.view(np.float32), kind))


LAYOUTS = {
    "rows": lambda t: t,
    "columns": lambda t: t.transpose(0, 2),
    "permuted": lambda t: t.permute(1, 2, 0),
    "with gaps": lambda t: t[:, 1:, ::2],
    "expanded": lambda t: t[:1].expand(7, -1, -1),
    "an offset": lambda t: t[1:],
    "one element in a dimension": lambda t: t.unsqueeze(1).transpose(1, 2),
}


@both_halves
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(kind, layout):
    numbers = np.random.default_rng(0).standard_normal((5, 64, 130)).astype(np.float32)
    ours, theirs = [LAYOUTS[layout](T.from_numpy(numbers)).to(getattr(T, kind)) for T in (rt, torch)]
    assert_same_halves(ours, theirs)
    ours, theirs = [LAYOUTS[layout](t).float() for t in both(numbers, kind)]
    assert ours.stride() == theirs.stride()
    np.testing.assert_array_equal(ours.numpy(), theirs.numpy())


# Each element is computed in float32 and rounded once. Where the float32 results differ in their last bit, so may those of a few.
EXACT = {
    "add": lambda T, x, y: x + y,
    "mul": lambda T, x, y: x * y,
    "relu": lambda T, x, y: x.relu(),
    "threshold_backward": lambda T, x, y: T.ops.aten.threshold_backward(x, y, 0.25),
    "leaky_relu": lambda T, x, y: T.nn.functional.leaky_relu(x, 0.1),
    "add to float32": lambda T, x, y: x + y.float(),
}
CLOSE = {
    "gelu": lambda T, x, y: T.nn.functional.gelu(x),
    "gelu, tanh": lambda T, x, y: T.nn.functional.gelu(x, approximate="tanh"),
    "gelu_backward": lambda T, x, y: T.ops.aten.gelu_backward(x, y),
    "elu": lambda T, x, y: T.nn.functional.elu(x),
    "elu_backward": lambda T, x, y: T.ops.aten.elu_backward(x, 1.0, 1.0, 1.0, False, y),
    "hardtanh": lambda T, x, y: T.nn.functional.hardtanh(x, -0.1, 0.3),
    "tanh_backward": lambda T, x, y: T.ops.aten.tanh_backward(x, y),
    "sigmoid_backward": lambda T, x, y: T.ops.aten.sigmoid_backward(x, y),
    "sigmoid": lambda T, x, y: x.sigmoid(),
    "softplus": lambda T, x, y: T.nn.functional.softplus(x),
    "silu": lambda T, x, y: T.nn.functional.silu(x),
    "sum of rows": lambda T, x, y: x.sum(1),
    "sum of columns": lambda T, x, y: x.sum(0, keepdim=True),
    "mean": lambda T, x, y: x.mean(0),
    "mm": lambda T, x, y: x @ y.t(),
    "addmm": lambda T, x, y: T.addmm(x[0, :96], x, y.t()),
}


def operands(T, kind):
    rng = np.random.default_rng(1)
    return [T.from_numpy(rng.standard_normal((96, 128)).astype(np.float32)).to(getattr(T, kind)) for _ in range(2)]


@both_halves
@pytest.mark.parametrize("name", EXACT)
def test_operators_that_round_once(kind, name):
    ours, theirs = [EXACT[name](T, *operands(T, kind)) for T in (rt, torch)]
    assert str(ours.dtype) == str(theirs.dtype)
    np.testing.assert_array_equal(ours.float().numpy(), theirs.float().numpy())


@both_halves
@pytest.mark.parametrize("name", CLOSE)
def test_operators_whose_float32_may_differ(kind, name):
    ours, theirs = [CLOSE[name](T, *operands(T, kind)) for T in (rt, torch)]
    assert str(ours.dtype) == str(theirs.dtype) and ours.stride() == theirs.stride()
    ours, theirs = ours.float().numpy(), theirs.float().numpy()
    eps = torch.finfo(getattr(torch, kind)).eps
    np.testing.assert_allclose(ours, theirs, rtol=2 * eps, atol=eps / 8)
    assert (ours != theirs).mean() < 0.05


@both_halves
def test_attention(kind):
    """The exponentials are rounded to half: one whose float32 lies between two halves may fall either way, so that a whole row
    differs. What is computed is as far from the exact result as what the reference computes.
    """

    def attention(T, x, y):
        return T.nn.functional.scaled_dot_product_attention(*T.stack([x, y, x]).view(3, 2, 6, 8, 128))

    exact = attention(torch, *[x.double() for x in operands(torch, kind)]).numpy()
    ours, theirs = [attention(T, *operands(T, kind)) for T in (rt, torch)]
    assert str(ours.dtype) == str(theirs.dtype) and ours.stride() == theirs.stride()
    ours, theirs = ours.float().numpy(), theirs.float().numpy()
    assert abs(ours - exact).max() <= 1.1 * abs(theirs - exact).max()
    assert abs(ours - exact).mean() <= 1.02 * abs(theirs - exact).mean()


@both_halves
@pytest.mark.parametrize("name", ["tanh_backward", "sigmoid_backward"])
def test_where_steps_are_rounded_does_not_depend_on_the_size(kind, name):
    ours, theirs = [CLOSE[name](T, *[t[:2, :9] for t in operands(T, kind)]) for T in (rt, torch)]
    np.testing.assert_array_equal(ours.float().numpy(), theirs.float().numpy())


@both_halves
def test_gradients_of_attention(kind):
    found = []
    for T in (rt, torch):
        x, y = operands(T, kind)
        q, k, v = [t.view(2, 6, 8, 128).clone().requires_grad_() for t in (x, y, y)]
        T.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).backward(x.view(2, 6, 8, 128))
        found.append([t.grad.float().numpy() for t in (q, k, v)])
    eps = torch.finfo(getattr(torch, kind)).eps
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=4 * eps, atol=2 * eps)
