"""When are two nodes the same?

In PyTorch: `torch/csrc/jit/ir/node_hashing.cpp`.
"""

from readtorch.c10.tensor_impl import TensorImpl


def node_key(node):
    """Equal for two nodes exactly if they do the same: kind, inputs, attributes, output types."""
    attributes = tuple(
        (name, node.kindOf(name), value_key(node.attribute(name))) for name in sorted(node.attributeNames())
    )
    return (node.kind(), tuple(node.inputs()), attributes, tuple(v.type() for v in node.outputs()))


def value_key(value):
    """Equal for two constants exactly if they are the same. Tensors: by their elements, if they are few."""
    if isinstance(value, TensorImpl):
        array = value._array
        few = array.size <= 64 and array.dtype.isbuiltin == 1
        return ("tensor", str(array.dtype), array.shape, value._keys, array.tobytes() if few else id(value))
    if isinstance(value, (list, tuple)):
        return (type(value).__name__, *map(value_key, value))
    if isinstance(value, dict):
        return ("dict", *((value_key(k), value_key(v)) for k, v in value.items()))
    if isinstance(value, float):
        return ("float", value.hex())  # distinguishes 0.0 from -0.0; nan equals nan
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value).__name__, value)
