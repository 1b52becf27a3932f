"""Names and parameters are PyTorch's."""

import inspect

import pytest
import torch
import torch.distributed as reference
from torch.distributed.algorithms import join as reference_join

import readtorch
from readtorch import distributed as dist
from readtorch.distributed.algorithms import join

FUNCTIONS = [
    name
    for name in dir(dist)
    if inspect.isfunction(getattr(dist, name))
    and inspect.isfunction(getattr(reference, name, None))  # not those in C++
]
OURS_IS_SHORTER = {"init_process_group"}  # `_ranks`, for PyTorch's own use


def parameters(function):
    return [
        (p.name, p.default if p.default is not dist.ReduceOp.SUM and p.default is not reference.ReduceOp.SUM else "SUM")
        for p in inspect.signature(function).parameters.values()
        if p.name != "_ranks"
    ]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    assert parameters(getattr(dist, name)) == parameters(getattr(reference, name))


def test_there_are_many():
    assert len(FUNCTIONS) > 50


@pytest.mark.parametrize(
    "ours, theirs",
    [
        (join.Join.__init__, reference_join.Join.__init__),
        (dist.P2POp.__init__, reference.P2POp.__init__),
        (readtorch.nn.SyncBatchNorm.__init__, torch.nn.SyncBatchNorm.__init__),
        (readtorch.nn.SyncBatchNorm.convert_sync_batchnorm, torch.nn.SyncBatchNorm.convert_sync_batchnorm),
        (readtorch.nn.parallel.DistributedDataParallel.join, torch.nn.parallel.DistributedDataParallel.join),
        (
            readtorch.nn.parallel.DistributedDataParallel.register_comm_hook,
            torch.nn.parallel.DistributedDataParallel.register_comm_hook,
        ),
    ],
)
def test_methods(ours, theirs):
    assert parameters(ours) == parameters(theirs)


def test_data_parallel_takes_the_same_in_the_same_order():
    """As far as positions go; what ours lacks is said in its docstring."""
    ours = [p for p in inspect.signature(readtorch.nn.parallel.DistributedDataParallel.__init__).parameters.values()]
    theirs = inspect.signature(torch.nn.parallel.DistributedDataParallel.__init__).parameters
    by_position = [p.name for p in ours if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert by_position == list(theirs)[: len(by_position)]
    assert all(p.name in theirs and p.default == theirs[p.name].default for p in ours[1:])


@pytest.mark.parametrize("cls", ["Store", "HashStore", "FileStore", "TCPStore", "PrefixStore", "Work", "GradBucket"])
def test_methods_of_classes(cls):
    """Every public one of PyTorch's that is not only for C++ or deprecated."""
    theirs = {n for n in dir(getattr(reference, cls)) if not n.startswith("_")}
    absent = theirs - set(dir(getattr(dist, cls))) - INSTANCE
    assert absent <= {"barrier", "block_current_stream", "boxed", "unbox", "get_future_result"}


INSTANCE = {
    "timeout",
    "host",
    "port",
    "libuvBackend",
    "path",
    "underlying_store",
}  # attributes of an object, not of the class


def test_errors_form_the_same_tree():
    for name in ("DistError", "DistBackendError", "DistNetworkError", "DistStoreError", "QueueEmptyError"):
        ours, theirs = getattr(dist, name), getattr(reference, name)
        assert [c.__name__ for c in ours.__mro__] == [c.__name__ for c in theirs.__mro__]


def test_reduce_ops():
    for name in ("SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR", "BXOR", "PREMUL_SUM"):
        ours, theirs = getattr(dist.ReduceOp, name), getattr(reference.ReduceOp, name)
        assert (repr(ours), str(ours), int(ours)) == (repr(theirs), str(theirs), int(theirs))
        assert ours == getattr(dist.ReduceOp.RedOpType, name)
