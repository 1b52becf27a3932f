"""The same model in both libraries, and the same program exported by both."""

import functools
import inspect

import numpy as np
import torch

import readtorch as rt
import readtorch.export
from readtorch.utils import _pytree
from tests.dynamo import models

MODELS = (
    "linear mlp GELU softmax conv1 convT res bn gn in ln rms pool up drop emb bag lstmcell mha kv moe lm vae dict wn dense bilinear wnorm ce nll cos"
).split()
RANDOM = {"vae"}  # draws numbers when it is called


@functools.cache
def models_of_torch():
    """tests/dynamo/models.py, written for torch."""
    namespace = {"__name__": models.__name__}
    exec(inspect.getsource(models).replace("readtorch", "torch"), namespace)
    return namespace["MODELS"]


def to_torch(value, seen=None):
    """A tensor, or containers of them, in torch; of one tensor always the same one."""
    seen = {} if seen is None else seen

    def twin(t):
        if not isinstance(t, rt.Tensor):
            return t
        return seen.setdefault(id(t), torch.from_numpy(np.array(t.detach().numpy())).requires_grad_(t.requires_grad))

    return _pytree.tree_map(twin, value)


def copy_state(ours, theirs):
    """Give `theirs` the numbers of `ours`."""
    with torch.no_grad():
        for mine, yours in ((ours.parameters, theirs.parameters), (ours.buffers, theirs.buffers)):
            for a, b in zip(mine(), yours(), strict=True):
                b.copy_(to_torch(a))


@functools.cache
def exported(name, train=False):
    """(our program, our arguments, torch's program, its arguments, torch's model)"""
    rt.manual_seed(0)
    model, arguments = models.MODELS[name]()
    twin, _ = models_of_torch()[name]()
    model.train(train), twin.train(train)
    copy_state(model, twin)
    arguments_of_torch = to_torch(arguments)
    ours, theirs = rt.export.export(model, arguments), torch.export.export(twin, arguments_of_torch)
    return ours, arguments, theirs, arguments_of_torch, twin


@functools.cache
def decomposed(name, train=False):
    """Both programs, decomposed."""
    ours, _, theirs, *_ = exported(name, train)
    return ours.run_decompositions(), theirs.run_decompositions()


def operators(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


def numbers(value):
    """The leaves of a result as arrays."""
    leaves = _pytree.tree_leaves(value) if not isinstance(value, torch.Tensor) else [value]
    leaves = [leaf for leaf in leaves for leaf in (torch.utils._pytree.tree_leaves(leaf) if leaf is not None else [])]
    return [leaf.detach().numpy() if hasattr(leaf, "detach") else leaf for leaf in leaves]


def same(ours, theirs):
    ours, theirs = numbers(ours), numbers(theirs)
    assert len(ours) == len(theirs)
    for a, b in zip(ours, theirs):
        if isinstance(b, str):
            assert a == b
        else:
            np.testing.assert_allclose(a, b, atol=1e-5, rtol=1e-4)
