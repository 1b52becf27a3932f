"""Folds a batch norm into the convolution before it.

    before                                                           after
    %y = aten::_convolution(%x, %w, %b, …)                           %z = aten::_convolution(%x, %w', %b', …)
    %z = aten::batch_norm(%y, %gamma, %beta, %mean, %var, %no, …)

    w' = w * gamma / sqrt(var + eps)          b' = (b - mean) * gamma / sqrt(var + eps) + beta

In PyTorch: `torch/csrc/jit/passes/frozen_conv_folding.cpp` (`FoldFrozenConvBatchnorm`). Explained in the chapter "JIT: scripting".
"""

from readtorch.aten.functions import at

_CONVOLUTIONS = {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::convolution", "aten::_convolution"}


def FoldFrozenConvBatchnorm(graph):
    """In graphs of frozen modules, where weights and statistics are constants. Returns whether one was
    found.
    """
    changed = False
    for node in graph.all_nodes():
        if node.kind() == "aten::batch_norm" and node.input(0).node().kind() in _CONVOLUTIONS:
            changed |= _fold(graph, node.input(0).node(), node)
    return changed


def _fold(graph, convolution, norm):
    parameters = [convolution.input(1), convolution.input(2), *norm.inputs()[1:8]]
    if not all(v.isConstant() for v in parameters) or len(convolution.output().uses()) > 1:
        return False
    weight, bias, gamma, beta, mean, variance, training, momentum, epsilon = (v.toIValue() for v in parameters)
    transposed = len(convolution.inputs()) > 6 and convolution.input(6).toIValue() is True
    if training or mean is None or variance is None or transposed:
        return False
    factor = at.rsqrt(variance + epsilon)
    factor = factor if gamma is None else factor * gamma
    new_bias = ((at.zeros_like(mean) if bias is None else bias) - mean) * factor + (0 if beta is None else beta)
    new_weight = weight * factor.reshape((-1,) + (1,) * (weight.dim() - 1))
    with graph.insert_point_guard(convolution):
        for i, value in ((1, new_weight), (2, new_bias)):
            constant = graph.insertConstant(value.detach())
            constant.setDebugName(f"{convolution.input(i).debugNameBase()}_fused_bn")
            convolution.replaceInput(i, constant)
    norm.output().replaceAllUsesWith(convolution.output())
    norm.destroy()
    return True
