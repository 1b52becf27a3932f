"""Sizes and numbers of the program, which are tensors in ONNX.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`.
"""

import math

import readtorch
from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import cast, is_none, parse_arg, shape_of, size_of


@onnx_symbolic("aten::size")
def size(g, self, dim=None):
    return shape_of(g, self) if is_none(dim) else size_of(g, self, parse_arg(dim, "i"))


@onnx_symbolic("aten::numel")
def numel(g, self):
    known = self.type().concrete_sizes()
    if known is not None:
        return g.constant(math.prod(known), readtorch.int64)
    return g.op("ReduceProd", g.op("Shape", self), keepdims_i=0)


_CHANGE_NOTHING = (
    "prim::NumToTensor aten::Int aten::IntImplicit aten::ScalarImplicit aten::detach aten::alias aten::clone "
    "aten::contiguous aten::lift_fresh prim::data aten::resolve_conj aten::resolve_neg"
)


@onnx_symbolic(*_CHANGE_NOTHING.split())
def identity(g, self, *settings):
    """A number and the tensor of it are one; so are a tensor and its copy, as nothing is written in place."""
    return self


@onnx_symbolic("aten::Float", "aten::FloatImplicit")
def to_float(g, self):
    return cast(g, self, readtorch.get_default_dtype())


@onnx_symbolic("aten::Bool")
def to_bool(g, self):
    return cast(g, self, readtorch.bool)
