"""Operators that make what others write: PyTorch's schemas, and values; what they are given stays as it was."""

import pytest
import torch

import readtorch as rt
from readtorch.aten.dispatcher import registry
from tests.operator_arguments import arguments_of
from tests.reference import rebuild, seed_both, tensors_in, to_readtorch

OPERATORS = sorted(
    o.schema.full_name for o in registry.values() if any(hasattr(kernel, "made_of") for kernel in o.kernels.values())
)


def overload(T, name):
    namespace, _, rest = name.partition("::")
    packet, _, which = rest.partition(".")
    return getattr(getattr(getattr(T.ops, namespace), packet), which or "default")


def without_defaults(schema):
    """Numbers are spelled otherwise: 0 and 0., a third with one digit more."""
    return [(a.name, str(a.type)) for a in schema.arguments], [str(r.type) for r in schema.returns]


def test_there_are_some():
    assert len(OPERATORS) >= 25


@pytest.mark.parametrize("name", OPERATORS)
def test_schemas(name):
    ours, theirs = (overload(T, name)._schema for T in (rt, torch))
    assert without_defaults(ours) == without_defaults(theirs)
    assert not theirs.is_mutable


CALLS = {
    "aten::zero": lambda T, x: (x,),
    "aten::copy": lambda T, x: (x, T.tensor([7.0, 8.0, 9.0])),
    "aten::resize": lambda T, x: (x, [2]),
    "aten::_foreach_zero": lambda T, x: ([x, x],),
    "aten::_foreach_copy": lambda T, x: ([x], [T.tensor([1.0, 1.0, 2.0])]),
    "aten::embedding_renorm": lambda T, x: (x.view(3, 1), T.tensor([0, 2]), 0.5, 2.0),
    "aten::_amp_update_scale": lambda T, x: (x[:1], T.zeros(1, dtype=T.int32), T.ones(1), 2.0, 0.5, 2),
}


def lists(T, tree):
    if isinstance(tree, list | tuple):
        return [lists(T, part) for part in tree]
    return tree.tolist()


@pytest.mark.parametrize("name", CALLS)
def test_values(name):
    results = []
    for T in (torch, rt):
        x = T.tensor([1.0, 2.0, 3.0])
        results.append((lists(T, overload(T, name)(*CALLS[name](T, x))), x.tolist()))
    assert results[0] == results[1]


def test_what_is_drawn():
    x = rt.zeros(1000)
    drawn = rt.ops.aten.uniform.default(x, 1.0, 2.0)
    assert x.sum() == 0 and 1 <= drawn.min() and drawn.max() <= 2 and 1.4 < drawn.mean() < 1.6


UNSAFE = ["aten::_fused_adagrad"]  # PyTorch runs past the end of the tensors that are guessed for it


def graph_and_gradients(T, name, given):
    """The results' nodes, and what their backward makes of the given tensors or says."""
    tensor = torch.Tensor if T is torch else rt.Tensor
    results = tensors_in(overload(T, name)(*given[0], **given[1]), tensor)
    nodes = [type(r.grad_fn).__name__ for r in results]
    try:
        sum(r.double().sum() for r in results).backward()
    except RuntimeError as error:
        return nodes, str(error)
    return nodes, [None if t.grad is None else t.grad.tolist() for t in tensors_in(given, tensor)]


@pytest.mark.parametrize("name", [name for name in OPERATORS if name not in UNSAFE and arguments_of(name) is not None])
def test_gradients(name):
    arguments = list(zip(registry[name].schema.arguments, rebuild(arguments_of(name), own_leaf)))
    given = [v for a, v in arguments if not a.keyword_only], {a.name: v for a, v in arguments if a.keyword_only}
    ours = to_readtorch(given)
    seed_both(0)
    assert graph_and_gradients(rt, name, ours) == graph_and_gradients(torch, name, given)


def own_leaf(value):
    if isinstance(value, torch.Tensor):
        return value.clone().requires_grad_(value.is_floating_point())
    return value
