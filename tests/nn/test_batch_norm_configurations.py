"""Batch normalization next to the reference in 50 random configurations, to 1e-10 in float64.

Compared after each of several steps, in training and in evaluation: outputs, all gradients, the running statistics and the
number of batches.
"""

import random

import numpy as np
import pytest
import torch

import readtorch as rt

CONFIGURATIONS = 50


def configuration(seed):
    """A layer's class and options, the shapes of its batches, and in which mode each step runs."""
    draw = random.Random(seed)
    dims = draw.choice([1, 1, 2, 2, 3])
    features = draw.randint(1, 7)
    spatial = draw.choice([0, 1]) if dims == 1 else dims
    options = {
        "eps": draw.choice([1e-5, 1e-3, 0.1, 1e-12]),
        "momentum": draw.choice([0.1, 0.01, 1.0, 0.0, None]),
        "affine": draw.random() < 0.7,
        "track_running_stats": draw.random() < 0.7,
        "bias": draw.random() < 0.8,
    }
    sizes = [draw.randint(1, 4) for _ in range(spatial)]
    shapes = [(draw.randint(2, 6), features, *sizes) for _ in range(4)]
    modes = [True, *(draw.random() < 0.6 for _ in range(3))]
    form = draw.choice(["contiguous", "channels last", "with gaps"])
    return f"BatchNorm{dims}d", features, options, shapes, modes, form


def laid_out(x, form):
    """The same numbers, another way of lying in memory."""
    if form == "with gaps":
        return np.repeat(x, 2, axis=-1)[..., ::2]
    if form == "channels last" and x.ndim > 2:
        return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 1, -1)), -1, 1)
    return x


def run(lib, seed):
    """Everything that can be seen of the layer: a list of (name, numbers)."""
    name, features, options, shapes, modes, form = configuration(seed)
    numbers = np.random.default_rng(seed)
    layer = getattr(lib.nn, name)(features, dtype=lib.float64, **options)
    seen = []
    with lib.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(lib.from_numpy(numbers.normal(1.0, 0.5, features)))
    for shape, training in zip(shapes, modes):
        layer.train(training)
        layer.zero_grad()
        x = lib.from_numpy(laid_out(numbers.normal(3.0, 2.0, shape), form)).requires_grad_()
        y = layer(x)
        y.backward(lib.from_numpy(laid_out(numbers.normal(size=shape), form)))
        seen += [("y", y), ("x.grad", x.grad), *((f"{n}.grad", p.grad) for n, p in layer.named_parameters())]
        seen += list(layer.named_buffers())
    return [(what, np.asarray(value.detach().numpy())) for what, value in seen]


@pytest.mark.parametrize("seed", range(CONFIGURATIONS))
def test_equal_to_the_reference(seed):
    theirs, ours = run(torch, seed), run(rt, seed)
    assert [what for what, _ in theirs] == [what for what, _ in ours]
    for (what, expected), (_, value) in zip(theirs, ours):
        assert expected.dtype == value.dtype and expected.shape == value.shape, what
        np.testing.assert_allclose(value, expected, rtol=1e-10, atol=1e-10, err_msg=what)


def test_the_configurations_differ():
    """The draw covers what it is meant to cover."""
    drawn = [configuration(seed) for seed in range(CONFIGURATIONS)]
    assert {name for name, *_ in drawn} == {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"}
    for option, least in {"momentum": 5, "eps": 4, "affine": 2, "track_running_stats": 2, "bias": 2}.items():
        assert len({options[option] for _, _, options, *_ in drawn}) == least, option
    assert {len(shapes[0]) for _, _, _, shapes, *_ in drawn} == {2, 3, 4, 5}
    assert {form for *_, form in drawn} == {"contiguous", "channels last", "with gaps"}
    assert any(False in modes for *_, modes, _ in drawn)
