"""compile is never wrong: whatever changes between two calls, the result is that of the function as it is written.

Each program of `mutations.py` is run by our compiler and by PyTorch's, both with the backend that changes nothing, and by none: what may be
wrong here are guards. What Inductor makes of graphs is compared in tests/inductor.
"""

import numpy as np
import pytest
import torch

import readtorch
from readtorch import _dynamo
from tests.jit.mutations import PROGRAMS


def plain(value):
    """Tensors as (dtype, NumPy array), nests of them likewise."""
    if isinstance(value, torch.Tensor | readtorch.Tensor):
        return str(value.dtype).removeprefix("torch."), np.array(value.detach().numpy())
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def assert_same(mine, theirs):
    assert type(mine) is type(theirs), (mine, theirs)
    if isinstance(mine, list | tuple):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs):
            assert_same(a, b)
    elif isinstance(mine, np.ndarray):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-7)
    else:
        assert mine == theirs


def run(name, lib, made):
    """What the program returns if `lib` compiles its function, which is put into `made`; a list of one None: not compiled."""

    def compile(function):
        made.append(function if made == [None] else lib.compile(function, backend="eager"))
        return made[-1]

    return plain(PROGRAMS[name](lib, compile))


# PyTorch keeps what it has compiled here, on purpose or not, or refuses. The measure is the program without a compiler.
ONLY_AS_WRITTEN = set(
    """
    a_global_hides_a_builtin a_method_of_a_module a_hook_that_comes_later exceptions an_element_of_a_set_changes_its_type
    equal_sets_in_another_order a_method_of_a_class_between a_class_gets_another_base a_class_hides_a_parameter
    a_property_hides_a_field a_class_gets_a_call a_class_gets_a_length a_class_gets_getattribute
    """.split()
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_changes_is_noticed(name):
    made = []
    mine = run(name, readtorch, made)
    assert_same(mine, run(name, readtorch, [None]))
    if name not in ONLY_AS_WRITTEN:
        torch._dynamo.reset()
        assert_same(mine, run(name, torch, []))


def graphs_of(name):
    made = []
    run(name, readtorch, made)
    return _dynamo.report(made[0]).graph_count


def test_how_many_are_compiled():
    """Nearly all: the others compute nothing but what depends on elements, or are generators."""
    assert len(PROGRAMS) >= 50 and sum(graphs_of(name) > 0 for name in PROGRAMS) > 0.9 * len(PROGRAMS)
