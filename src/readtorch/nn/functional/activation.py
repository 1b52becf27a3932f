"""Activation functions. In PyTorch: part of `torch/nn/functional.py`."""

import warnings

import readtorch
from readtorch import Tensor
from readtorch._C import _nn
from readtorch.csrc.utils.disable_torch_function import hand_on, handle_torch_function, has_torch_function_unary

__all__ = [
    "threshold",
    "threshold_",
    "relu",
    "relu_",
    "glu",
    "hardtanh",
    "hardtanh_",
    "relu6",
    "elu",
    "elu_",
    "selu",
    "selu_",
    "celu",
    "celu_",
    "leaky_relu",
    "leaky_relu_",
    "prelu",
    "rrelu",
    "rrelu_",
    "logsigmoid",
    "gelu",
    "hardshrink",
    "tanhshrink",
    "softsign",
    "softplus",
    "softmin",
    "softmax",
    "gumbel_softmax",
    "log_softmax",
    "softshrink",
    "tanh",
    "sigmoid",
    "hardsigmoid",
    "silu",
    "mish",
    "hardswish",
]

# Operators that need no check here; a name with "_" at its end writes into its argument.
threshold_ = readtorch.threshold_
relu_ = readtorch.relu_
hardtanh_ = _nn.hardtanh_
elu_ = _nn.elu_
selu_ = readtorch.selu_
celu_ = readtorch.celu_
leaky_relu_ = _nn.leaky_relu_
rrelu_ = readtorch.rrelu_
prelu = readtorch.prelu
logsigmoid = _nn.log_sigmoid
gelu = _nn.gelu
hardshrink = readtorch.hardshrink
softshrink = _nn.softshrink
softplus = _nn.softplus


def _threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """x where x > threshold, else value."""
    if has_torch_function_unary(input):
        return handle_torch_function(_threshold, (input,), input, threshold, value, inplace=inplace)
    if inplace:
        return readtorch.threshold_(input, threshold, value)
    return readtorch.threshold(input, threshold, value)


# A parameter of the function has its name.
threshold = _threshold


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    if has_torch_function_unary(input):
        return handle_torch_function(relu, (input,), input, inplace=inplace)
    if inplace:
        return readtorch.relu_(input)
    return readtorch.relu(input)


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """a · sigmoid(b), where a and b are the two halves of the input along `dim`."""
    if has_torch_function_unary(input):
        return handle_torch_function(glu, (input,), input, dim=dim)
    if input.dim() == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    return _nn.glu(input, dim)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x, cut off below min_val and above max_val."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardtanh, (input,), input, min_val=min_val, max_val=max_val, inplace=inplace)
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if inplace:
        return _nn.hardtanh_(input, min_val, max_val)
    return _nn.hardtanh(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    if has_torch_function_unary(input):
        return handle_torch_function(relu6, (input,), input, inplace=inplace)
    if inplace:
        return _nn.relu6_(input)
    return _nn.relu6(input)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where x > 0, else alpha · (exp(x) - 1)."""
    if has_torch_function_unary(input):
        return handle_torch_function(elu, (input,), input, alpha=alpha, inplace=inplace)
    if inplace:
        return _nn.elu_(input, alpha)
    return _nn.elu(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """scale · elu(x, alpha), with the two constants that keep mean 0 and variance 1 from layer to layer."""
    if has_torch_function_unary(input):
        return handle_torch_function(selu, (input,), input, inplace=inplace)
    if inplace:
        return readtorch.selu_(input)
    return readtorch.selu(input)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """max(0, x) + min(0, alpha · (exp(x / alpha) - 1))."""
    if has_torch_function_unary(input):
        return handle_torch_function(celu, (input,), input, alpha=alpha, inplace=inplace)
    if inplace:
        return readtorch.celu_(input, alpha)
    return readtorch.celu(input, alpha)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where x > 0, else negative_slope · x."""
    if has_torch_function_unary(input):
        return handle_torch_function(leaky_relu, (input,), input, negative_slope=negative_slope, inplace=inplace)
    if inplace:
        return _nn.leaky_relu_(input, negative_slope)
    return _nn.leaky_relu(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """leaky_relu with a random slope in [lower, upper] for each element; in evaluation with their mean."""
    if has_torch_function_unary(input):
        return hand_on(rrelu, (input,), locals())
    if inplace:
        return readtorch.rrelu_(input, lower, upper, training)
    return readtorch.rrelu(input, lower, upper, training)


def tanhshrink(input: Tensor) -> Tensor:
    """x - tanh(x)."""
    if has_torch_function_unary(input):
        return handle_torch_function(tanhshrink, (input,), input)
    return input - input.tanh()


def softsign(input: Tensor) -> Tensor:
    """x / (|x| + 1)."""
    if has_torch_function_unary(input):
        return handle_torch_function(softsign, (input,), input)
    return input / (input.abs() + 1)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent, between -1 and 1."""
    return input.tanh()


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + exp(-x)), between 0 and 1."""
    return input.sigmoid()


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x / 6 + 1/2, 0), 1)."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardsigmoid, (input,), input, inplace=inplace)
    if inplace:
        return _nn.hardsigmoid_(input)
    return _nn.hardsigmoid(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x · sigmoid(x)."""
    if has_torch_function_unary(input):
        return handle_torch_function(silu, (input,), input, inplace=inplace)
    if inplace:
        return _nn.silu_(input)
    return _nn.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · tanh(softplus(x))."""
    if has_torch_function_unary(input):
        return handle_torch_function(mish, (input,), input, inplace=inplace)
    if inplace:
        return _nn.mish_(input)
    return _nn.mish(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x · min(max(x + 3, 0), 6) / 6."""
    if has_torch_function_unary(input):
        return handle_torch_function(hardswish, (input,), input, inplace=inplace)
    if inplace:
        return _nn.hardswish_(input)
    return _nn.hardswish(input)


def softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: readtorch.dtype | None = None
) -> Tensor:
    """exp(x) / Σ exp(x) along `dim`. dtype: cast the input first, against overflow."""
    if has_torch_function_unary(input):
        return handle_torch_function(softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _get_softmax_dim("softmax", input.dim(), _stacklevel)
    if dtype is None:
        return input.softmax(dim)
    return input.softmax(dim, dtype=dtype)


def softmin(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: readtorch.dtype | None = None
) -> Tensor:
    """softmax(-x)."""
    if has_torch_function_unary(input):
        return handle_torch_function(softmin, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _get_softmax_dim("softmin", input.dim(), _stacklevel)
    if dtype is None:
        return (-input).softmax(dim)
    return (-input).softmax(dim, dtype=dtype)


def log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: readtorch.dtype | None = None
) -> Tensor:
    """log(softmax(x)), computed together because a probability that rounds to zero has no logarithm."""
    if has_torch_function_unary(input):
        return handle_torch_function(log_softmax, (input,), input, dim=dim, _stacklevel=_stacklevel, dtype=dtype)
    if dim is None:
        dim = _get_softmax_dim("log_softmax", input.dim(), _stacklevel)
    if dtype is None:
        return input.log_softmax(dim)
    return input.log_softmax(dim, dtype=dtype)


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """A sample from the distribution softmax(logits) that has a gradient; nearly one-hot for small tau.

    hard: one-hot in forward, the gradient of the soft sample in backward.
    E. Jang, S. Gu, B. Poole: Categorical reparameterization with Gumbel-softmax (2016).
    """
    if has_torch_function_unary(logits):
        return handle_torch_function(gumbel_softmax, (logits,), logits, tau=tau, hard=hard, eps=eps, dim=dim)
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    gumbels = -readtorch.empty_like(logits, memory_format=readtorch.contiguous_format).exponential_().log()
    y_soft = ((logits + gumbels) / tau).softmax(dim)
    if not hard:
        return y_soft
    index = y_soft.max(dim, keepdim=True)[1]
    zeros = readtorch.zeros_like(logits, memory_format=readtorch.contiguous_format)
    y_hard = zeros.scatter_(dim, index, 1.0)
    return y_hard - y_soft.detach() + y_soft
