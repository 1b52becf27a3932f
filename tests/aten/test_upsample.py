"""Resizing next to the reference: every method, sizes and factors, layouts, bytes, refusals."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from tests.programs import same
from tests.reference import both
from tests.strategies import tensors

METHODS = [
    ("nearest", 1),
    ("nearest", 2),
    ("nearest", 3),
    ("nearest-exact", 1),
    ("nearest-exact", 2),
    ("nearest-exact", 3),
    ("linear", 1),
    ("bilinear", 2),
    ("bicubic", 2),
    ("trilinear", 3),
    ("area", 1),
    ("area", 2),
    ("area", 3),
]


@st.composite
def how_far(draw, dims, least=1):
    """size= or scale_factor=, one for all dimensions or one for each."""
    sizes, factors = st.integers(least, 9), st.floats(0.5, 2.5)
    return draw(
        st.one_of(
            st.fixed_dictionaries({"size": sizes}),
            st.fixed_dictionaries({"size": st.lists(sizes, min_size=dims, max_size=dims)}),
            st.fixed_dictionaries({"scale_factor": factors, "recompute_scale_factor": st.sampled_from([None, True])}),
            st.fixed_dictionaries({"scale_factor": st.lists(factors, min_size=dims, max_size=dims)}),
        )
    )


def resize(mode, align_corners=None, **settings):
    return lambda T, x: T.nn.functional.interpolate(x, mode=mode, align_corners=align_corners, **settings)


@pytest.mark.parametrize("mode, dims", METHODS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_size(mode, dims, data):
    shape = data.draw(st.lists(st.integers(2, 6), min_size=dims, max_size=dims))
    x = data.draw(tensors((2, 3, *shape), torch.float64, requires_grad=True))
    corners = data.draw(st.booleans()) if mode.endswith(("linear", "cubic")) else None
    both(resize(mode, corners, **data.draw(how_far(dims))), x, grad=2)


@pytest.mark.parametrize("mode", ["bilinear", "bicubic", "lanczos"])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_antialias(mode, data):
    shape = data.draw(st.tuples(st.integers(4, 12), st.integers(4, 12)))  # never one element wide: a bug of PyTorch's
    x = data.draw(tensors((1, 2, *shape), torch.float64, requires_grad=True))
    corners = data.draw(st.booleans()) and mode != "lanczos"
    both(resize(mode, corners, antialias=True, **data.draw(how_far(2, least=2))), x, grad=2)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last])
def test_many_elements(mode, layout):
    """Enough of them for the compiled loops."""
    x = torch.randn(2, 8, 20, 30).contiguous(memory_format=layout).requires_grad_()
    for far in ({"scale_factor": 2}, {"size": (31, 17)}):
        both(resize(mode, **far), x, rtol=1e-5, atol=1e-5)


def test_many_elements_of_other_ranks():
    both(resize("linear", size=100), torch.randn(3, 50, 40, requires_grad=True), rtol=1e-5, atol=1e-5)
    both(resize("nearest", scale_factor=3), torch.randn(3, 50, 40, requires_grad=True), rtol=1e-5, atol=1e-5)
    volume = torch.randn(2, 3, 6, 9, 20, requires_grad=True)
    for mode in ("nearest", "trilinear"):
        both(resize(mode, size=(9, 11, 30)), volume, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_bytes(mode):
    """Whole numbers throughout: not one bit may differ."""
    x = torch.randint(0, 256, (2, 5, 23, 31), dtype=torch.uint8)
    for far in ({"size": 9}, {"size": (23, 40)}, {"scale_factor": 1.7}):
        for corners in (False, True) if mode.startswith("bi") else (None,):
            both(resize(mode, corners, **far), x, exact=True)
        if mode.startswith("bi"):
            both(resize(mode, antialias=True, **far), x, exact=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_floats(dtype):
    x = torch.randn(2, 3, 7, 9).to(dtype)
    for mode in ("nearest", "bilinear", "bicubic"):
        both(resize(mode, size=(11, 5)), x)
    both(resize("linear", size=13), x[0])


def test_infinite_elements_stay_where_they_are():
    x = torch.ones(1, 1, 4, 4)
    x[0, 0, 1, 1] = float("inf")
    both(resize("bilinear", size=7), x.requires_grad_())
    both(resize("bilinear", size=3, antialias=True), x)


def test_refusals():
    def program(T, show):
        F, N, x = T.nn.functional, T._C._nn, T.zeros(1, 2, 4, 5)
        for mode in ("nearest", "linear", "bilinear", "trilinear", "bicubic", "lanczos", "area", "none"):
            for y in (x, x[0], x[None], x[0, 0]):
                show.error(lambda: F.interpolate(y, size=2, mode=mode))
        for wrong in (
            dict(),
            dict(size=2, scale_factor=2),
            dict(size=(2,)),
            dict(scale_factor=(2,)),
            dict(size=0),
            dict(size=(2, 2.5)),
            dict(scale_factor=0.1),
            dict(size=2, align_corners=True),
            dict(size=2, recompute_scale_factor=True),
            dict(size=2, antialias=True),
            dict(size=2, mode="lanczos", antialias=True, align_corners=True),
        ):
            show.error(lambda: F.interpolate(x, **wrong))
        for dtype in (T.int64, T.bool, T.complex64):
            show.error(lambda: F.interpolate(x[0].to(dtype), size=2))
            show.error(lambda: F.interpolate(x.to(dtype), size=2, mode="bicubic"))
        show.error(lambda: F.interpolate(x.half(), size=2, mode="bilinear", antialias=True))
        show.error(lambda: F.interpolate(x[0].byte(), size=2, mode="linear"))
        show.error(lambda: F.interpolate(x[:, :0], size=2))
        show.error(lambda: N.upsample_nearest2d(x, (2, 2), (1.0, 1.0)))
        show.error(lambda: N.upsample_nearest2d(x, None, (1.0,)))
        show.error(lambda: N.upsample_nearest1d(x, (2,)))

    same(program)


def test_old_names_warn():
    def program(T, show):
        x = T.randn(1, 1, 3, 3)
        for name in ("upsample", "upsample_nearest", "upsample_bilinear"):
            show.warnings(lambda: getattr(T.nn.functional, name)(x, scale_factor=2))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                show.numbers(getattr(T.nn.functional, name)(x, size=5))

    same(program)


@pytest.mark.parametrize("name", ["upsample_nearest2d", "_upsample_nearest_exact2d"])
def test_a_scale_that_leads_far_beyond_the_end_gives_the_last_element(name):
    x = readtorch.arange(9.0).reshape(1, 1, 3, 3)
    assert getattr(readtorch._C._nn, name)(x, (2, 2), 1e-30, 1e-30)[0, 0, 1, 1] == 8
