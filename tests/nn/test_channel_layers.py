"""Layers that look across channels: local response normalization and the shuffle of groups."""

import pytest
import torch

import readtorch as rt
from tests.reference import both


@pytest.mark.parametrize("channels", [1, 2, 5, 9])
@pytest.mark.parametrize("size", [2, 3, 4, 7])
def test_local_response(channels, size):
    x = torch.randn(2, channels, 3, 2, dtype=torch.float64, requires_grad=True)
    both(lambda T, x: T.nn.LocalResponseNorm(size, 0.3, 0.6, 1.5)(x), x, grad=2, versions=False)
    both(lambda T, x: T.nn.CrossMapLRN2d(size, 0.3, 0.6, 1.5)(x), x, versions=False)
    both(lambda T, x: T.nn.functional.local_response_norm(x, size), x[:, :, 0], versions=False)


def test_what_they_refuse():
    both(lambda T, x: T.nn.LocalResponseNorm(2)(x), torch.randn(2, 2))
    both(lambda T, x: T.nn.CrossMapLRN2d(2)(x), torch.randn(2, 2, 2))
    both(lambda T, x: T.nn.ChannelShuffle(3)(x), torch.randn(2, 4, 2, 2))


def test_channel_shuffle():
    both(lambda T, x: T.nn.ChannelShuffle(3)(x), torch.randn(2, 6, 2, 2, requires_grad=True))


@pytest.mark.parametrize(
    "make",
    [lambda T: T.nn.LocalResponseNorm(2, k=2), lambda T: T.nn.CrossMapLRN2d(3), lambda T: T.nn.ChannelShuffle(2)],
)
def test_repr(make):
    assert repr(make(rt)) == repr(make(torch))
