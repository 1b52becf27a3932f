"""Exported graphs are PyTorch's: the same operators in the same order, the same signature, the same results."""

import re

import pytest
import torch

import readtorch as rt
import readtorch.export
from readtorch.aten.tags import Tag
from readtorch.utils import _pytree

from .programs import PROGRAMS
from .twins import MODELS, RANDOM, copy_state, decomposed, exported, operators, same

# What is left of these after decomposition is not what PyTorch's decompositions leave, but core ATen, too.
NOT_CORE_IN_PYTORCH = {"aten._native_batch_norm_legit_functional.default", "aten.native_dropout.default"}


def text_of_code(program):
    """What a program prints, without where nodes come from."""
    lines = str(program).replace("readtorch", "torch").splitlines()
    return [line for line in lines if line.strip() and not line.lstrip().startswith("#")]


def exports(name):
    """(our program, torch's, our module, torch's, our inputs, torch's)"""
    (ours, *inputs), (theirs, *inputs_of_torch) = PROGRAMS[name](rt), PROGRAMS[name](torch)
    copy_state(ours, theirs)
    programs = rt.export.export(ours, *inputs), torch.export.export(theirs, *inputs_of_torch)
    return *programs, ours, theirs, inputs, inputs_of_torch


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", ["res", "bn", "drop", "lstmcell", "mha", "moe"])
def test_training_and_evaluation(name, train):
    ours, _, theirs, *_ = exported(name, train)
    assert operators(ours) == operators(theirs)
    assert str(ours.graph_signature) == str(theirs.graph_signature)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    ours, arguments, theirs, arguments_of_torch, twin = exported(name)
    assert operators(ours) == operators(theirs)
    assert str(ours.graph_signature) == str(theirs.graph_signature)
    assert text_of_code(ours) == text_of_code(theirs)
    assert list(ours.state_dict) == list(theirs.state_dict)
    if name not in RANDOM:
        same(ours.module()(*arguments), twin(*arguments_of_torch))


# In evaluation too, instance_norm writes to its statistics what they are.
WRITES_MORE = {"in"}


@pytest.mark.parametrize("name", [name for name in MODELS if name not in WRITES_MORE])
def test_decomposed_models(name):
    ours, theirs = decomposed(name)
    assert ours.dialect == theirs.dialect == "ATEN"
    kinds = [
        [(spec.kind.name, spec.target) for spec in program.graph_signature.input_specs] for program in (ours, theirs)
    ]
    assert kinds[0] == kinds[1]
    kinds = [[(spec.kind.name, spec.target) for spec in p.graph_signature.output_specs] for p in (ours, theirs)]
    assert kinds[0] == kinds[1]
    if name not in RANDOM:
        _, arguments, _, arguments_of_torch, twin = exported(name)
        same(ours.module()(*arguments), twin(*arguments_of_torch))


# Operators that stay in our graphs and that PyTorch takes apart further: it has decompositions of them, we have kernels.
LEFT_WHOLE = (
    "aten._embedding_bag_forward_only.default aten._safe_softmax.default aten._unsafe_view.default aten._weight_norm_interface.default "
    "aten.empty_like.default aten.lift_fresh_copy.default aten.ones_like.default aten.split.Tensor aten.unsafe_split.Tensor "
    "aten.zeros.default aten.isnan.default aten.norm.ScalarOpt_dim aten.new_empty.default aten.stack.default aten.ones.default "
    "aten.new_zeros.default aten.zeros_like.default aten.upsample_nearest2d.default aten.div_.Tensor aten.addmv.default aten.clamp_min.default "
    "aten.randn_like.default aten._trilinear.default aten.scalar_tensor.default aten.linalg_vector_norm.default aten._scaled_dot_product_flash_attention_for_cpu.default"
).split()


@pytest.mark.parametrize("name", MODELS)
def test_decomposed_models_are_core_aten(name):
    ours, _ = decomposed(name)
    for node in ours.graph.nodes:
        if isinstance(node.target, rt._ops.OpOverload) and Tag.core not in node.target.tags:
            assert str(node.target) in NOT_CORE_IN_PYTORCH.union(LEFT_WHOLE)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    ours, theirs, module, twin, (args, kwargs), (args_of_torch, kwargs_of_torch) = exports(name)
    assert text_of_code(ours) == text_of_code(theirs)
    assert str(ours.call_spec) == str(theirs.call_spec)
    for part in (
        lambda p: list(p.constants),
        lambda p: list(p.state_dict),
        lambda p: [e.fqn for e in p.module_call_graph],
    ):
        assert part(ours) == part(theirs)
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert ours.module().code == theirs.module().code
    assert ours.state_dict.keys() == theirs.state_dict.keys()
    runs = ours.module(), theirs.module()
    for _ in range(2):  # what is written to is written back
        same(runs[0](*args, **kwargs), runs[1](*args_of_torch, **kwargs_of_torch))
    same(list(module.buffers()), list(twin.buffers()))
    same(_pytree.tree_leaves(args), torch.utils._pytree.tree_leaves(args_of_torch))


@pytest.mark.parametrize("name", PROGRAMS)
def test_decomposed_programs(name):
    ours, theirs, module, twin, (args, kwargs), (args_of_torch, kwargs_of_torch) = exports(name)
    ours, theirs = ours.run_decompositions(), theirs.run_decompositions()
    kinds = [
        [(spec.kind.name, spec.target) for spec in (*p.graph_signature.input_specs, *p.graph_signature.output_specs)]
        for p in (ours, theirs)
    ]
    assert kinds[0] == kinds[1]
    assert [n.name for n in ours.graph.nodes if n.op == "placeholder"] == [
        n.name for n in theirs.graph.nodes if n.op == "placeholder"
    ]
    runs = ours.module(), theirs.module()
    for _ in range(2):
        same(runs[0](*args, **kwargs), runs[1](*args_of_torch, **kwargs_of_torch))
    same(list(module.buffers()), list(twin.buffers()))
    same(_pytree.tree_leaves(args), torch.utils._pytree.tree_leaves(args_of_torch))


def test_where_nodes_come_from():
    ours, *_ = exported("mlp")
    first = next(node for node in ours.graph.nodes if node.op == "call_function")
    assert list(first.meta["nn_module_stack"].values())[1][0] == "0"
    assert re.search(r"linear\.py\", line \d+, in forward", first.meta["stack_trace"])
    assert "in forward, code: return F.linear(input, self.weight, self.bias)" in str(ours)


def test_empty_table_of_decompositions():
    module, args, kwargs = PROGRAMS["counter"](rt)
    program = rt.export.export(module, args, kwargs).run_decompositions({})
    assert operators(program) == ["aten.add.Tensor", "aten.mul.Tensor"]
    linear = rt.export.export(rt.nn.Linear(2, 2), (rt.ones(1, 2),))
    table = rt.export.default_decompositions()
    table[rt.ops.aten.addmm.default] = lambda bias, a, b: a @ b + bias
    assert "aten.addmm.default" not in operators(linear.run_decompositions(table))
    assert "aten.addmm.default" in operators(linear.run_decompositions())
