"""The model of the stride figure against PyTorch: sizes, strides, offsets, copies and refusals."""

import random

import torch

from readtorch.viz.figures import strides
from readtorch.viz.inputs import Refusal
from readtorch.viz.view_operations import ITEMSIZES

FIGURE = strides.FIGURE


def theirs(inputs):
    """The same with PyTorch: the stages as tensors, or the text of the error."""
    storage = torch.arange(inputs["count"]).to(getattr(torch, inputs["dtype"]))
    program = inputs["program"]
    try:
        x = storage.as_strided(inputs["sizes"], inputs["strides"], inputs["offset"])
        return eval(program, {"x": x})
    except Exception as error:
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"


def too_large(inputs):
    refusal = ours(inputs)
    return isinstance(refusal, str) and refusal.startswith("The figure draws")


def ours(inputs):
    try:
        return FIGURE.model(inputs)
    except Refusal as refusal:
        return str(refusal)


def random_inputs(seed, count):
    generator = random.Random(seed)
    return [FIGURE.random_inputs(generator) for _ in range(count)]


def test_programs_give_what_pytorch_gives():
    refused = 0
    for inputs in random_inputs(1, 3000):
        found, wanted = ours(inputs), theirs(inputs)
        if isinstance(found, str) and found.startswith(("The figure", "Write ")):
            continue
        if isinstance(wanted, str) or isinstance(found, str):
            assert found == wanted, inputs
            refused += 1
            continue
        last = found["stages"][-1]
        numbers = (last["sizes"], last["strides"], last["offset"])
        assert numbers == (list(wanted.shape), list(wanted.stride()), wanted.storage_offset()), inputs
        if inputs["dtype"] != "bool":  # of which there are only two
            assert last["values"] == [int(value) for value in wanted.flatten().tolist()], inputs
        assert len(found["places"]) * ITEMSIZES[inputs["dtype"]] == wanted.untyped_storage().nbytes()
    assert 300 < refused < 2500
