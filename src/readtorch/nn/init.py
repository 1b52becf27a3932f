"""Initial values for parameters. In PyTorch: `torch/nn/init.py`. See the chapter "Where numbers come from: init and random".

Every function changes its tensor in place, without autograd, and returns it. The random ones draw from
`generator`, by default the global one, in the same order as PyTorch: the same seed gives the same weights.
"""

import contextlib
import functools
import math
import warnings

import readtorch
from readtorch.csrc.utils.disable_torch_function import handle_torch_function, has_torch_function_unary

__all__ = [
    "calculate_gain",
    "uniform_",
    "normal_",
    "trunc_normal_",
    "constant_",
    "ones_",
    "zeros_",
    "eye_",
    "dirac_",
    "xavier_uniform_",
    "xavier_normal_",
    "kaiming_uniform_",
    "kaiming_normal_",
    "orthogonal_",
    "sparse_",
    "uniform",
    "normal",
    "constant",
    "eye",
    "dirac",
    "xavier_uniform",
    "xavier_normal",
    "kaiming_uniform",
    "kaiming_normal",
    "orthogonal",
    "sparse",
]

_LINEAR_FNS = ("linear", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")


def calculate_gain(nonlinearity, param=None):
    """The factor that keeps the variance of activations behind this nonlinearity."""
    if nonlinearity in _LINEAR_FNS or nonlinearity == "sigmoid":
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + _negative_slope(param) ** 2))
    if nonlinearity == "selu":
        return 3.0 / 4  # found by experiment: https://github.com/pytorch/pytorch/pull/50664
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _negative_slope(param):
    if param is None:
        return 0.01
    if isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return param


# A module may be built without initial values: `nn.utils.skip_init`

_filling = True


@contextlib.contextmanager
def _no_filling():
    """Inside, every function of this file leaves its tensor as it is."""
    global _filling
    before, _filling = _filling, False
    try:
        yield
    finally:
        _filling = before


def _stays(tensor):
    """Whether `tensor` is not to be filled, as one on the meta device cannot be: it has no memory."""
    return tensor.is_meta or not _filling


# The same distribution for every element


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform in [a, b)."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(uniform_, (tensor,), tensor=tensor, a=a, b=b, generator=generator)
    if not _filling:
        return tensor
    with readtorch.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal with this mean and standard deviation."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(normal_, (tensor,), tensor=tensor, mean=mean, std=std, generator=generator)
    if not _filling:
        return tensor
    with readtorch.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def constant_(tensor, val):
    """`val` everywhere."""
    if has_torch_function_unary(tensor):
        return handle_torch_function(constant_, (tensor,), tensor=tensor, val=val)
    return _fill(tensor, val)


def _fill(tensor, val):
    if not _filling:
        return tensor
    with readtorch.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """Ones, in place."""
    return _fill(tensor, 1.0)


def zeros_(tensor):
    """Zeros, in place."""
    if not _filling:
        return tensor
    with readtorch.no_grad():
        return tensor.zero_()


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal with this mean and standard deviation, drawn again where it falls outside [a, b]."""
    if _stays(tensor):
        return tensor
    if (mean < a - 2 * std) or (mean > b + 2 * std):
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. "
            "The distribution of values may be incorrect.",
            stacklevel=2,
        )
    inside = _norm_cdf((b - mean) / std) - _norm_cdf((a - mean) / std)
    with readtorch.no_grad():
        if inside > 0.3:
            _draw_normal_until_inside(tensor, mean, std, a, b, generator)
        else:
            _draw_uniform_until_accepted(tensor, mean, std, a, b, generator)
    return tensor


def _norm_cdf(x):
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _draw_normal_until_inside(tensor, mean, std, a, b, generator):
    # The bounds as the tensor's dtype has them, so that no value can be outside by rounding only.
    lo, hi = tensor.new_tensor(a, device="cpu").item(), tensor.new_tensor(b, device="cpu").item()
    result = tensor.normal_(mean, std, generator=generator)
    while True:
        outside = (result < lo) | (result > hi)
        if not outside.any():
            break
        redrawn = readtorch.empty_like(result).normal_(mean, std, generator=generator)
        result = readtorch.where(outside, redrawn, result)
    if tensor is not result:
        tensor.copy_(result)


def _draw_uniform_until_accepted(tensor, mean, std, a, b, generator):
    """Rejection sampling, for bounds in the tail: a candidate stays with the probability density/peak."""
    mode = max(a, min(mean, b))
    log_peak = -0.5 * ((mode - mean) / std) ** 2
    candidates, accept_buf = readtorch.empty_like(tensor), readtorch.empty_like(tensor)

    def rejected():
        log_density = candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return accept_buf.uniform_(generator=generator).log_().gt(log_density)

    tensor.uniform_(a, b, generator=generator)
    candidates.copy_(tensor)
    pending = rejected()
    result = tensor
    while pending.any():
        candidates.uniform_(a, b, generator=generator)
        result = readtorch.where(pending, candidates, result)
        pending = readtorch.where(pending, rejected(), pending)
    if result is not tensor:
        tensor.copy_(result)


# Scaled by the number of connections


def _calculate_fan_in_and_fan_out(tensor):
    """Inputs that one output sees, outputs that one input reaches; a convolution's kernel multiplies both."""
    if tensor.dim() < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    receptive_field_size = math.prod(tensor.shape[2:])
    return tensor.size(1) * receptive_field_size, tensor.size(0) * receptive_field_size


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    valid_modes = ["fan_in", "fan_out"]
    if mode not in valid_modes:
        raise ValueError(f"Mode {mode} not supported, please use one of {valid_modes}")
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return fan_in if mode == "fan_in" else fan_out


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform in ±gain · √(6 / (fan_in + fan_out)).

    X. Glorot, Y. Bengio: Understanding the difficulty of training deep feedforward neural networks (2010).
    """
    a = math.sqrt(3.0) * _xavier_std(tensor, gain)  # a uniform distribution in ±a has the deviation a/√3
    return uniform_(tensor, -a, a, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal with deviation gain · √(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, _xavier_std(tensor, gain), generator)


def _xavier_std(tensor, gain):
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return gain * math.sqrt(2.0 / float(fan_in + fan_out))


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Uniform in ±gain · √(3 / fan). a: the slope of leaky_relu; mode: "fan_in" or "fan_out".

    K. He, X. Zhang, S. Ren, J. Sun: Delving deep into rectifiers (2015).
    """
    if has_torch_function_unary(tensor):
        return handle_torch_function(
            kaiming_uniform_, (tensor,), tensor=tensor, a=a, mode=mode, nonlinearity=nonlinearity, generator=generator
        )
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    bound = math.sqrt(3.0) * _kaiming_std(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None):
    """Normal with deviation gain / √fan. See `kaiming_uniform_`."""
    if 0 in tensor.shape:
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=2)
        return tensor
    return normal_(tensor, 0, _kaiming_std(tensor, a, mode, nonlinearity), generator)


def _kaiming_std(tensor, a, mode, nonlinearity):
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


# With structure


def eye_(tensor):
    """The identity matrix, cut to the tensor's two sizes."""
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if not _filling:
        return tensor
    with readtorch.no_grad():
        readtorch.eye(*tensor.shape, out=tensor, requires_grad=tensor.requires_grad)
    return tensor


def dirac_(tensor, groups=1):
    """A convolution's weight (out, in, *kernel) that passes the channels of each group through unchanged."""
    if tensor.ndimension() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    if tensor.size(0) % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    if _stays(tensor):
        return tensor
    out_chans_per_grp = tensor.size(0) // groups
    center = tuple(size // 2 for size in tensor.shape[2:])
    with readtorch.no_grad():
        tensor.zero_()
        for g in range(groups):
            for d in range(min(out_chans_per_grp, tensor.size(1))):
                tensor[(g * out_chans_per_grp + d, d, *center)] = 1
    return tensor


def orthogonal_(tensor, gain=1, generator=None):
    """Orthonormal rows or columns, whichever are fewer, times gain; dimensions after the first are joined.

    A. M. Saxe, J. L. McClelland, S. Ganguli: Exact solutions to the nonlinear dynamics of learning (2013).
    """
    if tensor.ndimension() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0 or _stays(tensor):
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    flattened = tensor.new_empty((rows, cols)).normal_(0, 1, generator=generator)
    if rows < cols:
        flattened.t_()
    q, r = readtorch.linalg.qr(flattened)
    # The signs that QR leaves open follow R's diagonal: then Q is uniform (F. Mezzadri, 2007).
    q *= readtorch.diag(r, 0).sign()
    if rows < cols:
        q.t_()
    with readtorch.no_grad():
        tensor.view_as(q).copy_(q)
        tensor.mul_(gain)
    return tensor


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal with deviation std, and in each column the fraction `sparsity` of zeros, at random positions.

    J. Martens: Deep learning via Hessian-free optimization (2010).
    """
    if tensor.ndimension() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    if _stays(tensor):
        return tensor
    rows, cols = tensor.shape
    num_zeros = math.ceil(sparsity * rows)
    with readtorch.no_grad():
        tensor.normal_(0, std, generator=generator)
        for col_idx in range(cols):
            zero_indices = readtorch.randperm(rows)[:num_zeros]
            tensor[zero_indices, col_idx] = 0
    return tensor


# The old names, without "_" at the end


def _make_deprecate(meth):
    new_name = meth.__name__
    old_name = new_name[:-1]

    @functools.wraps(meth)
    def deprecated_init(*args, **kwargs):
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.", FutureWarning, stacklevel=2
        )
        return meth(*args, **kwargs)

    deprecated_init.__doc__ = f"Deprecated: use `{new_name}`."
    deprecated_init.__name__ = old_name
    return deprecated_init


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
