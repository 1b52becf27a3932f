"""Errors of NumPy in PyTorch's words.

Kernels check their arguments as PyTorch's do. What they leave to NumPy, broadcasting, axes, sizes, memory, fails there
with NumPy's types and words; `translated` gives such an error those that PyTorch has for it. It is asked only after
something went wrong (`run_lines` in dispatcher.py), so a call that succeeds does not pay for it.

PyTorch has no such file: its kernels raise these errors themselves.
"""

import math
import re

import numpy as np

SHAPE = re.compile(r"\(([\d, newaxis]*)\)")


class _LinAlgError(RuntimeError):
    """A matrix is singular, not positive definite …; the user sees it as `readtorch.linalg.LinAlgError`."""

    __module__ = "torch._C"


# What `restate` is asked about; NumPy's own classes are subclasses of these.
FOREIGN = (ValueError, IndexError, TypeError, MemoryError, OverflowError)


def restate(error):
    """Raises the error that PyTorch has in place of one of NumPy's; returns if it is another's."""
    said = translated(error)
    if said is not None:
        raise said from None


def translated(error):
    """The error that PyTorch raises in place of NumPy's, or None if it is no error of NumPy's."""
    if isinstance(error, np.exceptions.AxisError):
        return _of_axis(error)
    if isinstance(error, MemoryError):
        return _of_memory(error)
    if isinstance(error, np.linalg.LinAlgError):
        return _of_matrices(str(error))
    words = str(error)
    for kind, pattern, answer in PATTERNS:
        if isinstance(error, kind) and (match := re.search(pattern, words)):
            return answer(words, match)
    return None


def _of_axis(error):
    if error.axis is None or error.ndim is None:
        return IndexError(str(error))
    n = max(error.ndim, 1)
    return IndexError(f"Dimension out of range (expected to be in range of [{-n}, {n - 1}], but got {error.axis})")


def _of_memory(error):
    shape, dtype = getattr(error, "shape", None), getattr(error, "dtype", None)
    count = "more" if shape is None else math.prod(shape) * dtype.itemsize
    return RuntimeError(
        "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you "
        f"tried to allocate {count} bytes. Error code 12 (Cannot allocate memory)"
    )


def _of_matrices(words):
    """In PyTorch: `_linalg_check_errors`. What NumPy does not say, the code of a failure, is the usual one."""
    if words.startswith("SVD did not converge"):
        return _LinAlgError(
            "linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values."
        )
    if words.startswith("Eigenvalues did not converge"):
        return _LinAlgError(
            "linalg.eigh: The algorithm failed to converge because the input matrix is ill-conditioned "
            "or has too many repeated eigenvalues (error code: 2)."
        )
    if words.startswith("Array must not contain infs or NaNs"):
        return RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
    return RuntimeError(f"linalg: {words}")


def _of_broadcasting(words, match):
    shapes = [tuple(int(n) for n in shape.split(",") if n.strip().isdigit()) for shape in SHAPE.findall(words)]
    for a, b in zip(shapes, shapes[1:]):
        width = max(len(a), len(b))
        a, b = (1,) * (width - len(a)) + a, (1,) * (width - len(b)) + b
        for dim in reversed(range(width)):
            if a[dim] != b[dim] and 1 not in (a[dim], b[dim]):
                return RuntimeError(
                    f"The size of tensor a ({a[dim]}) must match the size of tensor b ({b[dim]}) at "
                    f"non-singleton dimension {dim}"
                )
    return RuntimeError(words)


def _of_reshaping(words, match):
    shape = match[2].replace("newaxis", "-1").rstrip(",").split(",")
    return RuntimeError(f"shape '[{', '.join(n.strip() for n in shape)}]' is invalid for input of size {match[1]}")


def _of_writing(words, match):
    shapes = [f"[{', '.join(n for n in shape.replace(' ', '').split(',') if n)}]" for shape in SHAPE.findall(words)]
    return RuntimeError(f"output with shape {shapes[0]} doesn't match the broadcast shape {shapes[1]}")


def _runtime_error(words, match):
    return RuntimeError(words)


PATTERNS = [
    (ValueError, r"operands could not be broadcast together with (remapped )?shapes", _of_broadcasting),
    (ValueError, r"cannot reshape array of size (\d+) into shape \(([^)]*)\)", _of_reshaping),
    (
        ValueError,
        r"^non-broadcastable output operand with shape \(.*\) doesn't match the broadcast shape \(",
        _of_writing,
    ),
    (
        ValueError,
        r"^array is too big|^Maximum allowed (size|dimension) exceeded",
        lambda words, match: RuntimeError("Storage size calculation overflowed"),
    ),
    (
        ValueError,
        r"^negative dimensions are not allowed",
        lambda words, match: RuntimeError("Trying to create tensor with negative dimension"),
    ),
    (
        ValueError,
        r"matmul: Input operand \d has a mismatch in its core dimension|could not broadcast input array|"
        r"[Ee]instein|einsum|too many values to unpack|not enough values to unpack|axes don't match array|"
        r"can only specify one unknown dimension|setting an array element with a sequence|assignment cannot assign|"
        r"can only convert an array of size|^strides|"
        r"output operand requires a reduction|array is not broadcastable|all the input array|input operand",
        _runtime_error,
    ),
    (
        IndexError,
        r"index (-?\d+) is out of bounds for axis (\d+) with size (\d+)",
        lambda words, match: IndexError(
            f"index {match[1]} is out of bounds for dimension {match[2]} with size {match[3]}"
        ),
    ),
    (
        IndexError,
        r"^shape mismatch: indexing arrays|^arrays used as indices must be|^too many indices for array|^invalid index to scalar",
        _runtime_error,
    ),
    (
        OverflowError,
        r"^Python integer (-?\d+) out of bounds for|Python int too large to convert to C|int too (large|big) to convert",
        lambda words, match: RuntimeError("value cannot be converted to type int64_t without overflow"),
    ),
    (
        TypeError,
        r"^ufunc '\w+' (not supported|did not contain)|^Cannot cast ufunc|^Cannot cast array data",
        _runtime_error,
    ),
]
