"""Convolution layers: initial values, text, padding modes, output sizes, lazy ones, errors, training."""

import pickle

import pytest
import torch

import readtorch as rt
from tests.reference import assert_close, both, seed_both, to_readtorch

LAYERS = {
    "plain": lambda nn: nn.Conv2d(3, 4, 3),
    "settings": lambda nn: nn.Conv2d(4, 6, (3, 2), (2, 1), (0, 1), 2, 2, False),
    "same": lambda nn: nn.Conv1d(2, 4, 4, padding="same", dilation=3),
    "valid": lambda nn: nn.Conv1d(2, 4, 4, padding="valid"),
    "circular": lambda nn: nn.Conv3d(2, 3, (1, 2, 3), padding=(1, 0, 2), padding_mode="circular"),
    "transposed": lambda nn: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2),
    "transposed 1d": lambda nn: nn.ConvTranspose1d(3, 5, 4),
    "transposed 3d": lambda nn: nn.ConvTranspose3d(2, 2, (1, 2, 3), dilation=2, bias=False),
    "no channels": lambda nn: nn.Conv2d(0, 2, 3),
}


@pytest.mark.parametrize("name", LAYERS)
def test_initial_values_and_text(name):
    seed_both(5)
    ours, theirs = LAYERS[name](rt.nn), LAYERS[name](torch.nn)
    assert repr(ours) == repr(theirs)
    assert list(ours.__dict__) == list(theirs.__dict__)
    assert_close(dict(ours.state_dict()), dict(theirs.state_dict()), exact=True)
    assert ours._reversed_padding_repeated_twice == theirs._reversed_padding_repeated_twice


def test_channels_last_weight_starts_with_the_same_numbers():
    seed_both(5)
    ours = rt.nn.Conv2d(3, 4, 3).to(memory_format=rt.channels_last)
    theirs = torch.nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    for layer in (ours, theirs):
        layer.reset_parameters()
    assert_close(ours.weight, theirs.weight, exact=True, strides=True)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("padding", [1, (2, 1), "same"])
def test_padding_modes(mode, padding):
    def run(T, x):
        return T.nn.Conv2d(3, 4, (3, 4), padding=padding, padding_mode=mode)(x)

    both(run, torch.randn(2, 3, 7, 6, requires_grad=True))


@pytest.mark.parametrize("size", [(11, 13), (12, 14), (2, 5, 12, 13)])
def test_output_size(size):
    def run(T, x):
        return T.nn.ConvTranspose2d(3, 5, 3, stride=2, padding=1)(x, output_size=size)

    both(run, torch.randn(2, 3, 6, 7, requires_grad=True))


@pytest.mark.parametrize("size", [(10, 13), (11, 15), (11,), (1, 1, 1, 11, 13)])
def test_output_sizes_out_of_reach(size):
    def run(T, x):
        return T.nn.ConvTranspose2d(3, 5, 3, 2, 1)(x, output_size=size)

    error, _ = both(run, torch.randn(2, 3, 6, 7))
    assert isinstance(error, ValueError)


@pytest.mark.parametrize(
    "make",
    [
        lambda nn: nn.Conv2d(3, 4, 3, groups=2),
        lambda nn: nn.Conv2d(4, 3, 3, groups=2),
        lambda nn: nn.Conv2d(4, 4, 3, groups=0),
        lambda nn: nn.Conv2d(4, 4, 3, padding="same", stride=2),
        lambda nn: nn.ConvTranspose1d(4, 4, 3, padding_mode="reflect"),
    ],
)
def test_refused_settings(make):
    error, _ = both(lambda T: make(T.nn))
    assert isinstance(error, ValueError)


@pytest.mark.parametrize("settings", [dict(padding="full"), dict(padding_mode="none")])
def test_unknown_names(settings):
    with pytest.raises(ValueError, match="should be one of|must be one of"):
        rt.nn.Conv2d(1, 1, 1, **settings)


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("kind", ["LazyConv", "LazyConvTranspose"])
def test_lazy_layers(kind, dim):
    def run(T, x):
        layer = getattr(T.nn, f"{kind}{dim}d")(4, 2, groups=2)
        assert repr(layer).startswith(f"{kind}{dim}d(0, 4")
        result = layer(x)
        return result, layer.weight, layer.bias, repr(layer), type(layer).__name__

    both(run, torch.randn(2, 6, *[5] * dim))


def test_lazy_layer_wants_the_right_dimensions():
    both(lambda T, x: T.nn.LazyConv2d(4, 2)(x), torch.randn(3, 3))
    both(lambda T, x: T.nn.LazyConv2d(4, 2, groups=2)(x), torch.randn(3, 3, 4))


def test_pickle_and_overridden_convolution():
    class Doubled(rt.nn.Conv1d):
        def _conv_forward(self, input, weight, bias):
            return super()._conv_forward(input, weight * 2, bias)

    x = rt.randn(1, 2, 5)
    layer = rt.nn.Conv1d(2, 3, 2, bias=False)
    assert rt.equal(pickle.loads(pickle.dumps(layer))(x), layer(x))
    doubled = Doubled(2, 3, 2, bias=False)
    doubled.load_state_dict(layer.state_dict())
    assert rt.allclose(doubled(x), 2 * layer(x))


def network(nn):
    """Each way to convolve once: few channels, rows of pixels, depthwise, one tap, transposed."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(32, 32, 3, padding=1, groups=32),
        nn.Conv2d(32, 16, 1),
        nn.ReLU(),
        nn.ConvTranspose2d(16, 3, 2, stride=2),
    )


def test_training_side_by_side():
    x = torch.randn(8, 3, 16, 16, generator=torch.Generator().manual_seed(3))
    losses = []
    for T, batch in ((torch, x), (rt, to_readtorch(x))):
        T.manual_seed(0)
        model = network(T.nn)
        optimizer = T.optim.SGD(model.parameters(), lr=0.1)
        history = []
        for _ in range(10):
            optimizer.zero_grad()
            loss = T.nn.functional.mse_loss(model(batch), batch)
            loss.backward()
            optimizer.step()
            history.append(loss.item())
        losses.append(history)
    assert losses[0][-1] < 0.98 * losses[0][0]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
