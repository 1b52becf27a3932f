"""SGD, Adam and AdamW next to the reference: parameters and state after several steps, for all settings."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch
from tests.programs import same

SHAPES = [(), (1,), (7,), (33, 5), (4, 1, 3), (150, 140)]


def run(T, cls, dtype="float32", steps=4, contiguous=True, skip_grad=False, **kwargs):
    """Train toward fixed targets with gradients of a known size; the optimizer and its parameters."""
    rng = np.random.default_rng(0)
    ps = []
    for shape in SHAPES:
        p = T.tensor(rng.standard_normal(shape).tolist(), dtype=getattr(T, dtype))
        ps.append((p if contiguous else p.unsqueeze(-1).expand(*shape, 2).clone().select(-1, 0)).requires_grad_())
    optimizer = getattr(T.optim, cls)(ps, **kwargs)
    for i in range(steps):
        for j, p in enumerate(ps):
            p.grad = T.tensor(rng.standard_normal(tuple(p.shape)).tolist(), dtype=p.dtype)
            if skip_grad and i == j:
                p.grad = None
        optimizer.step()
    return optimizer, ps


def numbers(tensor):
    return np.array(tensor.detach().double().tolist())


def compare(cls, rtol=2e-6, **kwargs):
    ours, theirs = run(readtorch, cls, **kwargs), run(torch, cls, **kwargs)
    for a, b in zip(ours[1], theirs[1]):
        np.testing.assert_allclose(numbers(a), numbers(b), rtol=rtol, atol=rtol)
        mine, reference = ours[0].state[a], theirs[0].state[b]
        assert list(mine) == list(reference)
        for name, value in reference.items():
            assert str(mine[name].dtype).split(".")[1] == str(value.dtype).split(".")[1], name
            np.testing.assert_allclose(numbers(mine[name]), numbers(value), rtol=rtol, atol=rtol, err_msg=name)


SGD_SETTINGS = [
    dict(zip(("momentum", "dampening", "nesterov"), m))
    for m in ((0, 0, False), (0.9, 0, False), (0.9, 0.3, False), (0.9, 0, True))
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("momentum", SGD_SETTINGS, ids=str)
@pytest.mark.parametrize("path", [{}, {"fused": True}, {"fused": False}], ids=str)
@pytest.mark.parametrize("weight_decay, maximize", list(itertools.product((0, 0.1), (False, True))))
def test_sgd(dtype, momentum, weight_decay, maximize, path):
    compare("SGD", dtype=dtype, lr=0.1, weight_decay=weight_decay, maximize=maximize, **momentum, **path)


ADAM_SETTINGS = list(itertools.product((0, 0.1), (False, True), (False, True)))


@pytest.mark.parametrize("cls", ["Adam", "AdamW"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("weight_decay, amsgrad, maximize", ADAM_SETTINGS)
@pytest.mark.parametrize("path", [{}, {"fused": True}, {"fused": False}, {"foreach": True}], ids=str)
def test_adam(cls, dtype, weight_decay, amsgrad, maximize, path):
    compare(cls, dtype=dtype, lr=0.1, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize, **path)


@pytest.mark.parametrize("cls", ["SGD", "Adam"])
def test_parameters_without_a_gradient_and_with_strides(cls):
    compare(cls, lr=0.1, skip_grad=True)
    compare(cls, lr=0.1, contiguous=False)


@pytest.mark.parametrize("cls", ["SGD", "Adam"])
@pytest.mark.parametrize("dtype, rtol", [("float16", 2e-3), ("bfloat16", 2e-2)])
def test_narrow_types(cls, dtype, rtol):
    compare(cls, rtol=rtol, lr=0.1, dtype=dtype)


# Less than 0.5 for beta2, and an element of the gradient that comes near 0 makes rounding large: v forgets its size.
@settings(max_examples=40)
@given(
    st.floats(0, 1), st.floats(0, 0.999), st.floats(0.5, 0.9999), st.sampled_from([1e-8, 1e-3, 0.1]), st.floats(0, 0.5)
)
def test_adam_for_any_numbers(lr, beta1, beta2, eps, weight_decay):
    compare("Adam", rtol=1e-4, lr=lr, betas=(beta1, beta2), eps=eps, weight_decay=weight_decay)


@pytest.mark.parametrize(
    "cls, kwargs",
    [
        ("SGD", {}),
        ("SGD", {"momentum": 0.9}),
        ("Adam", {"eps": 0.1, "betas": (0.9, 0.9)}),
        ("AdamW", {"eps": 0.1, "betas": (0.9, 0.9), "amsgrad": True}),
    ],
)
def test_lists_of_all_dtypes_and_layouts(cls, kwargs):
    """One call of the kernel for parameters of several dtypes; some lie in memory in another order, or with gaps."""

    def program(T, show):
        rng = np.random.default_rng(0)
        ps = []
        for dtype in ("float32", "float64", "float16", "float32", "float64"):
            for order in ((0, 1, 2, 3), (0, 3, 1, 2), (3, 1, 2, 0)):
                p = T.tensor(rng.standard_normal((2, 3, 4, 5)).tolist(), dtype=getattr(T, dtype))
                ps.append(p.permute(order).requires_grad_())
            ps.append(T.ones(6, dtype=getattr(T, dtype))[::2].detach().requires_grad_())
            ps.append(T.ones(0, dtype=getattr(T, dtype)).requires_grad_())
        # PyTorch's kernel wants the gradient in the parameter's order, and does not look
        o = getattr(T.optim, cls)(ps, lr=0.1, fused=T is readtorch, **kwargs)
        for _ in range(3):
            for p in ps:
                p.grad = T.tensor(rng.standard_normal(tuple(p.shape)).tolist(), dtype=p.dtype)
            o.step()
        for p in ps:
            show.numbers(p)
            show(p.stride())

    same(program, rtol=3e-2)  # float16


def test_tensor_settings_and_differentiable():
    def program(T, show):
        for cls, kwargs in (
            ("SGD", {"lr": T.tensor(0.1)}),
            ("SGD", {"lr": T.tensor([0.1])}),
            ("Adam", {"lr": T.tensor(0.1)}),
            ("Adam", {"betas": (T.tensor(0.9), T.tensor([0.99]))}),
            ("AdamW", {"lr": T.tensor(0.1), "fused": True}),
        ):
            p = T.nn.Parameter(T.ones(3))
            o = getattr(T.optim, cls)([p], **kwargs)
            for _ in range(3):
                p.grad = T.full((3,), 0.5)
                o.step()
            show.numbers(p)
        for cls, name, kwargs in (
            ("SGD", "lr", {}),
            ("SGD", "weight_decay", {"lr": 0.1}),
            ("Adam", "lr", {}),
            ("Adam", "lr", {"amsgrad": True}),
            ("Adam", "weight_decay", {"lr": 0.1}),
            ("AdamW", "lr", {}),
        ):
            setting = T.tensor(0.1, dtype=T.float64, requires_grad=True)
            start = T.ones(3, dtype=T.float64, requires_grad=True)
            p = start.clone()
            o = getattr(T.optim, cls)([p], differentiable=True, **{name: setting}, **kwargs)
            for i in range(3):
                p.grad = T.tensor([0.1, 0.5, 1.0], dtype=T.float64) * (i + 1)
                o.step()
            p.sum().backward()
            show.numbers(p, setting.grad, start.grad)

    same(program)


def test_complex_parameters():
    def program(T, show):
        for cls in ("SGD", "Adam"):
            p = T.tensor([1 + 2j, 3 - 1j], requires_grad=True)
            o = getattr(T.optim, cls)([p], lr=0.1)
            for _ in range(3):
                p.grad = T.tensor([0.5 - 1j, 1j])
                o.step()
            show(p)

    same(program)


def test_a_step_counts_as_a_write():
    """What was saved for backward before the step is out of date after it, and says so."""

    def program(T, show):
        for cls in ("SGD", "Adam"):
            w = T.nn.Parameter(T.ones(2))
            x = T.ones(2, requires_grad=True)
            loss = (w * x).sum()
            w.grad = T.ones(2)
            version = w._version
            getattr(T.optim, cls)([w]).step()
            show(cls, w._version > version)
            show.error(lambda: loss.backward())

    same(program)
