"""Pickles and deep copies of tensors: values, strides, shared storage, flags."""
import copy
import pickle

import pytest
from hypothesis import given, settings

import readtorch
from tests.programs import same
from tests.reference import assert_close, tensors, to_readtorch


@settings(max_examples=60, deadline=None)
@given(tensors())
def test_a_pickle_brings_back_values_and_layout(theirs):
    ours = to_readtorch(theirs)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        back = pickle.loads(pickle.dumps(ours, protocol))
        assert_close(back, theirs)
        assert back.stride() == ours.stride() and back.storage_offset() == ours.storage_offset()


def test_views_of_one_storage_share_it_afterwards():
    x = readtorch.arange(6.0)
    for y, z in (pickle.loads(pickle.dumps((x, x[2:]))), copy.deepcopy((x, x[2:]))):
        y[3] = 10.0
        assert z[1].item() == 10.0
        assert y.data_ptr() != x.data_ptr()


def test_deepcopy_keeps_flags_gradients_and_attributes():
    def program(T, show):
        x = T.ones(2, requires_grad=True)
        (x * 2).sum().backward()
        x.note = ["kept"]
        y = copy.deepcopy(x)
        show(y, y.grad, y.grad is x.grad, y.note, y.note is x.note, y.is_leaf)
        p = copy.deepcopy(T.nn.Parameter(T.ones(1)))
        show(type(p).__name__, p.requires_grad)
        show.error(lambda: copy.deepcopy(x * 2))
    same(program)


@pytest.mark.parametrize("value", [readtorch.float32, readtorch.device("cpu"), readtorch.Size([2, 3]), readtorch.strided])
def test_small_objects_pickle(value):
    back = pickle.loads(pickle.dumps(value))
    assert back == value or repr(back) == repr(value)
