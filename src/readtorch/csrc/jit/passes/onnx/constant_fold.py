"""Computes what depends on weights and constants alone: the file holds the results.

    before                                               after
    %2 = onnx::Transpose[perm=[1, 0]](%fc.weight)        %3 = onnx::MatMul(%x, %onnx::MatMul_7)
    %3 = onnx::MatMul(%x, %2)

In PyTorch: `torch/csrc/jit/passes/onnx/constant_fold.cpp`, which knows these operators too. Explained in the
chapter "export and ONNX".
"""

from readtorch.aten.functions import at
from readtorch.csrc.onnx import dtype_of_onnx_type

from .eval_peephole import new_initializer
from .peephole import eliminate_dead_nodes

FOLDED = {}


def ConstantFold(graph, initializers):
    """A node whose inputs are all known, with a weight among them, becomes a new initializer."""
    for node in graph.nodes():
        fold = FOLDED.get(node.kind())
        known = [_known(value, initializers) for value in node.inputs()]
        if fold is None or any(tensor is None for tensor in known):
            continue
        if not any(v.debugName() in initializers for v in node.inputs()):
            continue  # constants alone are small: whoever runs the model folds them
        tensor = fold(node, *known)
        reader = node.output().uses()[0].user.kind() if node.hasUses() else "onnx::Constant"
        new = new_initializer(graph, initializers, tensor.detach().contiguous(), reader)
        node.output().replaceAllUsesWith(new)
    eliminate_dead_nodes(graph)


def _known(value, initializers):
    if value.node().kind() == "onnx::Constant":
        return value.node().t("value")
    return initializers.get(value.debugName())


def folds(kind):
    """Decorator: `function(node, *tensors)` gives the value of a node of this kind."""

    def declare(function):
        FOLDED[f"onnx::{kind}"] = function
        return function

    return declare


@folds("Transpose")
def transpose(node, tensor):
    return tensor.permute(node.attribute("perm"))


@folds("Slice")
def slice_(node, tensor, starts, ends, axes, steps=None):
    steps = [1] * len(starts) if steps is None else steps.tolist()
    for start, end, axis, step in zip(starts.tolist(), ends.tolist(), axes.tolist(), steps):
        tensor = at.slice(tensor, axis, start, end, step)
    return tensor


@folds("Concat")
def concat(node, *tensors):
    return at.cat(list(tensors), node.i("axis"))


@folds("Unsqueeze")
def unsqueeze(node, tensor, axes):
    for axis in sorted(axes.tolist()):
        tensor = tensor.unsqueeze(axis)
    return tensor


@folds("Squeeze")
def squeeze(node, tensor, axes):
    return tensor.squeeze(tuple(axes.tolist()))


@folds("Cast")
def cast(node, tensor):
    return tensor.to(dtype_of_onnx_type[node.i("to")])


@folds("Reshape")
def reshape(node, tensor, shape):
    sizes = [tensor.shape[i] if n == 0 else n for i, n in enumerate(shape.tolist())]
    return tensor.reshape(sizes)


@folds("Gather")
def gather(node, tensor, index):
    axis = node.i("axis") if node.hasAttribute("axis") else 0
    return (
        tensor.select(axis, index.item())
        if index.dim() == 0
        else at.index_select(tensor, axis, index.reshape(-1)).reshape(
            [*tensor.shape[:axis], *index.shape, *tensor.shape[axis + 1 :]]
        )
    )


@folds("Add")
def add(node, a, b):
    return a + b


@folds("Sub")
def sub(node, a, b):
    return a - b


@folds("Mul")
def mul(node, a, b):
    return a * b


@folds("Div")
def div(node, a, b):
    return a / b if a.is_floating_point() else at.div(a, b, rounding_mode="trunc")


@folds("Mod")
def mod(node, a, b):
    return a % b


@folds("Sqrt")
def sqrt(node, tensor):
    return tensor.sqrt()


@folds("Neg")
def neg(node, tensor):
    return -tensor
