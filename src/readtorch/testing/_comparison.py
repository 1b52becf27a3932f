"""`assert_close`: are two results equal up to rounding?

It works in two passes. The first walks both structures side by side and finds the pairs to compare; what does not
fit together is an error at once. The second compares pair by pair and reports the first that differs.

In PyTorch: `torch/testing/_comparison.py`, where a kind of pair is a class.
"""

import cmath
import warnings
from collections.abc import Mapping, Sequence

import numpy as np

import readtorch
from readtorch.aten.sparse_csr_tensor_impl import COMPRESSED, names_of

# dtype -> (rtol, atol); 0 for every other.
DTYPE_PRECISIONS = {
    readtorch.float16: (0.001, 1e-5),
    readtorch.bfloat16: (0.016, 1e-5),
    readtorch.float32: (1.3e-6, 1e-5),
    readtorch.float64: (1e-7, 1e-7),
    readtorch.complex64: (1.3e-6, 1e-5),
    readtorch.complex128: (1e-7, 1e-7),
}
_DTYPE_OF_NUMBER = {int: readtorch.int64, float: readtorch.float64, complex: readtorch.complex128}


_OLDER_PRECISIONS = {readtorch.float16: (1e-3, 1e-3), readtorch.float32: (1e-4, 1e-5), readtorch.float64: (1e-5, 1e-8)}


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form of `assert_close`: wider tolerances, and dtypes may differ."""
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a future release. "
        "Please use `torch.testing.assert_close()` instead. "
        "You can find detailed upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        category=FutureWarning,
        stacklevel=2,
    )
    actual = readtorch.as_tensor(actual)
    if not isinstance(expected, readtorch.Tensor):
        expected = readtorch.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        pairs = [_OLDER_PRECISIONS.get(t.dtype, DTYPE_PRECISIONS.get(t.dtype, (0.0, 0.0))) for t in (actual, expected)]
        rtol, atol = map(max, zip(*pairs))
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_dtype=False, msg=msg or None)


def assert_close(
    actual,
    expected,
    *,
    allow_subclasses=True,
    rtol=None,
    atol=None,
    equal_nan=False,
    check_device=True,
    check_dtype=True,
    check_layout=True,
    check_stride=False,
    msg=None,
):
    """Raises AssertionError unless |actual - expected| <= atol + rtol |expected| for every element.

    The arguments are tensors, numbers, booleans, None, what `as_tensor` takes, or sequences and mappings of such.
    rtol, atol: both or neither; by default they follow from the dtypes. Shapes must be the same; so must dtype,
    device, and (if asked for) strides. msg: a message, or a function from the usual message to one.
    """
    checks = _Checks(allow_subclasses, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride)
    try:
        pairs = list(find_pairs(actual, expected, checks, ()))
    except Mismatch as mismatch:
        raise mismatch.error() from None
    try:
        for compare, one, other, path in pairs:
            compare(one, other, checks, path)
    except Mismatch as mismatch:
        raise mismatch.error(msg) from None


class _Checks:
    """The options of one call."""

    def __init__(self, allow_subclasses, rtol, atol, equal_nan, device, dtype, layout, stride):
        self.allow_subclasses, self.rtol, self.atol, self.equal_nan = allow_subclasses, rtol, atol, equal_nan
        self.device, self.dtype, self.layout, self.stride = device, dtype, layout, stride

    def tolerances(self, dtypes, path):
        """(rtol, atol): the given ones, or the loosest of the dtypes. Raises Mismatch if only one is given."""
        if (self.rtol is None) != (self.atol is None):
            raise Mismatch(
                ValueError,
                "Both 'rtol' and 'atol' must be either specified or omitted, but got no "
                f"{'rtol' if self.rtol is None else 'atol'}.",
                path,
            )
        if self.rtol is not None:
            return self.rtol, self.atol
        rtols, atols = zip(*[DTYPE_PRECISIONS.get(dtype, (0.0, 0.0)) for dtype in dtypes])
        return max(rtols), max(atols)


class Mismatch(Exception):
    """What is wrong at one position of the structures, given by its path of keys."""

    def __init__(self, kind, text, path):
        super().__init__(text)
        self.kind, self.text, self.path = kind, text, path

    def error(self, msg=None):
        """The exception that the caller sees."""
        if msg is not None and not callable(msg):
            return self.kind(msg)
        where = "".join(f"[{key!r}]" for key in self.path)
        text = f"{self.text}\n\nThe failure occurred for item {where}" if where else self.text
        return self.kind(msg(text) if callable(msg) else text)


# ------------------------------------------------------------------------------------------- finding the pairs


def find_pairs(actual, expected, checks, path):
    """Yields (comparing function, actual, expected, path) for every pair of leaves."""
    if is_sequence(actual) and is_sequence(expected):
        if len(actual) != len(expected):
            raise Mismatch(
                AssertionError, f"The length of the sequences mismatch: {len(actual)} != {len(expected)}", path
            )
        keys = range(len(actual))
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        keys = common_keys(actual, expected, path)
    else:
        yield find_pair(actual, expected, checks, path)
        return
    for key in keys:
        yield from find_pairs(actual[key], expected[key], checks, (*path, key))


def is_sequence(value):
    return isinstance(value, Sequence) and not isinstance(value, str)


def common_keys(actual, expected, path):
    missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
    if missing or additional:
        raise Mismatch(
            AssertionError,
            "The keys of the mappings do not match:\n"
            f"Missing keys in the actual mapping: {sorted(missing)}\n"
            f"Additional keys in the actual mapping: {sorted(additional)}",
            path,
        )
    try:
        return sorted(actual)
    except TypeError:  # keys that have no order
        return list(actual)


def find_pair(actual, expected, checks, path):
    """One pair, as what both can be compared as. Raises Mismatch if there is no such thing."""
    if actual is None or expected is None:
        return compare_none, actual, expected, path
    if isinstance(actual, (bool, np.bool_)) and isinstance(expected, (bool, np.bool_)):
        return compare_booleans, bool(actual), bool(expected), path
    if is_number(actual) and is_number(expected):
        numbers = [n.item() if isinstance(n, np.number) else n for n in (actual, expected)]
        checks.tolerances([_DTYPE_OF_NUMBER[type(n)] for n in numbers], path)
        return compare_numbers, *numbers, path
    tensors = as_tensors(actual, expected, checks)
    if tensors is None:
        raise Mismatch(
            TypeError,
            f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.",
            path,
        )
    checks.tolerances([t.dtype for t in tensors], path)
    return compare_tensors, *tensors, path


def is_number(value):
    # in PyTorch: a boolean beside a number counts as a number and ends in a RuntimeError
    return isinstance(value, (int, float, complex, np.number)) and not isinstance(value, bool)


def as_tensors(actual, expected, checks):
    """Both as tensors, or None: their types must be related, and the same if subclasses are not allowed."""
    related = isinstance(actual, type(expected)) or isinstance(expected, type(actual))
    if not related or (not checks.allow_subclasses and type(actual) is not type(expected)):
        return None
    try:
        return [t if isinstance(t, readtorch.Tensor) else readtorch.as_tensor(t) for t in (actual, expected)]
    except (TypeError, ValueError, RuntimeError):  # not what a tensor is made from
        return None


# ------------------------------------------------------------------------------------------ comparing one pair


def compare_none(actual, expected, checks, path):
    if actual is not expected:
        raise Mismatch(AssertionError, f"None mismatch: {actual} is not {expected}", path)


def compare_booleans(actual, expected, checks, path):
    if actual is not expected:
        raise Mismatch(AssertionError, f"Booleans mismatch: {actual} is not {expected}", path)


def compare_numbers(actual, expected, checks, path):
    if checks.dtype and type(actual) is not type(expected):
        raise Mismatch(AssertionError, f"The (d)types do not match: {type(actual)} != {type(expected)}.", path)
    if actual == expected or (checks.equal_nan and cmath.isnan(actual) and cmath.isnan(expected)):
        return
    rtol, atol = checks.tolerances([_DTYPE_OF_NUMBER[type(n)] for n in (actual, expected)], path)
    difference = abs(actual - expected)
    if not (cmath.isfinite(difference) and difference <= atol + rtol * abs(expected)):
        raise Mismatch(AssertionError, describe_numbers(actual, expected, rtol, atol), path)


def compare_tensors(actual, expected, checks, path):
    rtol, atol = checks.tolerances([actual.dtype, expected.dtype], path)
    compare_attributes(actual, expected, checks, path)
    if actual.dtype != expected.dtype:
        common = readtorch.promote_types(*[promotable(t.dtype) for t in (actual, expected)])
        actual, expected = actual.to(common), expected.to(common)
    if actual.is_sparse and expected.is_sparse:
        compare_sparse(actual.coalesce(), expected.coalesce(), checks, path)
        return
    if actual.layout in COMPRESSED and actual.layout is expected.layout:
        compare_compressed(actual, expected, checks, path)
        return
    if narrow(actual) and (rtol or atol):
        raise Mismatch(
            AssertionError,
            f"Rtol={rtol} and atol={atol} are not supported for bitwise comparison of low "
            "dimensional floats. Please use rtol=0.0 and atol=0.0.",
            (),
        )
    matches = readtorch.isclose(actual, expected, rtol=rtol, atol=atol, equal_nan=checks.equal_nan)
    if matches.all():
        return
    if actual.dim() == 0:
        raise Mismatch(AssertionError, describe_numbers(actual.item(), expected.item(), rtol, atol), path)
    raise Mismatch(AssertionError, describe_tensors(actual, expected, matches, rtol, atol), path)


def compare_sparse(actual, expected, checks, path):
    """Where they have elements, and which."""
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        words = "The number of specified values in sparse COO tensors does not match: {} != {}".format(*counts)
        raise Mismatch(AssertionError, words, path)
    compare_tensors(actual.indices(), expected.indices(), checks, path)
    compare_tensors(actual.values(), expected.values(), checks, path)


def compare_compressed(actual, expected, checks, path):
    counts = actual._nnz(), expected._nnz()
    if counts[0] != counts[1]:
        kind = actual.layout.name[-3:].upper()
        words = f"The number of specified values in sparse {kind} tensors does not match: {counts[0]} != {counts[1]}"
        raise Mismatch(AssertionError, words, path)
    for name in (*names_of(actual.layout), "values"):
        compare_tensors(getattr(actual, name)(), getattr(expected, name)(), checks, path)


def compare_attributes(actual, expected, checks, path):
    wanted = {
        "shape": True,
        "layout": checks.layout,
        "stride()": checks.stride,
        "device": checks.device,
        "dtype": checks.dtype,
    }
    for name in [name for name, is_wanted in wanted.items() if is_wanted]:
        one, other = [t.stride() if name == "stride()" else getattr(t, name) for t in (actual, expected)]
        if one != other:
            raise Mismatch(AssertionError, f"The values for attribute '{name}' do not match: {one} != {other}.", path)


def promotable(dtype):
    """The wider unsigned types do not promote; int64 holds what tests put into them."""
    return readtorch.int64 if dtype in (readtorch.uint16, readtorch.uint32, readtorch.uint64) else dtype


def narrow(t):
    return t.dtype.is_floating_point and t.dtype.itemsize == 1


# --------------------------------------------------------------------------------------------------- messages


def describe_numbers(actual, expected, rtol, atol):
    difference = abs(actual - expected)
    relative = float("inf") if expected == 0 else difference / abs(expected)
    return "\n".join(
        [
            f"Scalars are not {'close' if rtol or atol else 'equal'}!\n",
            f"Expected {expected} but got {actual}.",
            f"Absolute difference: {difference}{allowed(atol, rtol or atol)}",
            f"Relative difference: {relative}{allowed(rtol, rtol or atol)}",
        ]
    )


def allowed(tolerance, any_is):
    return f" (up to {tolerance} allowed)" if any_is else ""


def describe_tensors(actual, expected, matches, rtol, atol):
    count = matches.numel()
    wrong = count - int(matches.sum())
    mismatched = f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})"
    if narrow(actual):
        first = tuple((~matches).nonzero()[0].tolist())
        return f"Tensor-likes are not 'equal'!\n\n{mismatched}\nThe first mismatched element is at index {first}."
    absolute, relative = differences(actual.detach(), expected.detach(), matches)
    return "\n".join(
        [
            f"Tensor-likes are not {'close' if rtol or atol else 'equal'}!\n",
            mismatched,
            f"Greatest absolute difference: {largest(absolute)}{allowed(atol, rtol or atol)}",
            f"Greatest relative difference: {largest(relative)}{allowed(rtol, rtol or atol)}",
        ]
    )


def differences(actual, expected, matches):
    """Absolute and relative differences, 0 where the elements match."""
    if not (actual.dtype.is_floating_point or actual.dtype.is_complex):
        actual, expected = actual.long(), expected.long()
    absolute = (actual - expected).abs().masked_fill(matches, 0)
    return absolute, (absolute / expected.abs()).masked_fill(matches, 0)


def largest(difference):
    """The largest element and its index."""
    value, position = difference.flatten().max(0)
    index = tuple(int(i) for i in np.unravel_index(int(position), tuple(difference.shape)))
    return f"{value.item()} at index {index}"
