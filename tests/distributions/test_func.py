"""Densities under torch.func's transforms: vmap, also with values that are checked, grad and forward mode."""

import pytest
import torch

from tests.distributions.parameters import KINDS, make
from tests.reference import both

BRANCHES = ("Geometric", "Multinomial")  # write through masks, which vmap refuses


def batched(test):
    """The distribution's name, tensors with a batch in front, and the other arguments."""
    name, arguments = make(test, (3,), torch.float64)
    tensors = {k: v for k, v in arguments.items() if isinstance(v, torch.Tensor)}
    if any(v.dim() == 0 or v.shape[0] != 3 for v in tensors.values()):
        pytest.skip("a parameter without a batch")
    value = getattr(torch.distributions, name)(**arguments).sample().detach()
    return name, tensors, {k: v for k, v in arguments.items() if k not in tensors}, value


@pytest.mark.parametrize("test", [t for t in KINDS if "limits" not in t and "near" not in t and "Pareto" not in t])
@pytest.mark.parametrize("transform", ["vmap", "grad", "jvp"])
def test_densities(test, transform):
    name, tensors, fixed, value = batched(test)
    if transform == "vmap" and name in BRANCHES:
        return

    def transformed(T, tensors, value):
        def log_prob(value, *given):
            p = getattr(T.distributions, name)(**dict(zip(tensors, given)), **fixed)
            return p.log_prob(value) if transform != "grad" else p.log_prob(value).sum()

        given = list(tensors.values())
        if transform == "vmap":
            return T.vmap(log_prob)(value, *given)
        if transform == "grad":
            return T.func.grad(log_prob, tuple(range(1, 1 + len(given))))(value, *given)
        return T.func.jvp(lambda *given: log_prob(value, *given), tuple(given), tuple(map(T.ones_like, given)))

    both(
        transformed, tensors, value, grad=False, strides=False, versions=False, alias=False, grad_fn=False, rtol=1e-6, atol=1e-8
    )  # fmt: skip


def test_questions_to_the_whole_batch():
    """What validation asks has one answer for all examples, so that a program may branch on it."""

    def asked(T, x):
        ways = []
        for least in (0, 1, 5):
            for question in (T._is_all_true, T._is_any_true):
                one = lambda x: x + 1 if question(x > least) else x - 1  # noqa: B023, E731
                ways += [T.vmap(one)(x), T.vmap(T.vmap(one), (1,))(x)]
        return ways

    both(asked, torch.tensor([[1.0, 2.0], [3.0, 4.0]]), alias=False)
