"""Programs compiled by "inductor": values and gradients are those of readtorch's and of PyTorch's own operators."""

import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch._inductor.compile_fx import recording
from tests.inductor.programs import PROGRAMS

MUST_FUSE = ("chain", "softmax", "layer_norm", "rms", "view across", "batch_norm")  # into one kernel for the forward


def as_list(outs):
    return list(outs) if isinstance(outs, tuple | list) else [outs]


def run(lib, function, arrays):
    """[values and gradients] as arrays."""
    tensors = [lib.tensor(a, requires_grad=True) for a in arrays]
    outs = as_list(function(*tensors))
    sum((out.double() * (k + 1)).sum() for k, out in enumerate(outs)).backward()
    return [x.detach().numpy() for x in outs] + [x.grad.numpy() for x in tensors if x.grad is not None]


def equal(ours, theirs, tolerance=2e-5):
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, atol=tolerance, rtol=1e-4)


def arrays_for(shapes, seed=0):
    generator = np.random.default_rng(seed)
    return [generator.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    function, shapes = PROGRAMS[name]
    arrays = arrays_for(shapes)
    compiled = rt.compile(lambda *xs: function(rt, *xs), dynamic=False)
    with recording() as graphs:
        ours = run(rt, compiled, arrays)
    equal(ours, run(rt, lambda *xs: function(rt, *xs), arrays))
    equal(ours, run(torch, lambda *xs: function(torch, *xs), arrays))
    equal(run(rt, compiled, arrays_for(shapes, 1)), run(torch, lambda *xs: function(torch, *xs), arrays_for(shapes, 1)))
    if name in MUST_FUSE:
        assert len(graphs[0].kernels) == 1
