"""Normalization over batches, layers, groups and single images.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset14.py`, `symbolic_opset17.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    dim_size,
    dtype,
    is_none,
    parse_arg,
    parse_args,
    rank,
    reshape,
    shape_of,
    unsupported,
)

from .reduction import reduced


def _channels(g, self, value, fill):
    """`value`, or as many times `fill` as there are channels."""
    if not is_none(value):
        return value
    count = dim_size(self, 1)
    if count is None:
        raise unsupported("normalization without weights of an unknown number of channels", self)
    return g.constant(readtorch.full([count], fill, dtype=dtype(self)))


@onnx_symbolic("aten::batch_norm")
@parse_args("v", "v", "v", "v", "v", "b", "f", "f", "none")
def batch_norm(g, input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """ONNX's momentum is the part that stays, PyTorch's the part that is new."""
    parameters = [
        _channels(g, input, value, fill)
        for value, fill in ((weight, 1.0), (bias, 0.0), (running_mean, 0.0), (running_var, 1.0))
    ]
    results = g.op(
        "BatchNormalization",
        input,
        *parameters,
        epsilon_f=eps,
        momentum_f=1 - momentum,
        training_mode_i=int(training),
        outputs=3 if training else 1,
    )
    return results[0] if training else results


@onnx_symbolic("aten::_native_batch_norm_legit_no_training")
def native_batch_norm_legit_no_training(g, input, weight, bias, running_mean, running_var, momentum, eps):
    """What `batch_norm` is in a graph without writes. Its other two results are for a backward."""
    statistics = running_mean, running_var
    return batch_norm(g, input, weight, bias, *statistics, False, momentum, eps, None), None, None


@onnx_symbolic("aten::layer_norm", opset=17)
@parse_args("v", "is", "v", "v", "f", "none")
def layer_norm(g, input, normalized_shape, weight, bias, eps, cudnn_enable):
    """ONNX has a node for it since version 17; the scale must be there."""
    if is_none(weight):
        weight = g.constant(readtorch.ones(normalized_shape, dtype=dtype(input)))
    values = [input, weight] if is_none(bias) else [input, weight, bias]
    return g.op("LayerNormalization", *values, axis_i=-len(normalized_shape), epsilon_f=eps)


@onnx_symbolic("aten::layer_norm")
@parse_args("v", "is", "v", "v", "f", "none")
def layer_norm_before_17(g, input, normalized_shape, weight, bias, eps, cudnn_enable):
    axes = list(range(-len(normalized_shape), 0))
    centred = g.op("Sub", input, reduced(g, "ReduceMean", input, axes, True))
    variance = reduced(g, "ReduceMean", g.op("Pow", centred, 2.0), axes, True)
    result = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, eps)))
    result = result if is_none(weight) else g.op("Mul", result, weight)
    return result if is_none(bias) else g.op("Add", result, bias)


@onnx_symbolic("aten::instance_norm")
@parse_args("v", "v", "v", "v", "v", "b", "f", "f", "none")
def instance_norm(g, input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    if not use_input_stats:
        return g.op(
            "BatchNormalization",
            input,
            _channels(g, input, weight, 1.0),
            _channels(g, input, bias, 0.0),
            running_mean,
            running_var,
            epsilon_f=eps,
        )
    return g.op(
        "InstanceNormalization", input, _channels(g, input, weight, 1.0), _channels(g, input, bias, 0.0), epsilon_f=eps
    )


@onnx_symbolic("aten::group_norm")
@parse_args("v", "i", "v", "v", "f", "none")
def group_norm(g, input, num_groups, weight, bias, eps, cudnn_enabled):
    """The groups as channels of an instance norm; then the weights, one a channel."""
    grouped = reshape(g, input, [0, num_groups, -1])
    ones = g.constant(readtorch.ones(num_groups, dtype=dtype(input)))
    zeros = g.constant(readtorch.zeros(num_groups, dtype=dtype(input)))
    result = reshape(g, g.op("InstanceNormalization", grouped, ones, zeros, epsilon_f=eps), shape_of(g, input))
    for operator, parameter in (("Mul", weight), ("Add", bias)):
        if not is_none(parameter):
            axes = list(range(1, rank(input) - 1))
            column = parameter if not axes else g.op("Unsqueeze", parameter, axes)
            result = g.op(operator, result, column)
    return result


@onnx_symbolic("aten::rms_norm")
@parse_args("v", "is", "v", "v")
def rms_norm(g, input, normalized_shape, weight, eps):
    axes = list(range(-len(normalized_shape), 0))
    eps = readtorch.finfo(dtype(input)).eps if eps is None else parse_arg(eps, "f")
    square = reduced(g, "ReduceMean", g.op("Mul", input, input), axes, True)
    result = g.op("Div", input, g.op("Sqrt", g.op("Add", square, eps)))
    return result if weight is None else g.op("Mul", result, weight)
