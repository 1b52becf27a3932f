"""What is known of the results of ONNX nodes.

Note [Sizes that a trace saw]
A trace knows every size, since it has seen one run. That is too much: with dynamic axes the sizes of another
run are others, and a constant made of the first run's is wrong. So a size that the trace saw is believed only
where all sizes that it can come from are fixed. Elsewhere ONNX's own rule for the operator is asked, which
starts from what is left of the inputs' sizes. Element types and numbers of dimensions do not change: these
the trace knows best.

In PyTorch: `torch/csrc/jit/passes/onnx/shape_type_inference.cpp`.
Explained in the chapter "export and ONNX".
"""

from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.serialization.export import node_proto, tensor_proto, type_proto
from readtorch.csrc.onnx import dtype_of_onnx_type, library, onnx_type_of

_SIZES_DEPEND_ON_VALUES = {"onnx::NonZero", "onnx::Unique", "onnx::Compress"}
_MAX_VALUES = 64  # of a constant that ONNX's rules receive: it may be a shape


def infer_node_type(node, opset):
    """Give the outputs of an ONNX node the types that ONNX infers from its inputs; unknown if it cannot."""
    onnx = library()
    values = [v for v in node.inputs() if not v.mustBeNone()]
    if not node.kind().startswith("onnx::") or not all(_dtype(v) in onnx_type_of for v in values):
        return
    schema = onnx.defs.get_schema(node.kind().removeprefix("onnx::"), opset)
    imports = [onnx.helper.make_opsetid("", opset)]
    try:
        types = onnx.shape_inference.infer_node_outputs(
            schema,
            node_proto(node),
            {v.debugName(): type_proto(v.type()) for v in values},
            {v.debugName(): tensor_proto(_constant(v)) for v in values if _constant(v) is not None},
            opset_imports=imports,
            ir_version=onnx.helper.find_min_ir_version_for(imports),
        )
    except (onnx.shape_inference.InferenceError, RuntimeError):
        return
    for value in node.outputs():
        if value.debugName() in types:
            value.setType(_from_proto(types[value.debugName()].tensor_type))
    if node.kind() in _SHAPE_INPUT:
        _fill_in_sizes(node, node.input(_SHAPE_INPUT[node.kind()]))


_SHAPE_INPUT = {"onnx::Reshape": 1, "onnx::Expand": 1, "onnx::ConstantOfShape": 0}


def _fill_in_sizes(node, shape):
    """A shape may be put together of sizes of the run and of numbers: `[n, 3, 4, 32]`. Of the result, too,
    these are known.

    -1 and 0 mean something else to Reshape, as does 1 to Expand.
    """
    made, value = shape.node(), node.output()
    if made.kind() != "onnx::Concat" or not all(_is_vector_of_one(part) for part in made.inputs()):
        return
    numbers = [_constant(part) for part in made.inputs()]
    known = [None if n is None or n.item() < 2 else n.item() for n in numbers]
    inferred = value.type().varyingSizes() or [None] * len(known)
    value.setType(TensorType(value.type().dtype(), [a or b for a, b in zip(inferred, known)]))


def _is_vector_of_one(value):
    return value.type().sizes() == [1]


def _dtype(value):
    return value.type().dtype() if isinstance(value.type(), TensorType) else None


def _constant(value):
    """The tensor that `value` is, if it is a small constant."""
    if value.node().kind() != "onnx::Constant":
        return None
    tensor = value.node().t("value")
    return tensor if tensor.numel() <= _MAX_VALUES else None


def _from_proto(proto):
    dtype = dtype_of_onnx_type.get(proto.elem_type)
    if not proto.HasField("shape"):
        return TensorType(dtype)
    return TensorType(dtype, [d.dim_value if d.HasField("dim_value") else None for d in proto.shape.dim])


def is_static(value):
    """Whether all sizes of a value are the same in every run. Values other than tensors count as fixed."""
    if value.node().kind() == "prim::ListConstruct":
        return all(map(is_static, value.node().inputs()))
    return not isinstance(value.type(), TensorType) or value.type().concrete_sizes() is not None


def adopt_traced_type(new, old, inputs):
    """`new` stands for what the trace has as `old`, made of `inputs`. See Note [Sizes that a trace saw]."""
    traced, inferred = old.type(), new.type()
    if not isinstance(traced, TensorType) or traced.dtype() is None:
        return
    fixed = all(map(_is_fixed, inputs)) and new.node().kind() not in _SIZES_DEPEND_ON_VALUES
    if fixed and traced.concrete_sizes() is not None:
        new.setType(traced)
    elif inferred.dim() == traced.dim():
        new.setType(inferred.with_dtype(traced.dtype()))
    elif traced.dim() is not None:
        new.setType(TensorType(traced.dtype(), [None] * traced.dim()))


def _is_fixed(value):
    """A number that is computed at run time may become a size."""
    if value.node().kind() == "prim::ListConstruct":
        return all(map(_is_fixed, value.node().inputs()))
    kind = value.node().kind()
    is_number = (
        isinstance(value.type(), TensorType)
        and value.type().dim() == 0
        and kind not in ("onnx::Constant", "prim::Param")
    )
    return is_static(value) and not is_number
