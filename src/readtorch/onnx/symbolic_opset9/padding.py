"""Padding, and images in another size.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`, `symbolic_opset16.py`.
"""

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    as_shape,
    cast,
    dtype,
    is_none,
    parse_arg,
    parse_args,
    rank,
    slice_,
    unsupported,
)


def _pads(g, self, pad):
    """PyTorch begins with the last dimension, pair by pair; ONNX has all beginnings first, then all ends."""
    pairs = parse_arg(pad, "is")
    pairs = pairs + [0] * (2 * rank(self) - len(pairs))
    return pairs[-2::-2] + pairs[::-2]


def padded(g, self, pad, mode, value=None):
    more = [] if value is None else [cast(g, value, dtype(self))]
    return g.op("Pad", self, _pads(g, self, pad), *more, mode_s=mode)


@onnx_symbolic("aten::constant_pad_nd")
def constant_pad_nd(g, self, pad, value):
    return padded(g, self, pad, "constant", value)


@onnx_symbolic("aten::pad")
def pad(g, self, pad, mode, value):
    name = parse_arg(mode, "s")
    if name == "circular" and g.opset < 19:
        raise unsupported("circular padding before opset 19", self)
    onnx_name = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}[name]
    return padded(g, self, pad, onnx_name, None if is_none(value) else value)


for _dims in (1, 2, 3):
    onnx_symbolic(f"aten::reflection_pad{_dims}d")(lambda g, self, pad: padded(g, self, pad, "reflect"))
    onnx_symbolic(f"aten::replication_pad{_dims}d")(lambda g, self, pad: padded(g, self, pad, "edge"))


def resized(g, self, output_size, mode, align_corners, scales):
    """Resize, to a size (of the last dimensions) or by factors."""
    settings = {
        "mode_s": mode,
        "coordinate_transformation_mode_s": "asymmetric"
        if mode == "nearest"
        else "align_corners"
        if align_corners
        else "pytorch_half_pixel",
        "nearest_mode_s": "floor" if mode == "nearest" else None,
        "cubic_coeff_a_f": -0.75,
    }
    if scales:
        return g.op("Resize", self, None, g.constant(readtorch.tensor([1.0, 1.0, *scales])), **settings)
    shape = g.op("Concat", slice_(g, g.op("Shape", self), [0], [0], [2]), as_shape(g, output_size), axis_i=0)
    return g.op("Resize", self, None, None, shape, **settings)


def _upsample(mode, has_corners):
    def symbolic(g, self, output_size, *arguments):
        """Where factors were given, one each or as a list, PyTorch computes with these."""
        corners = parse_arg(arguments[0], "b") if has_corners else None
        scales = [n for s in arguments[has_corners:] if not is_none(s) for n in parse_arg(s, "fs")]
        return resized(g, self, output_size, mode, corners, scales)

    return symbolic


for _name, _mode in {
    "nearest1d": "nearest",
    "nearest2d": "nearest",
    "nearest3d": "nearest",
    "linear1d": "linear",
    "bilinear2d": "linear",
    "trilinear3d": "linear",
    "bicubic2d": "cubic",
}.items():
    onnx_symbolic(f"aten::upsample_{_name}")(_upsample(_mode, _mode != "nearest"))


@onnx_symbolic("aten::grid_sampler", opset=16)
@parse_args("v", "v", "i", "i", "b")
def grid_sampler(g, input, grid, interpolation_mode, padding_mode, align_corners):
    modes = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    return g.op(
        "GridSample",
        input,
        grid,
        align_corners_i=int(align_corners),
        mode_s=modes[interpolation_mode],
        padding_mode_s=["zeros", "border", "reflection"][padding_mode],
    )
