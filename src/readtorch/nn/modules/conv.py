"""Convolution layers. In PyTorch: `torch/nn/modules/conv.py`. See the chapter "Layers: convolution, embedding, recurrence"."""

import math

import readtorch
from readtorch import Tensor
from readtorch.nn import functional as F
from readtorch.nn import init
from readtorch.nn.parameter import Parameter, UninitializedParameter

from .lazy import LazyModuleMixin
from .module import Module
from .utils import _pair, _reverse_repeat_tuple, _single, _triple

__all__ = [
    "Conv1d",
    "Conv2d",
    "Conv3d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "ConvTranspose3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
]


class _ConvNd(Module):
    """What all convolutions have: settings, a weight (and a bias), and how these start.

    weight: (out_channels, in_channels / groups, *kernel_size), in a transposed one (in_channels, out_channels
    / groups, *kernel_size); bias: (out_channels) or None. Both start uniform in ±1/√fan_in.
    """

    __constants__ = [
        "stride",
        "padding",
        "dilation",
        "groups",
        "padding_mode",
        "output_padding",
        "in_channels",
        "out_channels",
        "kernel_size",
    ]

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        _check_padding(padding, padding_mode, stride)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _padding_for_pad(padding, kernel_size, dilation)
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        shape = (first, second // groups, *kernel_size)
        self.weight = Parameter(readtorch.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(readtorch.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        with readtorch.no_grad():
            self._reset_weight()
            if self.bias is not None:
                fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
                bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
                init.uniform_(self.bias, -bound, bound)

    def _reset_weight(self):
        # a=√5 makes the bound of kaiming_uniform_ 1/√fan_in, as in Linear.
        if self.weight.is_contiguous():
            init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        else:  # channels last: the same numbers as in a contiguous weight
            contiguous = readtorch.empty_like(self.weight, memory_format=readtorch.contiguous_format)
            init.kaiming_uniform_(contiguous, a=math.sqrt(5))
            self.weight.copy_(contiguous)

    def extra_repr(self):
        text = f"{self.in_channels}, {self.out_channels}"
        text += f", kernel_size={self.kernel_size}, stride={self.stride}"
        for name, usual in (("padding", 0), ("dilation", 1), ("output_padding", 0)):
            value = getattr(self, name)
            if value != (usual,) * len(value):
                text += f", {name}={value}"
        if self.groups != 1:
            text += f", groups={self.groups}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "padding_mode"):  # pickled before it existed
            self.padding_mode = "zeros"

    def _padded(self, input: Tensor) -> Tensor:
        """`input` padded in this layer's mode, which the operator itself does with zeros only."""
        return F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)


def _check_channels(in_channels, out_channels, groups):
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")


def _check_padding(padding, padding_mode, stride):
    names, modes = {"same", "valid"}, {"zeros", "reflect", "replicate", "circular"}
    if isinstance(padding, str):
        if padding not in names:
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {names}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in modes:
        raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")


def _padding_for_pad(padding, kernel_size, dilation):
    """The padding as `F.pad` wants it: a pair a dimension, the last dimension first."""
    if not isinstance(padding, str):
        return _reverse_repeat_tuple(padding, 2)
    if padding == "valid":
        return [0, 0] * len(kernel_size)
    totals = [d * (k - 1) for d, k in zip(dilation, kernel_size)]
    return [side for total in reversed(totals) for side in (total // 2, total - total // 2)]


class Conv1d(_ConvNd):
    """(N, C, L) to (N, out_channels, L'), the batch dimension optional.

    L' = ⌊(L + 2p - d (k - 1) - 1) / s⌋ + 1 for padding p, dilation d, kernel size k, stride s.
    padding: numbers, "same" or "valid"; padding_mode: "zeros", "reflect", "replicate" or "circular".
    Raises ValueError for channels that `groups` does not divide.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        padding = padding if isinstance(padding, str) else _single(padding)
        super().__init__(
            in_channels,
            out_channels,
            _single(kernel_size),
            _single(stride),
            padding,
            _single(dilation),
            False,
            _single(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            input = self._padded(input)
            return F.conv1d(input, weight, bias, self.stride, _single(0), self.dilation, self.groups)
        return F.conv1d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv2d(_ConvNd):
    """(N, C, H, W) to (N, out_channels, H', W'), the batch dimension optional; otherwise like `Conv1d`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        padding = padding if isinstance(padding, str) else _pair(padding)
        super().__init__(
            in_channels,
            out_channels,
            _pair(kernel_size),
            _pair(stride),
            padding,
            _pair(dilation),
            False,
            _pair(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            input = self._padded(input)
            return F.conv2d(input, weight, bias, self.stride, _pair(0), self.dilation, self.groups)
        return F.conv2d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv3d(_ConvNd):
    """(N, C, D, H, W) to (N, out_channels, D', H', W'), the batch dimension optional; as in `Conv1d`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        padding = padding if isinstance(padding, str) else _triple(padding)
        super().__init__(
            in_channels,
            out_channels,
            _triple(kernel_size),
            _triple(stride),
            padding,
            _triple(dilation),
            False,
            _triple(0),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.padding_mode != "zeros":
            input = self._padded(input)
            return F.conv3d(input, weight, bias, self.stride, _triple(0), self.dilation, self.groups)
        return F.conv3d(input, weight, bias, self.stride, self.padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class _ConvTransposeNd(_ConvNd):
    """A convolution's gradient as a layer: it enlarges what a convolution with its settings makes small."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        bias,
        padding_mode,
        device=None,
        dtype=None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {self.__class__.__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: list[int] | None,
        stride: list[int],
        padding: list[int],
        kernel_size: list[int],
        num_spatial_dims: int,
        dilation: list[int] | None = None,
    ) -> list[int]:
        """The output_padding that gives `output_size`. Raises ValueError if none does."""
        if output_size is None:
            return _single(self.output_padding)
        output_size = _spatial(output_size, input, num_spatial_dims)
        least = readtorch.jit.annotate(list[int], [])
        for d in range(num_spatial_dims):
            extent = kernel_size[d] - 1
            if dilation is not None:
                extent = dilation[d] * extent
            size = (input.size(d - num_spatial_dims) - 1) * stride[d] - 2 * padding[d] + extent + 1
            least.append(size)
        most = [least[d] + stride[d] - 1 for d in range(num_spatial_dims)]
        for d in range(num_spatial_dims):
            if not least[d] <= output_size[d] <= most[d]:
                raise ValueError(
                    f"requested an output size of {output_size}, but valid sizes range from "
                    f"{least} to {most} (for an input of {input.size()[2:]})"
                )
        return [output_size[d] - least[d] for d in range(num_spatial_dims)]

    def _transposed_padding(self, input: Tensor, output_size: list[int] | None) -> list[int]:
        """The output_padding of `forward`, which checks this layer's settings."""
        dim = len(self.kernel_size)
        if self.padding_mode != "zeros":
            raise ValueError(f"Only `zeros` padding mode is supported for ConvTranspose{dim}d")
        if not isinstance(self.padding, tuple):
            raise AssertionError("self.padding must be a tuple")
        return self._output_padding(input, output_size, self.stride, self.padding, self.kernel_size, dim, self.dilation)


def _spatial(output_size: list[int], input: Tensor, dim: int) -> list[int]:
    """The last `dim` numbers of an output size, which may name batch and channels too."""
    others = 2 if input.dim() == dim + 2 else 1
    if len(output_size) == others + dim:
        output_size = output_size[others:]
    if len(output_size) != dim:
        raise ValueError(
            f"ConvTranspose{dim}D: for {input.dim()}D input, output_size must have {dim} or "
            f"{others + dim} elements (got {len(output_size)})"
        )
    return output_size


class ConvTranspose1d(_ConvTransposeNd):
    """(N, C, L) to (N, out_channels, L'), the batch dimension optional.

    L' = (L - 1) s - 2p + d (k - 1) + output_padding + 1. `forward` takes an output_size instead of it.
    Raises ValueError for a size out of reach.
    """

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _single(kernel_size),
            _single(stride),
            _single(padding),
            _single(dilation),
            True,
            _single(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._transposed_padding(input, output_size)
        return F.conv_transpose1d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose2d(_ConvTransposeNd):
    """(N, C, H, W) to (N, out_channels, H', W'), the batch dimension optional; like `ConvTranspose1d`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _pair(kernel_size),
            _pair(stride),
            _pair(padding),
            _pair(dilation),
            True,
            _pair(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._transposed_padding(input, output_size)
        return F.conv_transpose2d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose3d(_ConvTransposeNd):
    """(N, C, D, H, W) to (N, out_channels, D', H', W'), the batch dimension optional; like `ConvTranspose1d`."""

    def __init__(
        self,
        in_channels,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            _triple(kernel_size),
            _triple(stride),
            _triple(padding),
            _triple(dilation),
            True,
            _triple(output_padding),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        output_padding = self._transposed_padding(input, output_size)
        return F.conv_transpose3d(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


# ---------------------------------------- in_channels learned from the first input


class _LazyConvXdMixin(LazyModuleMixin):
    """What lazy convolutions share. Raises RuntimeError for a first input of another number of dimensions."""

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input, *args, **kwargs) -> None:
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        channels = [self.out_channels, self.in_channels]
        first, second = reversed(channels) if self.transposed else channels
        self.weight.materialize((first, second // self.groups, *self.kernel_size))
        if self.bias is not None:
            self.bias.materialize((self.out_channels,))
        self.reset_parameters()

    def _get_in_channels(self, input):
        dim = self._get_num_spatial_dims()
        if input.dim() not in (dim + 1, dim + 2):
            raise RuntimeError(
                f"Expected {dim + 1}D (unbatched) or {dim + 2}D (batched) input to "
                f"{self.__class__.__name__}, but got input of size: {input.shape}"
            )
        return input.shape[-dim - 1]

    def _get_num_spatial_dims(self):
        return len(self.kernel_size)

    def _become_lazy(self, out_channels, bias, device, dtype):
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)


class _LazyConvNd(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups=1,
        bias=True,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode, device, dtype)
        self._become_lazy(out_channels, bias, device, dtype)


class _LazyConvTransposeNd(_LazyConvXdMixin):
    def __init__(
        self,
        out_channels,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups=1,
        bias=True,
        dilation=1,
        padding_mode="zeros",
        device=None,
        dtype=None,
    ) -> None:
        super().__init__(
            0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode, device, dtype
        )
        self._become_lazy(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvNd, Conv1d):
    """`Conv1d` without the argument in_channels: that is the first input's."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvNd, Conv2d):
    """`Conv2d` without the argument in_channels: that is the first input's."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvNd, Conv3d):
    """`Conv3d` without the argument in_channels: that is the first input's."""

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTransposeNd, ConvTranspose1d):
    """`ConvTranspose1d` without the argument in_channels: that is the first input's."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTransposeNd, ConvTranspose2d):
    """`ConvTranspose2d` without the argument in_channels: that is the first input's."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTransposeNd, ConvTranspose3d):
    """`ConvTranspose3d` without the argument in_channels: that is the first input's."""

    cls_to_become = ConvTranspose3d
