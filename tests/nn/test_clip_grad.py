"""Clipping gradients: numbers, versions, orders of norms, refusals."""

import pytest
import torch

from tests.reference import both

INF = float("inf")


def with_gradients(T, *gradients):
    """Parameters with these gradients, and one without."""
    parameters = [T.nn.Parameter(T.zeros_like(g)) for g in gradients] + [T.nn.Parameter(T.zeros(2))]
    for p, g in zip(parameters, gradients):
        p.grad = g.clone()
    return parameters


def gradients(dtype=torch.float64, scale=1.0):
    return [torch.linspace(-1, 2, 6, dtype=dtype).reshape(2, 3) * scale, torch.tensor([3.0, -4.0], dtype=dtype) * scale]


def clip(call, *settings):
    """The result of the call, the gradients after it, and how often they were written to."""

    def program(T, *gradients):
        parameters = with_gradients(T, *gradients)
        result = getattr(T.nn.utils, call)(parameters, *settings)
        return result, [p.grad for p in parameters[:-1]], [p.grad._version for p in parameters[:-1]]

    return program


@pytest.mark.parametrize("order", [2, 2.0, 1, 0.5, 3, INF])
@pytest.mark.parametrize("most", [0.01, 1.0, 100.0, 0.0])
def test_norms(order, most):
    both(clip("clip_grad_norm_", most, order), *gradients(), rtol=1e-12, atol=0)


def test_what_keeps_the_factor_finite():
    """The 1e-6 that is added to the norm counts where the norm is small."""
    both(clip("clip_grad_norm_", 1e-7), *gradients(scale=1e-7), rtol=1e-9, atol=0)
    both(clip("clip_grad_norm_", 1.0), *gradients(scale=0.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.complex128], ids=str)
def test_dtypes(dtype):
    both(clip("clip_grad_norm_", 1.5), *gradients(dtype))


def test_parts():
    both(lambda T, *g: T.nn.utils.get_total_norm(g, 3), *gradients())
    both(lambda T, g: T.nn.utils.get_total_norm(g), gradients()[0])
    both(lambda T: T.nn.utils.get_total_norm([]))

    def by_norm(T, *g):
        parameters = with_gradients(T, *g)
        T.nn.utils.clip_grads_with_norm_(parameters, 1.0, T.tensor(4.0))
        return [p.grad for p in parameters[:-1]]

    both(by_norm, *gradients())
    both(lambda T: T.nn.utils.clip_grads_with_norm_([], 1.0, T.tensor(4.0)))


def test_what_is_not_finite():
    bad = torch.tensor([1.0, float("nan")])
    both(clip("clip_grad_norm_", 1.0), bad)
    both(clip("clip_grad_norm_", 1.0, 2.0, True), bad)
    both(clip("clip_grad_norm_", 1.0, INF, True), torch.tensor([INF]))


@pytest.mark.parametrize("value", [0.5, 2, 0])
def test_values(value):
    both(clip("clip_grad_value_", value), *gradients())
    both(clip("clip_grad_value_", value, False), *gradients())


def test_one_parameter_a_generator_and_none():
    def one(T, g):
        p, _ = with_gradients(T, g)
        return T.nn.utils.clip_grad_norm_(p, 1.0), p.grad, T.nn.utils.clip_grad_value_(p, 0.1), p.grad

    both(one, gradients()[0])

    def generated(T, *g):
        parameters = with_gradients(T, *g)
        return T.nn.utils.clip_grad_norm_((p for p in parameters), 1.0), [p.grad for p in parameters[:-1]]

    both(generated, *gradients())
    both(lambda T: (T.nn.utils.clip_grad_norm_([], 1.0), T.nn.utils.clip_grad_norm_((p for p in ()), 1.0)))
    both(lambda T: T.nn.utils.clip_grad_norm_([T.nn.Parameter(T.zeros(2))], 1.0))
    both(lambda T, g: T.nn.utils.clip_grad_norm(with_gradients(T, g), 1.0), gradients()[0])
