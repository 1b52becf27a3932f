"""Functions of one element: they compute on the data and keep the mask. In PyTorch: `torch/masked/maskedtensor/unary.py`."""

import readtorch

from .core import get_data, get_mask, map_masked, wrapped

NAMES = (
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh arctanh bitwise_not ceil clamp "
    "clip conj_physical cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 "
    "logit i0 isnan nan_to_num neg negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc "
    "sinh sqrt square tan tanh trunc"
).split()
INPLACE_NAMES = [name + "_" for name in NAMES if name not in ("angle", "positive", "signbit", "isnan")]


def apply(operator, *args, **kwargs):
    """ValueError for keyword arguments, TypeError for further tensors."""
    if kwargs:
        raise ValueError(
            "MaskedTensor unary ops require that len(kwargs) == 0. "
            "If you need support for this, please open an issue on Github."
        )
    if any(map(readtorch.is_tensor, args[1:])):
        raise TypeError("MaskedTensor unary ops do not support additional Tensor arguments")
    return wrapped(operator(*map_masked(args, get_data)), get_mask(args[0]))


def apply_inplace(operator, *args, **kwargs):
    """The same, written to the first argument."""
    result = apply(operator, *args, **kwargs)
    args[0]._set_data_mask(get_data(result), get_mask(args[0]))
    return args[0]
