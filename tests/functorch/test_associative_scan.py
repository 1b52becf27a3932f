"""`associative_scan` against PyTorch: results, gradients and errors."""

from importlib import import_module

import pytest
import torch

import readtorch as rt


def scan_of(T):
    return import_module(f"{T.__name__}._higher_order_ops.associative_scan").associative_scan


def add(x, y):
    return x + y


def outcome(program, T):
    T.manual_seed(0)
    try:
        return program(T)
    except Exception as error:
        return type(error).__name__, str(error).replace("readtorch._tensor", "torch").replace("readtorch", "torch")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8])
def test_running_sums(count, dim, reverse):
    def program(T):
        x = T.randn(count, count, count, dtype=T.float64).requires_grad_()
        y = scan_of(T)(add, x, dim, reverse, "generic")
        (y * T.arange(1.0, y.numel() + 1).view_as(y)).sum().backward()
        return y.detach(), x.grad

    for here, there in zip(outcome(program, rt), outcome(program, torch)):
        torch.testing.assert_close(torch.tensor(here.tolist(), dtype=torch.float64), there)


def test_a_recurrence():
    def program(T):
        a, b = (T.rand(2, 5, 3).requires_grad_() for _ in range(2))

        def combine(left, right):
            return left[0] * right[0], left[1] * right[0] + right[1]

        _, y = scan_of(T)(combine, (a, b), 1, combine_mode="generic")
        y.square().sum().backward()
        return y.detach(), a.grad, b.grad

    for here, there in zip(outcome(program, rt), outcome(program, torch)):
        torch.testing.assert_close(torch.tensor(here.tolist()), there)


ERRORS = [
    lambda T: scan_of(T)(3, T.ones(2), 0, combine_mode="generic"),
    lambda T: scan_of(T)(add, T.ones(2), 0),
    lambda T: scan_of(T)(add, T.ones(2), 0, combine_mode="fast"),
    lambda T: scan_of(T)(add, T.ones(2), 0, reverse=1, combine_mode="generic"),
    lambda T: scan_of(T)(add, T.ones(2), 2, combine_mode="generic"),
    lambda T: scan_of(T)(add, T.ones(0, 2), 0, combine_mode="generic"),
    lambda T: scan_of(T)(add, (T.ones(2, 3), T.ones(2)), 1, combine_mode="generic"),
]


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program):
    here, there = outcome(program, rt), outcome(program, torch)
    assert isinstance(there[0], str) and here == there
