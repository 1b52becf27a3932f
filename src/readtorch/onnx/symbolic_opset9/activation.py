"""Activation functions.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset12.py`, `symbolic_opset13.py`, `symbolic_opset20.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, dtype_from_number, parse_arg, parse_args, rank, unsqueeze

SQRT_HALF = 0.7071067811865476


@onnx_symbolic("aten::gelu", opset=20)
@parse_args("v", "s")
def gelu(g, self, approximate="none"):
    return g.op("Gelu", self, approximate_s=approximate)


@onnx_symbolic("aten::gelu")
@parse_args("v", "s")
def gelu_before_20(g, self, approximate="none"):
    """`x/2 · (1 + erf(x/√2))`, or with a tanh that comes near it."""
    if approximate == "tanh":
        cube = g.op("Mul", g.op("Mul", g.op("Mul", self, self), self), 0.044715)
        inner = g.op("Tanh", g.op("Mul", g.op("Add", self, cube), 0.7978845608028654))
    else:
        inner = g.op("Erf", g.op("Mul", self, SQRT_HALF))
    return g.op("Mul", g.op("Mul", self, g.op("Add", inner, 1)), 0.5)


@onnx_symbolic("aten::silu")
def silu(g, self):
    return g.op("Mul", self, g.op("Sigmoid", self))


@onnx_symbolic("aten::mish")
def mish(g, self):
    return g.op("Mul", self, g.op("Tanh", g.op("Softplus", self)))


@onnx_symbolic("aten::leaky_relu")
@parse_args("v", "f")
def leaky_relu(g, self, negative_slope):
    return g.op("LeakyRelu", self, alpha_f=negative_slope)


@onnx_symbolic("aten::relu6")
def relu6(g, self):
    return g.op("Clip", self, 0, 6)


@onnx_symbolic("aten::hardtanh")
def hardtanh(g, self, min_val, max_val):
    return g.op("Clip", self, cast(g, min_val, g.result_dtype), cast(g, max_val, g.result_dtype))


@onnx_symbolic("aten::prelu")
def prelu(g, self, weight):
    """One slope a channel: as a column, it meets the second dimension."""
    axes = list(range(1, rank(self) - 1))
    return g.op("PRelu", self, unsqueeze(g, weight, axes) if axes else weight)


@onnx_symbolic("aten::elu")
@parse_args("v", "f", "f", "f")
def elu(g, self, alpha, scale, input_scale):
    """ONNX has no scales: SELU, which needs them, has a node of its own."""
    inner = self if input_scale == 1 else g.op("Mul", self, input_scale)
    if input_scale != 1:  # only the negative side is scaled inside
        result = g.op("Where", g.op("Greater", self, 0), self, g.op("Elu", inner, alpha_f=alpha))
    else:
        result = g.op("Elu", inner, alpha_f=alpha)
    return result if scale == 1 else g.op("Mul", result, scale)


@onnx_symbolic("aten::celu")
@parse_args("v", "f")
def celu(g, self, alpha):
    return g.op("Celu", self, alpha_f=alpha)


@onnx_symbolic("aten::selu")
def selu(g, self):
    return g.op("Selu", self)


@onnx_symbolic("aten::softplus")
@parse_args("v", "f", "f")
def softplus(g, self, beta, threshold):
    """Above the threshold PyTorch gives x itself, which is what the function is there."""
    if beta == 1:
        return g.op("Softplus", self)
    return g.op("Div", g.op("Softplus", g.op("Mul", self, beta)), beta)


@onnx_symbolic("aten::hardsigmoid")
def hardsigmoid(g, self):
    return g.op("HardSigmoid", self, alpha_f=1 / 6)


@onnx_symbolic("aten::hardswish")
def hardswish(g, self):
    return g.op("HardSwish", self) if g.opset >= 14 else g.op("Mul", self, hardsigmoid(g, self))


@onnx_symbolic("aten::hardshrink")
@parse_args("v", "f")
def hardshrink(g, self, lambd):
    return g.op("Shrink", self, lambd_f=lambd, bias_f=0.0)


@onnx_symbolic("aten::softshrink")
@parse_args("v", "f")
def softshrink(g, self, lambd):
    return g.op("Shrink", self, lambd_f=lambd, bias_f=lambd)


@onnx_symbolic("aten::log_sigmoid")
def log_sigmoid(g, self):
    return g.op("Log", g.op("Sigmoid", self))


@onnx_symbolic("aten::threshold")
@parse_args("v", "f", "f")
def threshold(g, self, threshold, value):
    return g.op("Where", g.op("Greater", self, threshold), self, g.constant(value, g.result_dtype))


@onnx_symbolic("aten::glu")
@parse_args("v", "i")
def glu(g, self, dim):
    first, second = halves(g, self, dim)
    return g.op("Mul", first, g.op("Sigmoid", second))


def halves(g, self, dim):
    """Two equal parts: before version 18 a Split without sizes, since then with their number."""
    more = {"num_outputs_i": 2} if g.opset >= 18 else {}
    return g.op("Split", self, axis_i=dim, outputs=2, **more)


def _softmax(operator):
    @parse_args("v", "i", "i")
    def symbolic(g, self, dim, dtype=None):
        to = dtype_from_number(dtype, g.result_dtype)
        return g.op(operator, cast(g, self, to), axis_i=dim)

    return symbolic


onnx_symbolic("aten::softmax", "aten::_softmax")(_softmax("Softmax"))
onnx_symbolic("aten::log_softmax", "aten::_log_softmax")(_softmax("LogSoftmax"))


@onnx_symbolic("aten::dropout", "aten::feature_dropout", "aten::alpha_dropout", "aten::feature_alpha_dropout")
@parse_args("v", "f", "b")
def dropout(g, input, p, train):
    """Nothing, while a model evaluates."""
    if not train or p == 0:
        return input
    result, _ = g.op("Dropout", input, p, g.constant(True, readtorch.bool), outputs=2)
    return result


@onnx_symbolic("aten::logit")
def logit(g, self, eps):
    bound = parse_arg(eps, "f")
    self = self if bound is None else g.op("Clip", self, bound, 1 - bound)
    return g.op("Log", g.op("Div", self, g.op("Sub", g.constant(1, g.result_dtype), self)))
