"""Freezing, forks, and execution with and without optimisation."""

import warnings

import pytest
import torch

import readtorch as rt
import readtorch.jit
from readtorch.csrc.jit.ir import parse_ir
from readtorch.csrc.jit.runtime.graph_executor import GraphExecutor


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def kinds(graph):
    return [n.kind() for n in graph.all_nodes() if n.kind() != "prim::Constant"]


def block(library):
    nn = library.nn
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 2))


def test_freeze_folds_attributes_and_batch_norm():
    theirs = block(torch).eval()
    frozen_there = torch.jit.freeze(torch.jit.trace(theirs, torch.randn(1, 3, 5, 5)))
    model, x = block(rt).eval(), rt.randn(1, 3, 5, 5)
    model[1].running_mean.copy_(rt.randn(4))
    model[1].running_var.copy_(rt.rand(4) + 0.5)
    frozen = rt.jit.freeze(rt.jit.trace(model, x))
    frozen.graph.lint()
    assert "prim::GetAttr" not in kinds(frozen.graph) and "aten::batch_norm" not in kinds(frozen.graph)
    assert kinds(frozen.graph) == [n.kind() for n in frozen_there.graph.nodes() if n.kind() != "prim::Constant"]
    assert rt.allclose(frozen(x), model(x), atol=1e-5)
    assert list(frozen.parameters()) == [] == list(frozen_there.parameters())
    model[4].weight.data.zero_()
    assert "prim::Constant" in [n.kind() for n in frozen.graph.nodes()]


def test_freeze_wants_eval_and_a_script_module():
    for mod, message in (
        (rt.nn.Linear(1, 1), "Freezing expects a ScriptModule as input"),
        (rt.jit.trace(rt.nn.Linear(1, 1), rt.ones(1)), "only implemented for modules in eval mode"),
    ):
        with pytest.raises(RuntimeError, match=message):
            rt.jit.freeze(mod)


class Counter(rt.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", rt.zeros(1))
        self.register_buffer("scale", rt.ones(1) * 3)

    def forward(self, x):
        self.count.add_(1)
        return x * self.scale + self.count


def test_what_is_written_to_stays_an_attribute():
    frozen = rt.jit.freeze(rt.jit.trace(Counter().eval(), rt.ones(1), check_trace=False))
    assert kinds(frozen.graph).count("prim::GetAttr") == 1
    first, second = frozen(rt.zeros(1)), frozen(rt.zeros(1))
    assert (second - first).item() == 1


def test_preserved_attributes_stay():
    frozen = rt.jit.freeze(rt.jit.trace(Counter().eval(), rt.ones(1), check_trace=False), preserved_attrs=["scale"])
    assert frozen._c.getattr("scale").item() == 3
    with pytest.raises(ValueError, match="Unknown name: nothing"):
        rt.jit.freeze(rt.jit.trace(Counter().eval(), rt.ones(1), check_trace=False), preserved_attrs=["nothing"])


# ---------------------------------------------------------------------------------------------------------------- forks


def forks(library, x):
    y = x * 2
    future = library.jit.fork(lambda a: library.relu(a) + y, x)
    z = x.exp()
    return library.jit.wait(future) + z


def test_forks_are_traced_as_in_the_reference():
    theirs = torch.jit.trace(lambda x: forks(torch, x), torch.ones(2))
    ours = rt.jit.trace(lambda x: forks(rt, x), rt.ones(2))
    assert kinds(ours.graph) == [n.kind() for n in theirs.graph.nodes() if n.kind() != "prim::Constant"]
    inside = ours.graph.findNode("prim::fork").g("Subgraph")
    assert kinds(inside) == ["aten::relu", "aten::add"]
    assert rt.allclose(ours(rt.ones(2) * 3), forks(rt, rt.ones(2) * 3))
    text = str(ours.graph)
    assert str(parse_ir(text)) == text


def test_many_forks_inside_forks():
    text = """graph(%x : Tensor, %n : int):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
  %y : Tensor = prim::Loop(%n, %true, %x)
    block0(%i : int, %t : Tensor):
      %f : Future[Tensor] = prim::fork_0(%t)
      %w : Tensor = aten::wait(%f)
      -> (%true, %w)
  return (%y)
with prim::fork_0 = graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_1(%x)
  %w : Tensor = aten::wait(%f)
  return (%w)
with prim::fork_1 = graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %y : Tensor = aten::add(%x, %one, %one)
  return (%y)
"""
    assert GraphExecutor(parse_ir(text), "f").run([rt.zeros(1), 20])[0].item() == 20


def test_an_error_in_a_fork_arrives_where_it_is_waited_for():
    text = """graph(%x : Tensor):
  %f : Future[Tensor] = prim::fork_0(%x)
  %w : Tensor = aten::wait(%f)
  return (%w)
with prim::fork_0 = graph(%x : Tensor):
  %y : Tensor = aten::mm(%x, %x)
  return (%y)
"""
    with pytest.raises(RuntimeError, match="self must be a matrix"):
        GraphExecutor(parse_ir(text), "f").run([rt.zeros(1)])


# ------------------------------------------------------------------------------------------------------------- execution


def test_unoptimised_execution_runs_the_graph_as_it_is():
    trace = rt.jit.trace(lambda x: x.exp() + x.exp(), rt.ones(2))
    with rt.jit.optimized_execution(False):
        assert kinds(trace.graph_for(rt.ones(2))) == ["aten::exp", "aten::exp", "aten::add"]
    assert kinds(trace.graph_for(rt.ones(2))) != ["aten::exp", "aten::exp", "aten::add"]
    assert str(trace.graph).count("aten::exp") == 2


def test_code_lists_the_instructions():
    trace = rt.jit.trace(lambda x: x.relu() + 1, rt.ones(2))
    with rt.jit.optimized_execution(False):
        lines = str(trace.get_debug_state().plan().code).splitlines()
    assert [line.split()[1] for line in lines] == ["STORE", "MOVE", "OP", "LOADC", "LOADC", "OP", "RET"]


def test_the_traceback_leads_to_the_line():
    trace = rt.jit.trace(lambda x: rt.mm(x, x), rt.ones(2, 2))
    with pytest.raises(RuntimeError) as caught:
        trace(rt.ones(2, 3))
    message = str(caught.value)
    assert message.startswith(
        "The following operation failed in the TorchScript interpreter.\nTraceback of TorchScript (most "
        "recent call last):\n"
    )
    assert __file__ in message and "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)" in message


def test_a_raise_is_an_error_of_its_own():
    text = """graph(%x : Tensor):
  %m : str = prim::Constant[value="bad value"]()
  %c : str = prim::Constant[value="builtins.ValueError"]()
   = prim::RaiseException(%m, %c)
  return (%x)
"""
    with pytest.raises(rt.jit.Error, match="builtins.ValueError: bad value"):
        GraphExecutor(parse_ir(text), "f").run([rt.zeros(1)])
