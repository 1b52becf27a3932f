"""Numbers beside tensors whose dtype does not have them: refused, wrapped around or rounded as in PyTorch."""

import pytest
import torch

import readtorch


def outcome(lib, call, *arguments):
    try:
        result = call(lib, *arguments)
        result = f"{result.dtype} {result.tolist()}"
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return result.replace("readtorch.", "torch.")


NUMBERS = [2**40, 1e308, -1e308, 70000.0, 200, -200, 2.5, -2.5, float("inf"), float("nan"), True, 1j]
DTYPES = ["bool", "uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
CALLS = {
    "threshold": lambda T, x, number: T.ops.aten.threshold(x, number, 0),
    "threshold's value": lambda T, x, number: T.ops.aten.threshold(x, 0, number),
    "threshold_": lambda T, x, number: T.ops.aten.threshold_(x, number, 1),
    "threshold_'s value": lambda T, x, number: T.ops.aten.threshold_(x, 0, number),
    "hardtanh's lower": lambda T, x, number: T.ops.aten.hardtanh(x, number, 100),
    "hardtanh's upper": lambda T, x, number: T.ops.aten.hardtanh(x, 0, number),
    "hardshrink": lambda T, x, number: T.ops.aten.hardshrink(x, number),
    "elu's alpha": lambda T, x, number: T.ops.aten.elu(x, number),
    "elu's scale": lambda T, x, number: T.ops.aten.elu(x, 1, number),
    "elu's input scale": lambda T, x, number: T.ops.aten.elu(x, 1, 1, number),
    "leaky_relu": lambda T, x, number: T.ops.aten.leaky_relu(x, number),
    "where": lambda T, x, number: T.where(T.tensor([True, False]), x, number),
    "where, first": lambda T, x, number: T.where(T.tensor([True, False]), number, x),
    "where, method": lambda T, x, number: x.where(T.tensor([True, False]), number),
}
# PyTorch reads these as double on their way to another dtype, and names it.
NAMED_OTHERWISE = {"hardtanh's lower", "hardtanh's upper", "where", "where, first", "where, method"}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLS)
def test_parameters_of_activations(name, dtype):
    for number in NUMBERS:
        if number == 1j and name in NAMED_OTHERWISE:
            continue

        def call(lib):
            return CALLS[name](lib, lib.tensor([1, 0], dtype=getattr(lib, dtype)), number)

        assert outcome(readtorch, call) == outcome(torch, call), (name, dtype, number)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("place", [0, 1])
def test_parameters_of_softplus(place, dtype):
    for number in (1e308, -1e308, 1j):

        def call(lib):
            return lib.ops.aten.softplus(lib.ones(2, dtype=getattr(lib, dtype)), *[1] * place, number)

        theirs = outcome(torch, call)
        assert dtype == "float64" and number != 1j or "without overflow" in theirs
        assert "without overflow" not in theirs or outcome(readtorch, call) == theirs


BESIDE = [
    "x + 2**63",
    "x - (2**63 + 5)",
    "x == 2**63",
    "x != 2**63",
    "x < 2**63",
    "x >= 2**63",
    "x * 2**63",
    "x / 2**63",
    "x // 2**63",
    "x % 2**63",
    "x & 2**63",
    "x | 2**63",
    "x ^ 2**63",
    "2**63 + x",
    "2**63 - x",
    "x + (2**64 - 1)",
    "x * 2**64",
    "x == 2**64",
    "x + -2**64",
    "x - (-2**63 - 1)",
    "x.add(2**63)",
    "x.add_(2**63)",
    "T.add(x, 2**63)",
    "T.eq(x, 2**63)",
    "T.rsub(x, 2**63)",
    "T.fmod(x, 2**63)",
    "T.remainder(x, 2**63)",
    "T.bitwise_and(x, 2**63)",
    "T.where(x == x, x, 2**63)",
    "T.where(T.tensor([True]), 2**63, 2)",
    "T.ops.aten.add.Scalar(x, 2**63)",
    "T.ops.aten.mul.Scalar(x, 2**63)",
    "T.ops.aten.eq.Scalar(x, 2**63)",
    "x + (2**63 - 1)",
    "x + -2**63",
]


@pytest.mark.parametrize("written", BESIDE)
def test_an_int_above_int64(written):
    """It is a uint64 as far as that goes, and wraps around beside an int64."""
    for dtype in ("int64", "int8", "uint8", "float32", "float64"):

        def call(lib):
            return eval(written, {"T": lib, "x": lib.tensor([1], dtype=getattr(lib, dtype))})

        if dtype.startswith("float") and any(sign in written for sign in "&|^") or "bitwise" in written:
            continue
        assert outcome(readtorch, call) == outcome(torch, call), dtype


def test_an_int_above_int64_beside_bools():
    assert outcome(readtorch, lambda lib: lib.tensor([True]) + 2**63) == outcome(
        torch, lambda lib: lib.tensor([True]) + 2**63
    )


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], [True, True]])
def test_a_compiled_graph_fills_with_a_sum(values):
    def filled(lib):
        return lambda x: lib.full((2,), x.sum())

    compiled = readtorch.compile(filled(readtorch))
    for _ in range(2):
        assert outcome(readtorch, lambda lib: compiled(lib.tensor(values))) == outcome(
            torch, lambda lib: filled(lib)(lib.tensor(values))
        )
