"""Every module, made with its defaults and with one argument changed: the same attributes and the same refusals."""

import pytest
import torch

import readtorch.nn
from tests.new_objects import arguments_of, new, subclassed, variations

KNOWN = {
    "kernel_size": 2,
    "normalized_shape": (2,),
    "num_groups": 2,
    "num_heads": 2,
    "nhead": 2,
    "cutoffs": [1, 2],
    "lower": 0.1,
    "upper": 0.3,
    "output_size": 2,
    "upscale_factor": 2,
    "downscale_factor": 2,
    "unflattened_size": (1, 2),
    "dim": 1,
    "padding": 1,
    "threshold": 0.5,
    "value": 0.5,
    "num_layers": 1,
}
NAMES = [
    name for name, cls in sorted(vars(torch.nn).items()) if isinstance(cls, type) and issubclass(cls, torch.nn.Module)
]
SIZES = {"RNN": (3, 4), "LSTM": (3, 4), "GRU": (3, 4), "RNNBase": ("LSTM", 3, 4)}


@pytest.mark.parametrize("name", NAMES)
def test_a_new_module(name):
    theirs, ours = getattr(torch.nn, name), getattr(readtorch.nn, name)
    given = {} if name in SIZES else arguments_of(theirs, KNOWN)
    for changed in variations(theirs):
        expected, found = (
            new(lambda cls=cls: cls(*SIZES.get(name, ()), **given | changed), private=True) for cls in (theirs, ours)
        )
        assert found == expected, changed


@pytest.mark.parametrize("name", NAMES)
def test_a_new_class(name):
    assert subclassed(getattr(readtorch.nn, name)) == subclassed(getattr(torch.nn, name))
