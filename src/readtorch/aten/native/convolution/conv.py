"""conv1d … conv_transpose3d: unbatched inputs, padding by name and complex numbers are reduced to `convolution`.

In PyTorch: `aten/src/ATen/native/Convolution.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native_function import native_function
from readtorch.c10.exception import warn_once
from readtorch.c10.scalar_type import C_TYPE_NAMES
from readtorch.c10.tensor_impl import dtype_of

from .convolution import convolution
from .params import check_same_type

_convolution = native_function(
    "_convolution(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, SymInt[] padding, "
    "SymInt[] dilation, bool transposed, SymInt[] output_padding, SymInt groups, bool benchmark, "
    "bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor"
)
_convolution_mode = native_function(
    "_convolution_mode(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride, str padding, "
    "SymInt[] dilation, SymInt groups) -> Tensor"
)


@_convolution.compose
def _convolution_composite(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, *cudnn_settings
):
    # In PyTorch: the operator below `convolution`, with a derivative of its own for old TorchScript files.
    return convolution.call(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _declare(dim):
    """conv{dim}d, its overload for padding by name, and conv_transpose{dim}d."""
    inputs = f"Tensor input, Tensor weight, Tensor? bias=None, SymInt[{dim}] stride=1, "
    rest = f"SymInt[{dim}] dilation=1, SymInt groups=1) -> Tensor"
    direct = native_function(f"conv{dim}d({inputs}SymInt[{dim}] padding=0, {rest}")
    by_name = native_function(f'conv{dim}d.padding({inputs}str padding="valid", {rest}')
    overload = "" if dim == 1 else ".input"
    transposed = native_function(
        f"conv_transpose{dim}d{overload}({inputs}SymInt[{dim}] padding=0, SymInt[{dim}] output_padding=0, "
        f"SymInt groups=1, SymInt[{dim}] dilation=1) -> Tensor"
    )

    @direct.compose
    def conv(input, weight, bias, stride, padding, dilation, groups):
        _check_bias_type(input, bias)
        return _batched(
            dim,
            f"conv{dim}d",
            input,
            convolution.call,
            weight,
            bias,
            stride,
            padding,
            dilation,
            False,
            (0,) * dim,
            groups,
        )

    @by_name.compose
    def conv_with_named_padding(input, weight, bias, stride, padding, dilation, groups):
        return _batched(
            dim, f"conv{dim}d", input, _convolution_mode.call, weight, bias, stride, padding, dilation, groups
        )

    @transposed.compose
    def conv_transpose(input, weight, bias, stride, padding, output_padding, groups, dilation):
        return _batched(
            dim,
            f"conv_transpose{dim}d",
            input,
            convolution.call,
            weight,
            bias,
            stride,
            padding,
            dilation,
            True,
            output_padding,
            groups,
        )

    return direct, by_name, transposed


def _check_bias_type(input, bias):
    if bias is not None and bias._array.dtype != input._array.dtype:
        names = [C_TYPE_NAMES[dtype_of(t)] for t in (input, bias)]
        raise RuntimeError(f"Input type ({names[0]}) and bias type ({names[1]}) should be the same")


def _batched(dim, name, input, convolve, weight, bias, *rest):
    """`convolve`, with an unbatched input as a batch of one."""
    ndim = input._array.ndim
    if ndim not in (dim + 1, dim + 2):
        raise RuntimeError(
            f"Expected {dim + 1}D (unbatched) or {dim + 2}D (batched) input to {name}, but "
            f"got input of size: {list(input._array.shape)}"
        )
    is_batched = ndim == dim + 2
    batch = input if is_batched else input.unsqueeze(0)
    if input._array.dtype.kind == "c":
        result = _of_complex(convolve, batch, weight, bias, *rest)
    else:
        result = convolve(batch, weight, bias, *rest)
    return result if is_batched else result.squeeze(0)


def _of_complex(convolve, input, weight, bias, *rest):
    """Gauss's trick: three real convolutions, not four, make a complex one.

    With a = Re x * Re w, b = Im x * Im w and c = (Re x + Im x) * (Re w + Im w): a - b + i (c - a - b).
    """
    check_same_type(input, weight, bias)
    x, w = _parts(input), _parts(weight)
    bias_real = bias_both = None
    if bias is not None:
        bias_real, bias_imaginary = _parts(bias)
        bias_both = bias_real + bias_imaginary
    a = convolve(x[0], w[0], bias_real, *rest)
    b = convolve(x[1], w[1], None, *rest)
    c = convolve(x[0] + x[1], w[0] + w[1], bias_both, *rest)
    return a - b + mul_scalar.call(c - a - b, 1j)


def _parts(t):
    """Real and imaginary part of a complex tensor."""
    pairs = at.view_as_real(t.resolve_conj())
    return pairs.select(-1, 0), pairs.select(-1, 1)


# ---------------------------------------- padding by name


@_convolution_mode.compose
def convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    if padding == "same":
        return _same(input, weight, bias, stride, dilation, groups)
    if padding != "valid":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    dim = weight._array.ndim - 2
    return convolution.call(input, weight, bias, stride, (0,) * dim, dilation, False, (0,) * dim, groups)


def _same(input, weight, bias, stride, dilation, groups):
    """The output has the input's size. Where both ends need different padding, the difference is padded in front
    beforehand."""
    kernel = weight._array.shape[2:]
    dim = len(kernel)
    _check_same(input, weight, stride, dilation, groups)
    dilations = tuple(dilation) * dim if len(dilation) == 1 else dilation
    totals = [d * (k - 1) for d, k in zip(dilations, kernel)]
    if any(total % 2 for total in totals):
        warn_once(
            "Using padding='same' with even kernel lengths and odd dilation may require a "
            "zero-padded copy of the input be created",
            stacklevel=3,
        )
        input = at.constant_pad_nd(input, [n for total in reversed(totals) for n in (0, total % 2)], 0)
    halves = tuple([total // 2 for total in totals])
    return convolution.call(input, weight, bias, stride, halves, dilation, False, (0,) * dim, groups)


def _check_same(input, weight, stride, dilation, groups):
    x, w = input._array.shape, weight._array.shape
    dim = len(w) - 2
    if dim <= 0:
        raise RuntimeError("weight should have at least three dimensions")
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    if len(x) != len(w):
        raise RuntimeError(
            f"Expected {len(w)}-dimensional input for {len(w)}-dimensional weight{list(w)}, "
            f"but got {len(x)}-dimensional input of size {list(x)} instead"
        )
    for name, values in (("stride", stride), ("dilation", dilation)):
        if len(values) not in (1, dim):
            raise RuntimeError(f"{name} cannot broadcast to {dim} dimensions")
    if any(s != 1 for s in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")


conv1d, conv1d_padding, conv_transpose1d = _declare(1)
conv2d, conv2d_padding, conv_transpose2d = _declare(2)
conv3d, conv3d_padding, conv_transpose3d = _declare(3)
