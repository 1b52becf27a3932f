"""The comparison tools themselves: they carry tensors over faithfully and notice every kind of difference."""

import pytest
import torch
from hypothesis import given

import readtorch as rt
from tests.reference import (
    DTYPES,
    assert_close,
    both,
    dtypes,
    same_strides,
    tensor_lists,
    tensors,
    to_readtorch,
    to_torch,
)


@given(tensors(dtype=dtypes(), special=True, requires_grad=True))
def test_a_round_trip_keeps_everything(tensor):
    ours = to_readtorch(tensor)
    assert isinstance(ours, rt.Tensor)
    if tensor.numel():
        assert ours.stride() == tensor.stride() and ours.storage_offset() == tensor.storage_offset()
    assert ours.is_leaf and ours.requires_grad == tensor.requires_grad
    assert_close(ours, tensor, exact=True, strides=True)
    back = to_torch(ours)
    torch.testing.assert_close(back, tensor, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_conversion_copies(dtype):
    tensor = torch.zeros(3, dtype=dtype)
    ours = to_readtorch(tensor)
    ours.fill_(1)
    assert tensor.sum() == 0
    assert (to_torch(ours) == 1).all()


def test_shared_storage_stays_shared():
    base = torch.arange(6.0)
    whole, part = to_readtorch([base, base[2:4]])
    whole.zero_()
    assert part.tolist() == [0.0, 0.0]


def test_nested_values_and_names_are_carried_over():
    ours = to_readtorch({"a": [torch.ones(2), (torch.float16, slice(torch.tensor(1), None))], "n": 3})
    assert ours["a"][1][0] is rt.float16 and isinstance(ours["a"][1][1].start, rt.Tensor) and ours["n"] == 3


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (torch.ones(3), torch.ones(2)),
        (torch.ones(3), torch.ones(3, dtype=torch.float64)),
        (torch.ones(3), torch.ones(3) + 1e-4),
        (torch.ones(3), torch.ones(3, requires_grad=True)),
        ([torch.ones(3)], (torch.ones(3),)),
        ({"a": 1}, {"a": 2}),
        (1, 1.0),
        (torch.tensor([float("nan")]), torch.tensor([0.0])),
    ],
    ids=["shape", "dtype", "value", "requires_grad", "container", "dict", "number type", "nan"],
)
def test_differences_are_noticed(ours, theirs):
    with pytest.raises(AssertionError):
        assert_close(to_readtorch(ours), theirs)


def test_strides_of_length_one_do_not_count():
    assert same_strides(to_readtorch(torch.ones(3, 1).t()), torch.ones(1, 3))
    assert not same_strides(to_readtorch(torch.ones(3, 2)), torch.ones(2, 3).t())


def different(on_torch, on_readtorch):
    """A function that does something else on each side."""
    return lambda T, *args: on_torch(*args) if T is torch else on_readtorch(*args)


@pytest.mark.skipif(rt.__name__ == "torch", reason="needs two different implementations")
@pytest.mark.parametrize(
    "fn",
    [
        different(lambda a: a + 1, lambda a: a + 2),
        different(lambda a: a * a, lambda a: a.pow(2)),
        different(lambda a: a.t(), lambda a: a.t().clone()),
        different(lambda a: a.t().clone(), lambda a: a.t().contiguous()),
        different(lambda a: a + a.detach(), lambda a: a + a),
        different(lambda a: 1 / 0, lambda a: a),
        different(lambda a: a.view(7), lambda a: a.sum(9)),
        different(lambda a: a + 1, lambda a: a.sum(9)),
        different(lambda a: a.detach().zero_() * 0, lambda a: a.detach() * 0),
    ],
    ids=["value", "grad_fn", "alias", "strides", "gradient", "no error", "error type", "error", "changed"],
)
def test_both_notices(fn):
    with pytest.raises(AssertionError):
        both(fn, torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_())


@given(tensor_lists(2, layouts=("contiguous", "permuted", "sliced"), requires_grad=True))
def test_both_passes_what_agrees(pair):
    both(lambda T, a, b: T.add(a, b, alpha=2), *pair)
