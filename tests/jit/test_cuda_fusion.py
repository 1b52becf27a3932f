"""The CUDA form of a fused kernel, run by the kernel simulator."""

import functools

import numpy as np
import pytest
import torch

import readtorch
from readtorch.c10.cuda import simulator
from readtorch.c10.cuda.launch import launching_by
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  the first makes the tracer's kernels
from readtorch.csrc.jit.passes.tensorexpr_fuser import FuseTensorExprs, groups_of
from readtorch.csrc.jit.tensorexpr.cuda_codegen import cuda_source, run_on_cuda
from readtorch.csrc.jit.tensorexpr.kernel import kernel_of
from readtorch.csrc.jit.tensorexpr.loop_nest import LoopNest, Profile, Unfusable
from tests.jit import fused_programs as programs


def nest_of(program, *operands):
    graph, _ = tracer.trace(functools.partial(program, readtorch), operands)
    FuseTensorExprs(graph)
    kernel = kernel_of(groups_of(graph)[0])
    return LoopNest(kernel.graph, Profile(kernel.graph, operands))


@pytest.mark.parametrize(
    "program, shapes",
    [(programs.chain, ((300,), (300,))), (programs.chain, ((5, 8), ())), (programs.masks, ((300,), (300,)))],
)
def test_the_same_text_on_the_simulator(program, shapes):
    operands = [readtorch.randn(*shape) for shape in shapes]
    nest = nest_of(program, *operands)
    with launching_by(simulator.check):
        results = run_on_cuda(nest, [x.numpy() for x in operands])
    expected = program(torch, *[torch.tensor(x.numpy()) for x in operands])
    for mine, theirs in zip(results, expected if isinstance(expected, tuple) else (expected,)):
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=2e-5, atol=2e-6)


def test_the_assignments_are_those_of_the_cpu_kernel():
    nest = nest_of(programs.chain, readtorch.randn(3), readtorch.randn(3))
    text = cuda_source(nest, set())
    assert "cuda.gridsize(1)" in text and all(f"{a.target} = {a.text}" in text for a in nest.assignments)


def test_reductions_are_refused():
    nest = nest_of(lambda api, x: (x * 2 + 1).sum(-1), readtorch.randn(3, 4))
    with pytest.raises(Unfusable, match="reductions"):
        cuda_source(nest, set())
