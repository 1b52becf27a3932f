"""Whole networks in archives: what the reference wrote is read here, what is written here is read there."""

import io
import warnings

import numpy as np
import pytest
import torch

import readtorch
import readtorch.jit
from tests.training import models

PHOTO = np.random.RandomState(0).rand(2, 3, 32, 32).astype(np.float32)
DIGIT = np.random.RandomState(1).rand(2, 1, 28, 28).astype(np.float32)
TOKENS = np.array([[1, 2, 3, 4], [5, 6, 7, 8]])

NETWORKS = [
    ("resnet18", {"width": 8}, PHOTO, "script"),
    ("resnet18", {"width": 8}, PHOTO, "trace"),
    ("lstm_language_model", {}, TOKENS, "script"),
    ("lstm_language_model", {}, TOKENS, "trace"),
    ("gpt", {"layers": 2, "d": 32}, TOKENS, "trace"),
    ("mlp", {}, DIGIT.reshape(2, 784), "script"),
    ("mnist_cnn", {"channels": 4}, DIGIT, "script"),
    ("vgg", {"plan": (8, "pool", 8, "pool")}, PHOTO, "script"),
    ("mobilenet", {"width": 8}, PHOTO, "script"),
    ("mobilenet", {"width": 8}, PHOTO, "trace"),
]


def compiled(library, network, how, inputs):
    if how == "script":
        return library.jit.script(network)
    return library.jit.trace(network, inputs, check_trace=False)


def passed_on(module, writer, reader):
    buffer = io.BytesIO()
    writer.jit.save(module, buffer)
    buffer.seek(0)
    return reader.jit.load(buffer)


@pytest.mark.parametrize("name, sizes, inputs, how", NETWORKS, ids=[f"{n[0]}-{n[3]}" for n in NETWORKS])
def test_network(name, sizes, inputs, how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs, ours = (getattr(models, name)(T, **sizes).eval() for T in (torch, readtorch))
        ours.load_state_dict({k: readtorch.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
        x, y = torch.tensor(inputs), readtorch.tensor(inputs)
        expected = theirs(x).detach().numpy()
        theirs, ours = compiled(torch, theirs, how, x), compiled(readtorch, ours, how, y)
        for module, given in (
            (ours, y),
            (passed_on(theirs, torch, readtorch), y),
            (passed_on(ours, readtorch, torch), x),
            (passed_on(ours, readtorch, readtorch), y),
        ):
            np.testing.assert_allclose(module(given).detach().numpy(), expected, rtol=1e-4, atol=1e-5)
            assert not module.training
