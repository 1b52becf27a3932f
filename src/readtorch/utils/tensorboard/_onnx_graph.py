"""The graph of an ONNX file, for TensorBoard. In PyTorch: `torch/utils/tensorboard/_onnx_graph.py`."""

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.versions_pb2 import VersionDef

from readtorch.c10.extras import extra

from ._proto_graph import tensor_shape_proto


def load_onnx_graph(fname):
    """Raises ModuleNotFoundError without the package `onnx`."""
    with extra("onnx", "A graph in ONNX's format"):
        import onnx
    return parse(onnx.load(fname).graph)


def parse(graph):
    # in PyTorch: prints each name, too
    nodes = [*map(_variable, [*graph.input, *graph.output]), *map(_operation, graph.node)]
    return GraphDef(node=nodes, versions=VersionDef(producer=22))


def _variable(value):
    type = value.type.tensor_type
    shape = tensor_shape_proto([dim.dim_value for dim in type.shape.dim])
    return NodeDef(
        name=value.name, op="Variable", attr={"dtype": AttrValue(type=type.elem_type), "shape": AttrValue(shape=shape)}
    )


def _operation(node):
    """A node is known by the name of its first output."""
    attributes = (" = ".join(str(value) for _, value in each.ListFields()) for each in node.attribute)
    return NodeDef(
        name=node.output[0],
        op=node.op_type,
        input=node.input,
        attr={"parameters": AttrValue(s=", ".join(attributes).encode())},
    )
