"""Products of matrices.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`,
and what later versions changed in `symbolic_opset11.py`, `symbolic_opset12.py`.
"""

from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    cast,
    is_none,
    parse_arg,
    parse_args,
    rank,
    squeeze,
    transpose,
    unpack_list,
    unsqueeze,
    unsupported,
)

from .arithmetic import times
from .reduction import reduced


@onnx_symbolic("aten::linear")
def linear(g, input, weight, bias):
    """Of a matrix it is one Gemm. Of more dimensions it is MatMul, which broadcasts, and Add."""
    turned = g.op("Transpose", weight, perm_i=[1, 0])
    if rank(input) == 2 and not is_none(bias):
        return g.op("Gemm", input, turned, bias, alpha_f=1.0, beta_f=1.0)
    product = g.op("MatMul", input, turned)
    return product if is_none(bias) else g.op("Add", bias, product)


@onnx_symbolic("aten::matmul", "aten::mm", "aten::bmm", "aten::mv", "aten::dot")
def matmul(g, self, other):
    return g.op("MatMul", self, other)


@onnx_symbolic("aten::addmm")
def addmm(g, self, mat1, mat2, beta, alpha):
    return g.op("Gemm", mat1, mat2, self, beta_f=parse_arg(beta, "f"), alpha_f=parse_arg(alpha, "f"))


@onnx_symbolic("aten::baddbmm")
def baddbmm(g, self, batch1, batch2, beta, alpha):
    return g.op("Add", times(g, g.op("MatMul", batch1, batch2), alpha), times(g, self, beta))


@onnx_symbolic("aten::addmv")
def addmv(g, self, mat, vec, beta, alpha):
    return g.op("Add", times(g, self, beta), times(g, g.op("MatMul", mat, vec), alpha))


@onnx_symbolic("aten::outer", "aten::ger")
def outer(g, self, other):
    return g.op("Mul", unsqueeze(g, self, [1]), unsqueeze(g, other, [0]))


@onnx_symbolic("aten::einsum")
def einsum(g, equation, tensors, path=None):
    return g.op("Einsum", *unpack_list(tensors), equation_s=parse_arg(equation, "s"))


@onnx_symbolic("aten::bilinear")
@parse_args("v", "v", "v", "v")
def bilinear(g, input1, input2, weight, bias):
    """`input1 · weight[k] · input2` for each k: along one dimension more."""
    left = g.op("MatMul", unsqueeze(g, unsqueeze(g, input1, [-2]), [-3]), weight)  # […, k, 1, n]
    result = squeeze(g, squeeze(g, g.op("MatMul", left, unsqueeze(g, unsqueeze(g, input2, [-1]), [-3])), [-1]), [-1])
    return result if bias is None else g.op("Add", result, bias)


@onnx_symbolic("aten::t", "aten::numpy_T")
def t(g, self):
    return self if rank(self) < 2 else transpose(g, self, 0, 1)


@onnx_symbolic("aten::linalg_vector_norm")
@parse_args("v", "f", "is", "b", "none")
def linalg_vector_norm(g, self, ord, dim, keepdim, dtype=None):
    self = cast(g, self, g.result_dtype)
    if ord in (1, 2):
        return reduced(g, f"ReduceL{int(ord)}", self, dim, keepdim)
    if abs(ord) == float("inf"):
        return reduced(g, "ReduceMax" if ord > 0 else "ReduceMin", g.op("Abs", self), dim, keepdim)
    if ord == 0:
        raise unsupported("a norm of order 0", self)
    powers = reduced(g, "ReduceSum", g.op("Pow", g.op("Abs", self), ord), dim, keepdim)
    return g.op("Pow", powers, 1 / ord)
