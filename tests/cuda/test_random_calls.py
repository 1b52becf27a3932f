"""Operators with arguments drawn at random end on the kernel simulator as PyTorch's do on the CPU: with the same numbers, gradients
and versions, or the same refusal. Which calls do: `python -m tests.aten.random_calls`.
"""

import pytest
import torch

import readtorch
from tests.aten import random_calls

KNOWN = random_calls.known_calls(random_calls.FILE_OF_CUDA)


@pytest.fixture(autouse=True, scope="module")
def device():
    with random_calls.on_simulated_device():
        yield


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_random_calls(name):
    schema = random_calls.operators()[name]
    for number in KNOWN[name]:
        expected, ours = (random_calls.outcome(T, name, schema, number) for T in (torch, readtorch))
        assert random_calls.alike(ours, expected), (number, expected, ours)
