"""Calls that must be refused, and with which words."""

import json
import pathlib

import pytest
import torch

import readtorch
from tests.aten.refused_calls import CALLS, ON_THE_CPU, OTHER_WORDS


def outcome(lib, call):
    try:
        result = call(lib)
    except Exception as error:
        result = f"{type(error).__name__}: {error}"
    return str(result).replace("readtorch.", "torch.")


UNARY = ["zero_", "relu_", "abs_", "exp_", "neg_", "sigmoid_"]
BINARY = ["fill_", "copy_", "add_", "sub_", "mul_", "div_", "pow_"]


@pytest.mark.parametrize("name", UNARY + BINARY)
def test_what_shows_an_element_twice_is_not_written_to(name):
    def write(lib):
        operands = [lib.tensor(2.0)] if name in BINARY else []
        return getattr(lib.ones(1).expand(3), name)(*operands)

    theirs = outcome(torch, write)
    assert name == "zero_" or "more than one element" in theirs
    assert outcome(readtorch, write) == theirs


@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.add(lib.ones(2), "x"),
        lambda lib: lib.add(lib.ones(2), [1]),
        lambda lib: lib.add(lib.ones(2), 1, beta=2),
        lambda lib: lib.mul(lib.ones(2), "x"),
        lambda lib: lib.ones(2).add("x"),
        lambda lib: lib.relu(3),
        lambda lib: lib.relu(lib.ones(1), 3),
        lambda lib: lib.ones(2) + "x",
        lambda lib: lib.add(lib.ones(2, dtype=lib.int64), 1, alpha=2.5),
        lambda lib: lib.tensor([1.0], dtype=lib.bfloat16).numpy(),
        lambda lib: lib.promote_types(lib.uint16, lib.bool),
    ],
)
def test_the_words_of_a_refusal(call):
    assert outcome(readtorch, call) == outcome(torch, call)


def test_an_operator_without_a_kernel_for_a_backend():
    """What is refused has other names here, but the words and the type are PyTorch's."""
    from readtorch.aten.dispatcher import registry
    from readtorch.c10.dispatch_key import CUDA

    theirs = outcome(torch, lambda lib: lib.ones(2).to_sparse().cos_())
    ours = outcome(readtorch, lambda lib: registry["aten::special_airy_ai"].resolve(CUDA))
    assert ours.split(". ")[0] == theirs.split(". ")[0].replace("cos_", "special_airy_ai").replace("SparseCPU", "CUDA")


# Refused by both, here with words or a type of our own, which stay: `python -m tests.aten.test_refusals` writes them anew.
OWN_WORDS = pathlib.Path(__file__).with_name("own_words.json")
OURS = json.loads(OWN_WORDS.read_text(encoding="utf8"))


@pytest.mark.parametrize("name", CALLS)
def test_refused_with_the_reference_s_words(name):
    ours, theirs = (outcome(lib, lambda lib: CALLS[name](lib, lib.ones(2, 2))) for lib in (readtorch, torch))
    assert "Error: " in theirs and "Error: " in ours
    assert ours == OURS.get(name, theirs) or "has no attribute" in theirs


@pytest.mark.parametrize("position", range(len(ON_THE_CPU)))
def test_refused_on_the_cpu(position):
    ours, theirs = (outcome(lib, ON_THE_CPU[position]) for lib in (readtorch, torch))
    assert ours == theirs


@pytest.mark.parametrize("position", range(len(OTHER_WORDS)))
def test_refused_by_both(position):
    assert "Error: " in outcome(torch, OTHER_WORDS[position])
    assert outcome(readtorch, OTHER_WORDS[position]) == OURS[str(position)]


@pytest.mark.parametrize("label", [-1, 3, 4])
def test_labels_of_ctc_loss_that_do_not_exist(label):
    """In PyTorch: nobody looks."""
    targets, lengths = readtorch.tensor([[1, label], [2, 9]]), ([4, 4], [2, 1])
    with pytest.raises(IndexError, match=f"target {label} is out of bounds for 3 labels"):
        readtorch.nn.functional.ctc_loss(readtorch.zeros(4, 2, 3), targets, *lengths)


def write_own_words():
    words = {name: outcome(readtorch, lambda lib: CALLS[name](lib, lib.ones(2, 2))) for name in OURS if name in CALLS}
    words |= {str(i): outcome(readtorch, call) for i, call in enumerate(OTHER_WORDS)}
    OWN_WORDS.write_text(json.dumps(words, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    write_own_words()
