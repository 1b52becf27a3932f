"""Answers about graphs of FX."""

import pytest
import torch
from torch import fx
from torch.fx.experimental.proxy_tensor import make_fx


def test_why_does_torch_fx_refuse_an_if():
    def branch(x, flag=None):
        return x if (x.sum() > 0 if flag is None else flag) else -x

    with pytest.raises(fx.proxy.TraceError, match="cannot be used as inputs to control flow"):
        fx.symbolic_trace(lambda x: branch(x))
    given = fx.symbolic_trace(branch, concrete_args={"flag": False})
    assert given(torch.ones(1), False).tolist() == [-1]
    chosen = fx.symbolic_trace(lambda x: torch.where(x.sum() > 0, x, -x))
    assert chosen(-torch.ones(1)).tolist() == [1]


def test_what_is_the_difference_between_symbolic_trace_and_make_fx():
    def program(x):
        return torch.autograd.grad(torch.nn.functional.linear(x, x).sum(), x)[0]

    def kinds(graph_module):
        return [str(node.target) for node in graph_module.graph.nodes if node.op == "call_function"]

    assert kinds(fx.symbolic_trace(lambda x: torch.nn.functional.linear(x, x)))[0].startswith(
        "<built-in function linear"
    )
    recorded = kinds(make_fx(program)(torch.ones(2, 2, requires_grad=True)))
    assert "aten.ones_like.default" in recorded and "aten.linear.default" not in recorded


def test_why_is_my_program_wrong_after_eliminate_dead_code():
    def program(x):
        x.add_(1)
        return x

    def after(*impure):
        traced = fx.symbolic_trace(program)
        traced.graph.eliminate_dead_code(*impure)
        traced.recompile()
        return traced(torch.zeros(1)).item()

    assert program(torch.zeros(1)).item() == 1 and after() == 0
    assert after(lambda node: node.is_impure() or str(node.target).endswith("_")) == 1
    functional = make_fx(torch.func.functionalize(program))(torch.zeros(1))
    functional.graph.eliminate_dead_code()
    functional.recompile()
    assert functional(torch.zeros(1)).item() == 1
