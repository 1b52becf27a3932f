"""One node of a graph, as TensorFlow's protobuf has it.

In PyTorch: `torch/utils/tensorboard/_proto_graph.py`.
"""

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto


def attr_value_proto(dtype, shape, s):
    """What TensorBoard shows beside a node: its attributes as one text, and the size of its output. `dtype`
    is not shown.
    """
    attributes = {}
    if s is not None:
        attributes["attr"] = AttrValue(s=s.encode())
    if shape is not None:
        attributes["_output_shapes"] = AttrValue(list=AttrValue.ListValue(shape=[tensor_shape_proto(shape)]))
    return attributes


def tensor_shape_proto(outputsize):
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in outputsize])


def node_proto(name, op="UnSpecified", input=None, dtype=None, shape=None, outputsize=None, attributes=""):
    """A node. input: the names of the nodes whose output it takes, or one of them."""
    inputs = [] if input is None else input if isinstance(input, list) else [input]
    return NodeDef(name=name, op=op, input=inputs, attr=attr_value_proto(dtype, outputsize, attributes))
