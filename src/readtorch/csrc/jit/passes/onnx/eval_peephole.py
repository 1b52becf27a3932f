"""A batch norm in evaluation mode is folded into the convolution before it.

It multiplies each channel by a number and adds another, both known: so can the convolution's weight and bias.

    before                                                        after
    %2 = onnx::Conv(%x, %conv.weight)                             %3 = onnx::Conv(%x, %new_weight, %new_bias)
    %3 = onnx::BatchNormalization(%2, %w, %b, %mean, %var)

In PyTorch: `fuseConvBatchNorm` in `torch/csrc/jit/passes/onnx/eval_peephole.cpp`. Explained in the chapter
"export and ONNX".
"""

from readtorch.aten.functions import at
from readtorch.csrc.jit.ir.type import TensorType

from .peephole import eliminate_dead_nodes


def EvalPeephole(graph, initializers):
    """Fuses where the weights are initializers. New weights are new inputs at the end of the graph's."""
    for node in graph.nodes():
        if node.kind() == "onnx::BatchNormalization" and _fits(node, initializers):
            _fuse(graph, node, initializers)
    eliminate_dead_nodes(graph)


def _fits(norm, initializers):
    conv = norm.input(0).node()
    known = [v.debugName() in initializers for v in [*conv.inputs()[1:], *norm.inputs()[1:]]]
    return conv.kind() == "onnx::Conv" and len(norm.input(0).uses()) == 1 and norm.outputsSize() == 1 and all(known)


def _fuse(graph, norm, initializers):
    """Weight and bias as in `FoldFrozenConvBatchnorm`, which does the same to PyTorch's operators."""
    conv = norm.input(0).node()
    weight, *bias = (initializers[v.debugName()] for v in conv.inputs()[1:])
    gamma, beta, mean, variance = (initializers[v.debugName()] for v in norm.inputs()[1:])
    factor = gamma * at.rsqrt(variance + norm.f("epsilon"))
    shift = (bias[0] if bias else at.zeros_like(mean)) - mean
    fused = [weight * factor.reshape([-1] + [1] * (weight.dim() - 1)), shift * factor + beta]
    new = graph.create("onnx::Conv", [conv.input(0)]).copyAttributes(conv).copyMetadata(conv).insertBefore(norm)
    for tensor in fused:
        new.addInput(new_initializer(graph, initializers, tensor, "onnx::Conv"))
    new.output().setType(norm.output().type())
    norm.output().replaceAllUsesWith(new.output())


def new_initializer(graph, initializers, tensor, reader):
    """A new input of the graph whose value is `tensor`, called after the kind of node that reads it."""
    value = graph.addInput().setType(TensorType.create_from_tensor(tensor))
    value.setDebugName(f"{reader}_{value.unique()}")
    initializers[value.debugName()] = tensor
    return value
