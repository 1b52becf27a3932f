"""Models compiled by `aot_module`: results, gradients and buffers are eager's, with either partitioner."""

import copy

import pytest

import readtorch as rt
from readtorch._functorch.aot_autograd import aot_module
from readtorch._functorch.compilers import nop
from readtorch._functorch.partitioners import default_partition, min_cut_rematerialization_partition
from readtorch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from tests.dynamo.models import MODELS
from tests.functorch.test_aot_autograd import tensors_of

# In training these draw other numbers than eager, whose dropout is made of other operators: compared while they do not drop.
EVALUATED = {"drop", "drop2", "alpha", "lstm2", "enc"}
# What a graph cannot hold, in PyTorch neither: a branch on a tensor, sizes that depend on numbers.
REFUSED = {"exit": DataDependentOutputException, "ctc": DynamicOutputShapeException}
KEEPS_A_TENSOR = {"kv"}  # of its first call, for the next: a compiled function has no next call


def step(model, call, arguments):
    """(results, gradients, buffers) of one training step."""
    rt.manual_seed(1)
    results = tensors_of(rt, call(*arguments))
    loss = [r.sum() if r.dtype.is_floating_point else r.float().sum() for r in results]
    wanted = [value * (i + 1) for i, value in enumerate(loss) if value.requires_grad]
    if wanted:
        sum(wanted).backward()
    return results, [p.grad for p in model.parameters()], list(model.buffers())


def same(ours, eager):
    assert len(ours) == len(eager)
    for a, b in zip(ours, eager):
        assert (a is None) == (b is None)
        assert a is None or rt.allclose(a, b, atol=1e-5, rtol=1e-4, equal_nan=True)


@pytest.mark.parametrize("partition", [default_partition, min_cut_rematerialization_partition])
@pytest.mark.parametrize("name", [name for name in MODELS if name not in {*REFUSED, *KEEPS_A_TENSOR}])
def test_models(name, partition):
    rt.manual_seed(0)
    model, arguments = MODELS[name]()
    model.train(name not in EVALUATED)
    other = copy.deepcopy(model)
    compiled = aot_module(model, nop, partition_fn=partition)
    for _ in range(2):
        for ours, eager in zip(step(model, compiled, arguments), step(other, other, arguments)):
            same(ours, eager)


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    model, arguments = MODELS[name]()
    with pytest.raises(REFUSED[name]):
        aot_module(model, nop)(*arguments)


def test_there_are_fifty():
    assert len(MODELS) - len(REFUSED) >= 50
