"""Root mean square normalization: layer normalization without the mean.

In PyTorch: `aten/src/ATen/native/layer_norm.cpp`. Explained in the chapter on normalization.
"""
import functools
import warnings

import numpy as np

from ...c10.scalar_type import C_TYPE_NAMES
from ...c10.tensor_impl import dtype_of, wrap
from ..native_function import below_autograd, native_function, packets, python_face
from ..parallel import parallel_for
from ..python_arg_parser import make_parser
from .layer_norm import as_rows, check_is_shape, check_parameter, grain, loops
from .normalization_common import are_plain, filled, loops_serve
from .scalar_ops import add_scalar
from .tensor_iterator import cast, not_implemented, op_math_type

rms_norm = native_function(
    "rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor")
_fused_rms_norm = native_function(
    "_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)")


parse_rms_norm = make_parser(packets["torch", "rms_norm"], is_method=False)


@python_face("rms_norm", "function")
def rms_norm_face(input, normalized_shape, weight=None, eps=None):
    """Divide by the root mean square over the last dimensions, whose sizes are `normalized_shape`."""
    if are_plain(input, weight, None, normalized_shape, 0.0 if eps is None else eps):
        return rms_norm.call(input, normalized_shape, weight, eps)
    return parse_rms_norm((input, normalized_shape, weight, eps), {})


def check_rms_norm(input, normalized, weight):
    check_is_shape(normalized)
    check_parameter("weight", weight, normalized)
    shape = input._array.shape
    if len(shape) < len(normalized):
        raise ValueError(f"Input tensor must have at least {len(normalized)} dimensions, but got "
                         f"{len(shape)}")
    if shape[len(shape) - len(normalized):] != normalized:
        raise RuntimeError(f"Given normalized_shape={list(normalized)}, expected input with shape "
                           f"[*{', '.join(map(str, normalized))}], but got input of size{list(shape)}")


@functools.cache
def warn_of_mixture(input_type, weight_type):
    """PyTorch's kernel for GPUs cannot mix types; the warning comes here as well, once."""
    warnings.warn(f"Mismatch dtype between input and weight: input dtype = {input_type}, weight dtype = "
                  f"{weight_type}, Cannot dispatch to fused implementation.", stacklevel=4)


def are_mixed(input, weight):
    return weight is not None and weight._array.dtype is not input._array.dtype


@rms_norm.compose
def rms_norm_composite(input, normalized_shape, weight, eps):
    check_rms_norm(input, tuple(normalized_shape), weight)
    if are_mixed(input, weight) and not dtype_of(input).is_complex:
        warn_of_mixture(*[C_TYPE_NAMES[dtype_of(t)] for t in (input, weight)])
    return _fused_rms_norm.call(input, normalized_shape, weight, eps)[0]


def machine_epsilon(wide):
    """What stands for `eps=None`: the distance from 1 to the next number of the type that is computed in."""
    return float(np.finfo(wide.to_real().numpy).eps)


@_fused_rms_norm.compose
def fused_rms_norm_composite(input, normalized_shape, weight, eps):
    """x · rsqrt(mean of x² + eps) · weight, and the second factor.

    # in PyTorch: a kernel on GPUs only. On the CPU the graph shows these steps.
    """
    kind = dtype_of(input)
    if not (kind.is_floating_point or kind.is_complex):
        raise not_implemented("rms_norm")(kind)
    wide = op_math_type(kind)
    x = input.to(wide)
    dims = [x.dim() - 1 - i for i in range(len(normalized_shape))]
    mean_square = x.pow(2).mean(dims, keepdim=True)
    rrms = add_scalar.call(mean_square, machine_epsilon(wide) if eps is None else eps, 1).rsqrt()
    result = x.mul(rrms)
    if weight is not None:
        result = result.mul(weight)
    return result.contiguous().type_as(input), rrms.contiguous()


@rms_norm.kernel
def rms_norm_cpu(input, normalized_shape, weight, eps):
    """The same in one go, for calls of which no graph is kept."""
    if not dtype_of(input).is_floating_point or are_mixed(input, weight):
        with below_autograd():
            return rms_norm_composite(input, normalized_shape, weight, eps)
    normalized = tuple(normalized_shape)
    check_rms_norm(input, normalized, weight)
    x = as_rows(input._array, normalized)
    eps = machine_epsilon(op_math_type(dtype_of(input))) if eps is None else eps
    w = None if weight is None else cast(weight._array, x.dtype)
    y = (rms_norm_by_loops if loops_serve(x, w) else rms_norm_by_numpy)(x, w, eps)
    return wrap(cast(y, input._array.dtype).reshape(input._array.shape))


def rms_norm_by_loops(x, weight, eps):
    x, y = np.ascontiguousarray(x), np.empty(x.shape, x.dtype)
    weight = filled(weight, 1, x, x.shape[1])
    parallel_for(0, x.shape[0], grain(x),
                 lambda begin, end: loops().rms_norm(x, weight, float(eps), y, begin, end))
    return y


def rms_norm_by_numpy(x, weight, eps):
    mean_square = np.einsum("ij,ij->i", x, x)[:, None] / x.dtype.type(x.shape[1])
    y = x * (1 / np.sqrt(mean_square + x.dtype.type(eps)))
    return y if weight is None else y * weight.reshape(-1)
