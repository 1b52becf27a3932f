"""`readtorch._tensor_str` prints numbers exactly as the reference does, for all dtypes and print options."""

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from readtorch import _tensor_str as ours
from tests.programs import same

DTYPES = {
    torch.bool: np.bool_,
    torch.uint8: np.uint8,
    torch.int8: np.int8,
    torch.int16: np.int16,
    torch.int32: np.int32,
    torch.int64: np.int64,
    torch.float16: np.float16,
    torch.float32: np.float32,
    torch.float64: np.float64,
    torch.bfloat16: ml_dtypes.bfloat16,
    torch.complex64: np.complex64,
    torch.complex128: np.complex128,
}


@pytest.fixture(autouse=True)
def default_options():
    yield
    set_both(profile="default")


def set_both(**options):
    ours.set_printoptions(**options)
    torch.set_printoptions(**options)


def as_numpy(tensor):
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


shapes = st.one_of(
    st.just(()),
    st.lists(st.integers(0, 9), min_size=1, max_size=4).map(tuple),
    st.sampled_from([(1001,), (7, 200), (200, 7), (12, 12, 12), (2, 7, 8, 11), (1, 1, 1, 2)]),
)
# What the numbers look like decides the format: whole, mixed, tiny, huge, wide in range, with inf and nan.
kinds = st.sampled_from(["whole", "unit", "tiny", "huge", "wide", "zeros", "special", "big whole"])
options = st.fixed_dictionaries(
    {},
    optional={
        "precision": st.integers(0, 8),
        "threshold": st.sampled_from([0, 1, 5, 50, 1000, 5000]),
        "edgeitems": st.integers(0, 4),
        "linewidth": st.integers(1, 200),
        "sci_mode": st.booleans(),
        "profile": st.sampled_from(["default", "short", "full"]),
    },
)


def random_floats(rng, kind, size):
    x = rng.standard_normal(size)
    if kind == "whole":
        return np.round(x * 20)
    if kind == "big whole":
        return np.round(x * 1e5)
    if kind == "tiny":
        return x * 1e-6
    if kind == "huge":
        return x * 1e9
    if kind == "wide":
        return x * 10.0 ** rng.integers(-7, 7, size)
    if kind == "zeros":
        return np.where(rng.random(size) < 0.7, 0.0, -0.0)
    if kind == "special":
        return np.where(rng.random(size) < 0.5, x, rng.choice([np.inf, -np.inf, np.nan, 0.0], size))
    return x


def random_tensor(seed, dtype, shape, kind):
    rng = np.random.default_rng(seed)
    size = int(np.prod(shape))
    if dtype == torch.bool:
        flat = torch.from_numpy(rng.random(size) < 0.5)
    elif dtype.is_complex:
        real, imag = random_floats(rng, kind, size), random_floats(rng, kind, size)
        flat = torch.complex(torch.from_numpy(real), torch.from_numpy(imag)).to(dtype)
    elif dtype.is_floating_point:
        flat = torch.from_numpy(random_floats(rng, kind, size)).to(dtype)
    else:
        info = torch.iinfo(dtype)
        flat = torch.from_numpy(rng.integers(info.min, info.max, size, endpoint=True, dtype=DTYPES[dtype]))
        flat = flat // (1 if kind in ("huge", "wide") else 1 + info.max // 100)
    return flat.reshape(shape)


@settings(max_examples=2500, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(list(DTYPES)), shapes, kinds, options, st.integers(0, 30))
def test_numbers_print_like_the_reference(seed, dtype, shape, kind, option, indent):
    set_both(profile="default")
    set_both(**option)
    tensor = random_tensor(seed, dtype, shape, kind)
    if seed % 2 and tensor.dim() > 1:
        tensor = tensor.transpose(0, -1)
    assert ours._array_str(as_numpy(tensor), indent) == torch._tensor_str._tensor_str(tensor, indent)


@settings(max_examples=300, deadline=None)
@given(
    st.text("ab\n1, ", max_size=60),
    st.lists(st.text("xyz=", min_size=1, max_size=40), max_size=4),
    st.integers(1, 90),
    st.integers(0, 20),
)
def test_suffixes_break_lines_like_the_reference(text, suffixes, linewidth, indent):
    set_both(linewidth=linewidth)
    expected = torch._tensor_str._add_suffixes(text, suffixes, indent, force_newline=False)
    assert ours._add_suffixes(text, suffixes, indent) == expected


@settings(max_examples=200, deadline=None)
@given(st.lists(options, max_size=4))
def test_print_options_change_together(steps):
    set_both(profile="default")
    for step in steps:
        set_both(**step)
        assert ours.get_printoptions() == torch._tensor_str.get_printoptions()
    with ours.printoptions(precision=1), torch._tensor_str.printoptions(precision=1):
        assert ours.get_printoptions() == torch._tensor_str.get_printoptions()
    assert ours.get_printoptions() == torch._tensor_str.get_printoptions()


# Whole tensors: what stands around the numbers


def test_whole_tensors_print_like_the_reference():
    def program(T, show):
        show(T.ones(2), T.tensor(3), T.tensor(2.5), T.tensor([True]), T.tensor(1 + 2j), T.tensor([]))
        for dtype in (
            T.float32,
            T.float64,
            T.float16,
            T.bfloat16,
            T.int64,
            T.int32,
            T.uint8,
            T.bool,
            T.complex64,
            T.complex128,
        ):
            for shape in ((), (2,), (0,), (0, 3), (2, 0)):
                show(T.zeros(shape, dtype=dtype))
        x = T.ones(2, 3, requires_grad=True)
        show(x, x * 2, (x * 2).sum(), x.detach(), x[0], x.T, T.ones(30, 30) * x.sum(), T.zeros(0, requires_grad=True))
        show(T.nn.Parameter(T.ones(2)), T.nn.Parameter(T.ones(2), requires_grad=False), T.nn.Buffer(T.ones(2)))
        show(T.nn.Parameter(T.arange(20.0)), repr(x), f"{x}", f"{x.sum():.3f}", f"{x.sum()}", str(T.ones(1)))

        class Mine(T.Tensor):
            pass

        class MyParameter(T.nn.Parameter):
            pass

        mine = T.Tensor._make_subclass(Mine, T.ones(2), False)
        show(mine, repr(mine), MyParameter(T.ones(2)))
        show(x.__repr__(tensor_contents="CONTENTS"), (x * 2).__repr__(tensor_contents="..."))

    same(program)


def test_default_dtype_goes_without_saying():
    def program(T, show):
        T.set_default_dtype(T.float64)
        try:
            show(T.ones(2), T.ones(2, dtype=T.float32), T.tensor(1j), T.ones(0), T.ones(2, dtype=T.complex64))
        finally:
            T.set_default_dtype(T.float32)

    same(program)


def test_print_options_of_the_package():
    def program(T, show):
        T.set_printoptions(precision=2, sci_mode=True, edgeitems=1, threshold=3)
        show(T.arange(5.0), T.ones(3, 3))
        T.set_printoptions(profile="default")
        show(T.arange(5.0))

    same(program)


def test_a_history_that_cannot_be_told():
    """A view made and written under no_grad: its grad_fn raises, its text says so."""

    def program(T, show):
        x = T.ones(3, requires_grad=True)
        with T.no_grad():
            view = x.detach().requires_grad_()[:2]
        show(view)

    same(program)
