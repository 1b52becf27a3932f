"""Indexing against the reference: every kind of index, assignment, the index_… and scatter families, masks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from tests.reference import both, to_readtorch

LONG = torch.tensor


def cube():
    return torch.arange(24.0).reshape(2, 3, 4).requires_grad_()


INDICES = {
    "int": 1,
    "negative": -1,
    "slice": slice(1, None),
    "step": slice(0, 2, 2),
    "all": slice(None),
    "empty": slice(5, None),
    "none": None,
    "ellipsis": ...,
    "true": True,
    "false": False,
    "tuple": (0, 1),
    "mixed": (0, slice(1, 3)),
    "ellipsis_int": (..., 1),
    "none_between": (0, None, slice(None), 2),
    "whole": (slice(None), slice(None)),
    "nothing": (),
    "list": [0, 1, 0],
    "numpy_int": np.int64(1),
    "tensor": LONG([1, 0]),
    "tensor_int": LONG(1),
    "tensor_2d": LONG([[0, 1], [1, 0]]),
    "int32": torch.tensor([1, 0], dtype=torch.int32),
    "mask": torch.tensor([True, False]),
    "mask_2d": torch.tensor([[True, False, True], [False, True, False]]),
    "mask_2d_int": (torch.tensor([[True, False, True], [False, True, False]]), 1),
    "adjacent": (slice(None), LONG([0, 1]), LONG([1, 2])),
    "apart": (LONG([0, 1]), slice(None), LONG([1, 2])),
    "int_and_tensor": (0, LONG([0, 2])),
    "bool_and_tensor": (True, LONG([1])),
    "range": range(2),
    "empty_list": [],
    "broadcast": (LONG([[0], [1]]), LONG([0, 2])),
    "negative_tensor": LONG([-1, -2]),
    "list_mask": [True, False],
}


@pytest.mark.parametrize("name", INDICES)
def test_getitem(name):
    both(lambda T, x, i: x[i], cube(), INDICES[name], grad=2)


@pytest.mark.parametrize("name", INDICES)
def test_setitem(name):
    def write(T, x, i):
        y = x * 1
        y[i] = 5.0
        return y

    both(write, cube(), INDICES[name])


@pytest.mark.parametrize("name", sorted(set(INDICES) - {"false", "empty"}))
def test_setitem_of_a_tensor(name):
    def write(T, x, i):
        y = x * 1
        y[i] = x[i] * 2
        return y

    both(write, cube(), INDICES[name])


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize(
    "index", [np.array([1, 0]), np.array([True, False]), (0, np.array([2, 1])), [np.array([0, 1])]], ids=str
)
def test_index_by_a_numpy_array(index):
    both(lambda T, x: x[index], cube())


def test_index_of_a_permuted_tensor_keeps_the_order_in_memory():
    both(lambda T, x: [x.permute(2, 0, 1)[:, [0, 1]], x.permute(2, 1, 0)[[0, 1]], x.mT[0, [1, 2]]], cube())


ERRORS = {
    "int": 5,
    "second": (0, 5),
    "too_many": (0, 0, 0, 0),
    "tensor": LONG([0, 7]),
    "mask": torch.tensor([True]),
    "float": 1.5,
    "float_tensor": torch.tensor([1.0]),
    "shapes": ([0, 1], [0, 1, 2]),
    "negative_step": slice(None, None, -1),
    "zero_step": slice(0, 1, 0),
}


@pytest.mark.parametrize("name", ERRORS)
def test_index_errors(name):
    both(lambda T, x, i: x[i], cube(), ERRORS[name])


@pytest.mark.parametrize("value", [1j, "a", None, [1.0], np.float32(1), torch.tensor([1.0, 2.0, 3.0])], ids=str)
def test_values_that_cannot_be_assigned(value):
    def write(T, x, v):
        x[0] = v

    both(write, torch.zeros(2, 4), value)


def test_index_of_a_number():
    for index in (0, slice(None)):
        both(lambda T, x: x[index], torch.tensor(1.0))
    both(lambda T, x: [x[None], x[...], x[True]], torch.tensor(1.0, requires_grad=True))


INDEX, SOURCE = LONG([2, 0, 2]), torch.arange(9.0).reshape(3, 3) + 0.5

FAMILY = {
    "index_select": lambda T, x, i, s: x.index_select(1, i),
    "index_add": lambda T, x, i, s: x.index_add(0, i, s, alpha=2),
    "index_copy": lambda T, x, i, s: x.index_copy(0, i[:2], s[:2]),
    "index_fill": lambda T, x, i, s: x.index_fill(1, i, 2.5),
    "index_put": lambda T, x, i, s: x.index_put((i,), s),
    "index_put_accumulate": lambda T, x, i, s: x.index_put((i, i), s[0], True),
    "gather": lambda T, x, i, s: x.gather(1, i.view(3, 1)),
    "gather_smaller": lambda T, x, i, s: x.gather(0, i[:2].view(1, 2)),
    "scatter_value": lambda T, x, i, s: x.scatter(1, i.view(3, 1), 1.5),
    "scatter": lambda T, x, i, s: x.scatter(0, i[:2].view(1, 2), s[:1, :2]),
    "scatter_add": lambda T, x, i, s: x.scatter_add(0, i.view(1, 3), s[:1]),
    "take": lambda T, x, i, s: x.take(i),
    "take_along_dim": lambda T, x, i, s: T.take_along_dim(x, i.view(1, 3), 0),
    "put": lambda T, x, i, s: x.put(i, s[0], True),
    "masked_fill": lambda T, x, i, s: x.masked_fill(s > 3, -1.0),
    "masked_select": lambda T, x, i, s: x.masked_select(s > 3),
    "masked_scatter": lambda T, x, i, s: x.masked_scatter(s > 3, s),
    "where": lambda T, x, i, s: T.where(s > 3, x, s),
    "where_number": lambda T, x, i, s: T.where(s > 3, x, 0),
    "where_method": lambda T, x, i, s: x.where(s > 3, s),
    "nonzero": lambda T, x, i, s: [
        T.nonzero(s > 3),
        *T.nonzero(s > 3, as_tuple=True),
        *T.where(s > 3),
        T.argwhere(s > 3),
    ],
    "one_hot": lambda T, x, i, s: T.nn.functional.one_hot(i, 4),
    **{
        f"scatter_reduce_{r}_{with_self}": lambda T, x, i, s, r=r, w=with_self: x.scatter_reduce(
            0, i.view(1, 3), s[:1], r, include_self=w
        )
        for r in ("sum", "prod", "mean", "amax", "amin")
        for with_self in (True, False)
    },
}


@pytest.mark.parametrize("name", FAMILY)
def test_family(name):
    both(
        FAMILY[name],
        (torch.arange(9.0) - 4).reshape(3, 3).requires_grad_(),
        INDEX,
        SOURCE.clone().requires_grad_(),
        versions=name != "one_hot",
    )


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_any_basic_index(data):
    """Ints, slices, None and Ellipsis in any order agree with NumPy as well as with the reference."""
    shape = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    part = st.one_of(
        st.integers(0, 0),
        st.none(),
        st.builds(slice, st.none() | st.integers(-3, 3), st.none() | st.integers(-3, 3), st.sampled_from([None, 1, 2])),
    )
    index = data.draw(st.lists(part, max_size=len(shape)))
    if data.draw(st.booleans()):
        index.insert(data.draw(st.integers(0, len(index))), ...)
    x = torch.arange(float(np.prod(shape))).reshape(shape).requires_grad_()
    ours, _ = both(lambda T, x: x[tuple(index)], x)
    assert np.array_equal(ours.detach().numpy(), x.detach().numpy()[tuple(index)])


def test_an_index_and_a_mask_from_the_other_library():
    x = to_readtorch(cube().detach())
    assert x[np.array([1])].tolist() == x[[1]].tolist() == x[rt.tensor([1])].tolist()


WRITTEN_COPIES = {
    "index_add": lambda x, i, source, mask: x.index_add(0, i, source),
    "index_copy": lambda x, i, source, mask: x.index_copy(0, i, source),
    "index_reduce": lambda x, i, source, mask: x.index_reduce(0, i, source, "prod"),
    "index_fill": lambda x, i, source, mask: x.index_fill(0, i, 1.0),
    "index_put": lambda x, i, source, mask: x.index_put((i,), source),
    "put": lambda x, i, source, mask: x.put(i, source[0, :2]),
    "scatter": lambda x, i, source, mask: x.scatter(0, i.reshape(2, 1), source),
    "scatter of a number": lambda x, i, source, mask: x.scatter(0, i.reshape(2, 1), 1.0),
    "scatter_add": lambda x, i, source, mask: x.scatter_add(0, i.reshape(2, 1), source),
    "scatter_reduce": lambda x, i, source, mask: x.scatter_reduce(0, i.reshape(2, 1), source, "amax"),
    "masked_fill": lambda x, i, source, mask: x.masked_fill(mask, 0.0),
    "masked_fill by rows": lambda x, i, source, mask: x.masked_fill(mask[0], 0.0),
    "masked_scatter": lambda x, i, source, mask: x.masked_scatter(mask, x),
}


@pytest.mark.parametrize("name", WRITTEN_COPIES)
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_copies_lie_row_by_row_or_as_the_original(name, order):
    x = torch.arange(12.0).reshape(*[(3, 4)[d] for d in order]).permute(order)
    both(WRITTEN_COPIES[name], x, LONG([0, 2]), torch.arange(8.0).reshape(2, 4), x > 5)


def on_meta(T, *sizes, dtype="float32"):
    return T.empty(*sizes, dtype=getattr(T, dtype), device="meta")


def test_masks_cannot_index_on_meta_and_may_be_written_through():
    for T in (rt, torch):
        x, mask = on_meta(T, 3, 4), on_meta(T, 3, 4, dtype="bool")
        with pytest.raises(NotImplementedError, match="nonzero"):
            x[mask]
        assert x[T.tensor([True, False, True])].shape == (2, 4)  # one on the CPU has elements
        x[mask] = 1.0
        x[mask] = on_meta(T, 5)
        assert x[on_meta(T, 2, dtype="int64")].shape == (2, 4)


def test_packing_on_meta_takes_lengths_of_the_cpu():
    for T in (rt, torch):
        pack = T.nn.utils.rnn.pack_padded_sequence
        assert pack(on_meta(T, 3, 2, 2), T.tensor([3, 2])).data.shape == (5, 2)
        with pytest.raises(RuntimeError, match="got 1D meta Long tensor"):
            pack(on_meta(T, 3, 2, 2), on_meta(T, 2, dtype="int64"))


def test_indices_of_sparse_tensors_on_meta_are_not_read():
    for T in (rt, torch):
        with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
            T.sparse_coo_tensor([[0, 2]], [1.0, 2.0], device="meta")
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        x = on_meta(rt, 3).requires_grad_()
        x.gather(0, on_meta(rt, 2, dtype="int64"), sparse_grad=True).sum().backward()
