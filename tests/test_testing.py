"""`torch.testing.make_tensor`: the numbers of PyTorch from the same seed, in every dtype and layout, and its errors."""

import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from tests.programs import same
from tests.reference import assert_close

DTYPES = """bool uint8 int8 int16 int32 int64 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64 complex128
float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz""".split()

BOUNDS = (
    st.none()
    | st.integers(-300, 300)
    | st.sampled_from([0.5, -1e30, 1e40, 2.0**63, float("nan"), float("inf"), -float("inf")])
)


def outcome(T, shape, dtype, options):
    """The tensor, or an error's type and words; and the warnings."""
    T.manual_seed(3)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        try:
            result = T.testing.make_tensor(*shape, dtype=getattr(T, dtype), device="cpu", **options)
        except Exception as error:
            result = f"{type(error).__name__}: {error}"
    return result, [str(w.message) for w in said]


def plain(t):
    """For comparison: 8 bits have few operators."""
    return t.float() if "float8" in str(t.dtype) else t


def compare(shape, dtype, **options):
    ours, our_warnings = outcome(rt, shape, dtype, options)
    theirs, their_warnings = outcome(torch, shape, dtype, options)
    assert our_warnings == their_warnings
    if isinstance(theirs, str):
        assert ours == theirs
        return
    assert (str(ours.dtype), ours.stride(), ours.storage_offset()) == (
        str(theirs.dtype),
        theirs.stride(),
        theirs.storage_offset(),
    )
    assert ours.requires_grad == theirs.requires_grad
    assert_close(plain(ours), plain(theirs), exact=True)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([(), (0,), (5,), (3, 4), ((2, 3, 20),), ([4],), (2, 0, 3), (2, 1)]),
    st.sampled_from(DTYPES),
    BOUNDS,
    BOUNDS,
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_numbers_and_errors(shape, dtype, low, high, noncontiguous, exclude_zero, requires_grad):
    # in PyTorch: wide unsigned integers and floats of 8 bits have no kernel that puts a number where a 0 was
    exclude_zero = exclude_zero and dtype not in ("uint16", "uint32", "uint64") and "float8" not in dtype
    options = dict(noncontiguous=noncontiguous, exclude_zero=exclude_zero, requires_grad=requires_grad)
    compare(shape, dtype, low=low, high=high, **options)


@pytest.mark.parametrize("dtype", DTYPES)
def test_defaults_of_every_dtype(dtype):
    compare((7, 31), dtype)


def test_zeros_are_excluded():
    for dtype in ("int64", "bool", "uint8"):
        compare((50,), dtype, low=0, high=2, exclude_zero=True)
    for dtype in ("float32", "complex64", "float16"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compare((3,), dtype, low=0.0, high=0.0, exclude_zero=True)


def test_memory_formats_and_arguments():
    def program(T, show):
        def make(shape, dtype=T.float32, **options):
            T.manual_seed(0)
            return T.testing.make_tensor(shape, dtype=dtype, device="cpu", **options)

        for memory_format in (T.channels_last, T.contiguous_format, T.preserve_format):
            t = make((2, 3, 4, 5), memory_format=memory_format)
            show(t, t.stride())
        show.error(lambda: make((2, 3), memory_format=T.channels_last))
        show.error(lambda: make((2, 3, 4, 5), memory_format=T.channels_last, noncontiguous=True))
        show.error(lambda: T.testing.make_tensor(3, device="cpu"))
        show.error(lambda: T.testing.make_tensor(3, dtype=T.float32))
        show.error(lambda: make((2,), dtype="float32"))

    same(program)
