"""Operators with arguments drawn at random end as PyTorch's: with the same numbers and gradients, or the same refusal."""

import pytest
import torch

import readtorch
from tests.aten import random_calls

KNOWN = random_calls.known_calls(random_calls.FILE)
NAMES = sorted(KNOWN)


@pytest.mark.parametrize("name", NAMES)
def test_random_calls(name):
    schema = random_calls.operators()[name]
    for number in KNOWN[name]:
        expected, ours = (random_calls.outcome(T, name, schema, number) for T in (torch, readtorch))
        assert random_calls.alike(ours, expected), (number, expected, ours)
