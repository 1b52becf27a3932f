"""A graph of ONNX nodes as the protobuf message that an .onnx file is.

    %y : Float(2, 4) = onnx::Gemm[transB=1](%x, %w)      node { op_type: "Gemm"  input: "x"  input: "w"
                                                           output: "y"  attribute { name: "transB"  i: 1 } }

In PyTorch: `GraphEncoder` in `torch/csrc/jit/serialization/export.cpp`, which fills in the messages field by
field; here the `onnx` package does.
Explained in the chapter "export and ONNX".
"""

from readtorch.c10.tensor_impl import host_array
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.onnx import library, onnx_type_of


def export_onnx(
    graph,
    initializers,
    opset,
    dynamic_axes=None,
    strip_doc_string=True,
    keep_initializers_as_inputs=False,
    custom_opsets=None,
    producer=("", ""),
):
    """The ModelProto of `graph`. initializers: name of a graph input -> its tensor; these are stored in the
    file.

    dynamic_axes: name of an input or output -> {axis: name of its size}. producer: name and version of what
    wrote it.
    """
    onnx = library()
    axes = dynamic_axes or {}
    initial = {v.debugName() for v in graph.inputs()} & set(initializers)
    inputs = [v for v in graph.inputs() if keep_initializers_as_inputs or v.debugName() not in initial]
    nodes = [node_proto(n, strip_doc_string) for n in graph.nodes() if is_written(n)]
    proto = onnx.helper.make_graph(
        nodes,
        "main_graph",
        [value_info(v, axes) for v in inputs],
        [value_info(v, axes) for v in graph.outputs()],
        [tensor_proto(t, name) for name, t in initializers.items() if name in initial],
        value_info=[value_info(v, axes) for v in _values_between(graph)],
    )
    opsets = [("", opset), *_custom_opsets(graph, custom_opsets or {}).items()]
    imports = [onnx.helper.make_opsetid(domain, version) for domain, version in opsets]
    return onnx.helper.make_model(
        proto,
        opset_imports=imports,
        ir_version=onnx.helper.find_min_ir_version_for(imports[:1]),
        producer_name=producer[0],
        producer_version=producer[1],
    )


def is_written(node):
    """A None that stands for an input left out has no node in the file: the input's name is empty."""
    return not node.kind().startswith("prim::")


def _values_between(graph):
    """What is neither input nor output, where its type is known: viewers of models show it."""
    outputs = set(graph.outputs())
    values = [v for n in graph.nodes() if is_written(n) for v in n.outputs()]
    return [v for v in values if v not in outputs and _has_shape(v)]


def _has_shape(value):
    type = value.type()
    return isinstance(type, TensorType) and type.dtype() in onnx_type_of and type.varyingSizes() is not None


def _custom_opsets(graph, versions):
    domains = {n.kind().split("::")[0] for n in graph.nodes()} - {"onnx", "prim"}
    return {domain: versions.get(domain, 1) for domain in sorted(domains)}


def node_proto(node, strip_doc_string=True):
    """One node. Its name was set by the pass that names nodes after modules; before that it has none."""
    helper = library().helper
    domain, _, operator = node.kind().partition("::")
    names = [name for name in node.attributeNames() if name != "onnx_name"]
    proto = helper.make_node(
        operator,
        ["" if v.mustBeNone() else v.debugName() for v in node.inputs()],
        [v.debugName() for v in node.outputs()],
        name=node.s("onnx_name") if node.hasAttribute("onnx_name") else None,
        domain=None if domain == "onnx" else domain,
        doc_string=None if strip_doc_string or node.sourceRange() is None else str(node.sourceRange().source.text),
    )
    proto.attribute.extend(
        helper.make_attribute(name, _attribute(node, name), attr_type=_attribute_type(node, name))
        for name in sorted(names)
    )
    return proto


def _attribute(node, name):
    value = node.attribute(name)
    return tensor_proto(value) if node.kindOf(name) == "t" else value


def _attribute_type(node, name):
    """The type of an empty list's elements is not known."""
    kinds = {"is": "INTS", "fs": "FLOATS", "ss": "STRINGS"}
    kind = kinds.get(node.kindOf(name))
    return kind and getattr(library().AttributeProto, kind)


def tensor_proto(tensor, name=None):
    return library().numpy_helper.from_array(host_array(tensor.detach().contiguous()), name)


def value_info(value, dynamic_axes):
    """Name, element type and sizes of a value; an axis in `dynamic_axes` has the name there for its size."""
    names = dynamic_axes.get(value.debugName(), {})
    return library().helper.make_value_info(value.debugName(), type_proto(value.type(), names))


def type_proto(type, axis_names=None):
    sizes = type.varyingSizes()
    for axis, name in (axis_names or {}).items():
        sizes[axis] = name
    return library().helper.make_tensor_type_proto(onnx_type_of[type.dtype()], sizes)
