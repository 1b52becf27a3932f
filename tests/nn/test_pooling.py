"""The pooling layers: what they look like, what they refuse, and that they use what they were given."""

import pytest
import torch

import readtorch as rt
from tests.reference import both

LAYERS = {
    "MaxPool1d": ((3, 2, 1, 1, True, True), (2, 3, 9)),
    "MaxPool2d": (((3, 2), (2, 1), (1, 0)), (2, 3, 9, 8)),
    "MaxPool3d": ((2,), (2, 3, 4, 5, 4)),
    "AvgPool1d": ((3, 2, 1, True, False), (2, 3, 9)),
    "AvgPool2d": ((3, None, 1, True, False, 5), (2, 3, 9, 8)),
    "AvgPool3d": (((2, 1, 2), 2), (2, 3, 4, 5, 4)),
    "FractionalMaxPool2d": ((2, (3, 4), None, True), (2, 3, 9, 8)),
    "FractionalMaxPool3d": ((2, None, 0.5), (2, 3, 4, 5, 4)),
    "LPPool1d": ((2, 3, 1, True), (2, 3, 9)),
    "LPPool2d": ((1.5, (2, 3)), (2, 3, 9, 8)),
    "LPPool3d": ((2, 2, 2), (2, 3, 4, 5, 4)),
    "AdaptiveMaxPool1d": ((4, True), (2, 3, 9)),
    "AdaptiveMaxPool2d": (((None, 3),), (2, 3, 9, 8)),
    "AdaptiveMaxPool3d": (((2, None, 2),), (2, 3, 4, 5, 4)),
    "AdaptiveAvgPool1d": ((4,), (2, 3, 9)),
    "AdaptiveAvgPool2d": ((1,), (2, 3, 9, 8)),
    "AdaptiveAvgPool3d": (((None, 2, 1),), (2, 3, 4, 5, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_layer(name):
    arguments, shape = LAYERS[name]
    ours, theirs = getattr(rt.nn, name)(*arguments), getattr(torch.nn, name)(*arguments)
    assert repr(ours) == repr(theirs)
    assert ours.__constants__ == theirs.__constants__
    assert {k: v for k, v in vars(ours).items() if k[0] != "_"} == {
        k: v for k, v in vars(theirs).items() if k[0] != "_"
    }
    both(lambda T, x: getattr(T.nn, name)(*arguments)(x), torch.rand(shape, requires_grad=True))


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_unpooling_undoes_pooling(dims):
    def there_and_back(T, x):
        pool = getattr(T.nn, f"MaxPool{dims}d")(2, stride=3, padding=1, return_indices=True)
        unpool = getattr(T.nn, f"MaxUnpool{dims}d")(2, stride=3, padding=1)
        values, indices = pool(x)
        return unpool(values, indices, output_size=x.size()), unpool.extra_repr() and unpool(values, indices)

    both(there_and_back, torch.rand(2, 3, *[8] * dims, requires_grad=True))
    assert repr(getattr(rt.nn, f"MaxUnpool{dims}d")(2)) == repr(getattr(torch.nn, f"MaxUnpool{dims}d")(2))


@pytest.mark.parametrize(
    "make",
    [
        lambda T: T.nn.FractionalMaxPool2d(2),
        lambda T: T.nn.FractionalMaxPool2d(2, 3, 0.5),
        lambda T: T.nn.FractionalMaxPool2d(2, None, 1.5),
        lambda T: T.nn.FractionalMaxPool3d(0, 2),
        lambda T: T.nn.FractionalMaxPool3d((1, 0, 1), 2),
        lambda T: T.nn.FractionalMaxPool3d(2),
    ],
    ids=range(6),
)
def test_refused_settings(make):
    ours, theirs = both(make)
    assert isinstance(theirs, ValueError)


def test_given_random_samples_are_a_buffer_and_used():
    samples = torch.rand(2, 3, 2)
    both(lambda T, x, s: T.nn.FractionalMaxPool2d(2, 3, _random_samples=s)(x), torch.rand(2, 3, 9, 8), samples)
    assert list(rt.nn.FractionalMaxPool2d(2, 3, _random_samples=rt.rand(2, 3, 2)).state_dict()) == ["_random_samples"]
