"""Pickles and deep copies of tensors: values, strides, shared storage, flags."""

import copy
import io
import pickle

import pytest
import torch
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


@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_views_of_one_storage_share_it_in_a_copy_and_not_in_a_pickle():
    def program(T, show):
        for dtype in (T.float32, T.bfloat16, T.bool, T.complex64):
            x = T.arange(6).to(dtype)
            for pair in ((x, x.view(2, 3)), (x, x), (x.storage(), x.storage()), (x.storage(), x), (x, x.detach())):
                for one, other in (pickle.loads(pickle.dumps(pair)), copy.deepcopy(pair)):
                    show(one is other, one.data_ptr() == other.data_ptr(), one.data_ptr() == x.data_ptr())
        net = T.nn.Linear(2, 2)
        net.tied = net.weight
        back = pickle.loads(pickle.dumps(net))
        show(back.tied is back.weight)

    same(program)


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


@pytest.mark.parametrize(
    "value", [readtorch.float32, readtorch.device("cpu"), readtorch.Size([2, 3]), readtorch.strided]
)
def test_small_objects_pickle(value):
    back = pickle.loads(pickle.dumps(value))
    assert back == value or repr(back) == repr(value)


def test_named_results_pickle_and_are_made_as_in_pytorch():
    def program(T, show):
        x = T.arange(6.0).reshape(2, 3)
        for made in (x.max(0), x.sort(), T.linalg.lu(x), T.linalg.slogdet(T.eye(2))):
            for protocol in (2, 5):
                back = pickle.loads(pickle.dumps(made, protocol))
                show(type(back) is type(made), back, made.__reduce__()[1])
            show(type(made) is getattr(T.return_types, type(made).__name__), type(made).__module__.split(".")[-1])
        show(made.n_fields, made.n_sequence_fields, made.n_unnamed_fields)
        for arguments in (((1, 2),), ([1, 2],), (iter("ab"),), ((1, 2), {}), ((1, 2), {"a": 3})):
            show(T.return_types.max(*arguments))
        show(T.return_types.max(sequence=(1, 2)), T.return_types.max((1, 2), dict={}))
        for arguments in ((), (5,), ((1,),), ((1, 2, 3),)):
            show.error(lambda: T.return_types.max(*arguments))

    same(program)


def test_return_types_is_a_module():
    import readtorch.return_types as ours

    assert set(ours.__all__) <= set(torch.return_types.__all__)
    assert b"readtorch.return_types" in pickle.dumps(readtorch.ones(2).max(0))
    file = io.BytesIO()
    readtorch.save(readtorch.tensor([3.0, 1.0]).sort(), file)
    theirs = torch.load(io.BytesIO(file.getvalue()), weights_only=False)
    assert type(theirs) is torch.return_types.sort and theirs.indices.tolist() == [1, 0]
    assert type(readtorch.load(io.BytesIO(file.getvalue()), weights_only=False)) is ours.sort
