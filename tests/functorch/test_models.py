"""Transforms of whole models: per-sample gradients of a CNN, Hessian-vector products of a GPT, an ensemble; equal to PyTorch's."""

import numpy as np
import pytest
import torch
import torch.nn.attention

import readtorch as rt
import readtorch.nn.attention
from tests.training import models


def numbers(tree):
    """The tensors of a dict as arrays, by their names."""
    return {name: np.array(t.detach().tolist()) for name, t in tree.items()}


def compare(program, rtol, atol):
    expected, ours = [numbers(program(T)) for T in (torch, rt)]
    assert expected.keys() == ours.keys() and expected
    for name in expected:
        np.testing.assert_allclose(ours[name], expected[name], rtol=rtol, atol=atol, err_msg=name)
    return expected


def prepared(T, make):
    """(model, its parameters by name, detached)"""
    T.manual_seed(0)
    model = make(T).double()
    return model, {name: p.detach() for name, p in model.named_parameters()}


def image_loss(T, model):
    def loss(parameters, image, label):
        output = T.func.functional_call(model, parameters, (image.unsqueeze(0),))
        return T.nn.functional.cross_entropy(output, label.unsqueeze(0))

    return loss


def per_sample_gradients(T, images=5, **how):
    model, parameters = prepared(T, models.small_cnn)
    x = T.linspace(-1, 1, images * 28 * 28, dtype=T.float64).sin().reshape(images, 1, 28, 28)
    labels = T.arange(images) % 10
    return T.func.vmap(T.func.grad(image_loss(T, model)), in_dims=(None, 0, 0), **how)(parameters, x, labels)


@pytest.mark.parametrize("how", [{}, {"chunk_size": 2}], ids=["whole", "in chunks"])
def test_per_sample_gradients_of_a_cnn(how):
    found = compare(lambda T: per_sample_gradients(T, **how), rtol=1e-7, atol=1e-10)
    assert found["0.weight"].shape == (5, 16, 1, 3, 3)


def test_per_sample_gradients_are_those_of_one_sample_each():
    model, parameters = prepared(rt, models.small_cnn)
    x = rt.linspace(-1, 1, 3 * 28 * 28, dtype=rt.float64).sin().reshape(3, 1, 28, 28)
    together = numbers(per_sample_gradients(rt, 3))
    for i in range(3):
        alone = numbers(rt.func.grad(image_loss(rt, model))(parameters, x[i], rt.tensor(i)))
        for name in alone:
            np.testing.assert_allclose(together[name][i], alone[name], rtol=1e-9, atol=1e-12)


def hessian_vector_product(T, order):
    """Of a small GPT: jvp of grad, or vjp of grad, in the direction of its parameters' cosines."""
    model, parameters = prepared(T, lambda T: models.gpt(T, layers=2, d=16, heads=2, context=8, vocabulary=11))
    tokens = T.arange(2 * 9).reshape(2, 9) * 7 % 11
    vector = {name: p.cos() for name, p in parameters.items()}

    def loss(parameters):
        logits = T.func.functional_call(model, parameters, (tokens[:, :-1],))
        return T.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())

    gradient = T.func.grad(loss)
    # The fused kernel has neither a tangent nor a second derivative, in PyTorch either.
    with T.nn.attention.sdpa_kernel(T.nn.attention.SDPBackend.MATH):
        return product(T, loss, gradient, parameters, vector, order)


def product(T, loss, gradient, parameters, vector, order):
    if order == "forward over reverse":
        return T.func.jvp(gradient, (parameters,), (vector,))[1]
    if order == "reverse over reverse":
        return T.func.vjp(gradient, parameters)[1](vector)[0]
    return T.func.grad(lambda p: T.func.jvp(loss, (p,), (vector,))[1])(parameters)


@pytest.mark.parametrize("order", ["forward over reverse", "reverse over reverse", "reverse over forward"])
def test_hessian_vector_products_of_a_gpt(order):
    found = compare(lambda T: hessian_vector_product(T, order), rtol=1e-6, atol=1e-9)
    assert len(found) > 20 and any(np.abs(value).max() > 1e-4 for value in found.values())


def test_an_ensemble():
    def program(T):
        nets = [prepared(T, models.small_cnn)[0] for _ in range(3)]
        parameters, buffers = T.func.stack_module_state(nets)
        scale = T.arange(1.0, 4.0, dtype=T.float64)
        parameters = {name: (p.detach() * scale.reshape(-1, *[1] * (p.dim() - 1))) for name, p in parameters.items()}
        x = T.linspace(-1, 1, 2 * 28 * 28, dtype=T.float64).sin().reshape(2, 1, 28, 28)
        output = lambda p: T.func.functional_call(nets[0], p, (x,))
        gradients = T.func.vmap(T.func.grad(lambda p: output(p).logsumexp(1).sum()))(parameters)
        return {"output": T.func.vmap(output)(parameters), **gradients}

    compare(program, rtol=1e-7, atol=1e-10)
