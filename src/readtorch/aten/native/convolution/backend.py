"""Which algorithm PyTorch's CPU build takes for a convolution: `readtorch._C._select_conv_backend`.

Here it is an answer only: readtorch computes with loops of its own, which `convolution.py` chooses. What PyTorch asks about
CUDA, MIOpen, phones and ARM is always answered no on the CPU of the wheel for x86, and left out.

In PyTorch: `_select_conv_backend` in `aten/src/ATen/native/Convolution.cpp`, `aten/src/ATen/native/ConvUtils.h`.
Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import enum

from readtorch.aten.context import context
from readtorch.aten.parallel import get_num_threads
from readtorch.c10.scalar_type import bfloat16, float32
from readtorch.c10.tensor_impl import dtype_of

from .params import check_shapes, geometry_of


class ConvBackend(enum.Enum):
    """The algorithms by name, with PyTorch's numbers. On the CPU: Mkldnn and the ones called Slow, NnpackSpatial and Empty."""

    CudaDepthwise2d = 0
    CudaDepthwise3d = 1
    Cudnn = 2
    CudnnTranspose = 3
    Empty = 4
    Miopen = 5
    MiopenDepthwise = 6
    MiopenTranspose = 7
    Mkldnn = 8
    MkldnnTranspose = 9  # in PyTorch: without a name in Python, `<_ConvBackend.???: 9>`
    MkldnnEmpty = 10
    NnpackSpatial = 11
    Overrideable = 12
    Slow2d = 13
    Slow3d = 14
    SlowDilated2d = 15
    SlowDilated3d = 16
    SlowTranspose2d = 17
    SlowTranspose3d = 18
    Winograd3x3Depthwise = 19
    Xnnpack2d = 20
    Mps = 21
    MpsTranspose = 22  # in PyTorch: its name in Python ends with a comma

    def __int__(self):
        return self.value


def select_conv_backend(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, bias_sizes=None
):
    """The ConvBackend that PyTorch takes for these arguments of `convolution`, after the same checks.

    Raises RuntimeError where shapes do not fit. bias_sizes: asked on phones alone.
    """
    geometry = geometry_of(weight, *map(tuple, (stride, padding, dilation)), transposed, tuple(output_padding), groups)
    check_shapes(input, weight, bias, geometry)
    if 0 in input._array.shape[:2]:
        return ConvBackend.Empty
    if 0 in input._array.shape:
        sizes = list(input._array.shape)
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {sizes}")
    if input.device.type != "cpu":
        return ConvBackend.Overrideable
    x, w, g = _as_image(input._array.shape, weight._array.shape, geometry)
    if _use_mkldnn(dtype_of(input), x, w, g):
        return ConvBackend.MkldnnTranspose if transposed else ConvBackend.Mkldnn
    return _without_mkldnn(dtype_of(input), x, w, g)


def _as_image(x, w, g):
    """A signal counts as an image of height 1."""
    if len(w) > 3:
        return x, w, g
    image = g._replace(
        stride=(1, *g.stride), padding=(0, *g.padding), dilation=(1, *g.dilation), output_padding=(0, *g.output_padding)
    )
    return (*x[:2], 1, x[2]), (*w[:2], 1, w[2]), image


def _use_mkldnn(dtype, x, w, g):
    """Whether oneDNN computes it: in PyTorch, `ConvParams::use_mkldnn`."""
    if not context.mkldnn_enabled or g.transposed and _output_padding_is_big(g):
        return False
    if dtype is bfloat16:  # where the processor has instructions for it, as with AVX-512
        return True
    images, channels, rows, columns = x[:4]  # of a volume the depth and the height: so in PyTorch
    is_one_by_one = w[-1] == w[-2] == 1
    moves = any(n != 1 for n in (*g.stride, *g.dilation))
    is_worth_a_call = moves or images >= 16 or not is_one_by_one or get_num_threads() > 1
    is_large = (
        g.groups > 1
        or w[-1] > 3
        and w[-2] > 3
        or images > 1
        or images * channels * rows * columns > 20480  # below it the columns are faster
    )
    return dtype is float32 and is_worth_a_call and is_large


def _output_padding_is_big(g):
    return any(extra >= step for extra, step in zip(g.output_padding, g.stride))


def _without_mkldnn(dtype, x, w, g):
    """PyTorch's own loops, and NNPACK's."""
    is_volume, is_dilated = len(x) == 5, any(d != 1 for d in g.dilation)
    if g.transposed:
        return ConvBackend.SlowTranspose3d if is_volume else ConvBackend.SlowTranspose2d
    if is_volume:
        return ConvBackend.SlowDilated3d if is_dilated else ConvBackend.Slow3d
    if is_dilated:
        return ConvBackend.SlowDilated2d
    return ConvBackend.NnpackSpatial if _use_nnpack(dtype, x, w, g) else ConvBackend.Slow2d


def _use_nnpack(dtype, x, w, g):
    """Whether NNPACK computes it: in PyTorch, `ConvParams::use_nnpack`. Nothing with a large batch is left to it by oneDNN."""
    return (
        context.nnpack_enabled
        and dtype is float32
        and x[0] >= 16
        and all(k < 17 and p < k for k, p in zip(w[2:], g.padding))
    )
