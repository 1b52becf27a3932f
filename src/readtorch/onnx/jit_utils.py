"""What a symbolic function writes with: `g.op("Add", x, y)`.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/jit_utils.py`. Explained in the chapter
"export and ONNX".
"""

import re
from dataclasses import dataclass

import readtorch
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.node import Node
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.ir.value import Value
from readtorch.csrc.jit.passes.onnx.constant_fold import FOLDED
from readtorch.csrc.jit.passes.onnx.shape_type_inference import infer_node_type

_ATTRIBUTE = re.compile(r"^(.+)_(([ifstgz])|(ty))$")


@dataclass
class GraphContext:
    """The graph that is being made, and the node that is being translated."""

    graph: Graph
    opset: int
    original_node: Node

    def op(self, opname, *inputs, outputs=1, **attributes):
        """Insert an ONNX operator ("Add", or "domain::Name"); returns its output, or a tuple of several.

        inputs: Values; None for one that is left out; a number or a list of ints becomes a constant of the
        first input's element type (a list: int64). attributes: `axis_i=1`, `alpha_f`, `mode_s`, `value_t`; a
        list for `_i` or `_f` makes ints or floats; None is left out.
        """
        kind = opname if "::" in opname else f"onnx::{opname}"
        values = [self.value(each, inputs) for each in inputs]
        node = self.graph.create(kind, values, outputs)
        for name, value in sorted(attributes.items()):
            if value is not None:
                _set_attribute(node, name, value)
        known = None if outputs > 1 else _computed_size(node)
        if known is not None:
            node.destroy()
            return self.constant(known)
        self.graph.insertNode(node)
        if kind == "onnx::Constant":
            node.output().setType(TensorType.create_from_tensor(node.t("value")))
        else:
            infer_node_type(node, self.opset)
        return node.output() if outputs == 1 else tuple(node.outputs())

    def value(self, thing, others=()):
        """What `thing` is as an input."""
        if isinstance(thing, Value):
            return thing
        if thing is None:
            return self.graph.insertNode(self.graph.createNone()).output()
        return self.constant(thing, next((v.type().dtype() for v in others if isinstance(v, Value)), None))

    def constant(self, value, dtype=None):
        """A constant: a tensor as it is, a list of ints in int64, a number in `dtype`."""
        if isinstance(value, (list, tuple)):
            dtype = readtorch.int64
        tensor = value if isinstance(value, readtorch.Tensor) else readtorch.tensor(value, dtype=dtype)
        return self.op("Constant", value_t=tensor.detach())

    def pack(self, values):
        """Several Values as one list, the result of an operator such as split."""
        return self.graph.insertNode(self.graph.createList(TensorType.get(), values)).output()

    @property
    def result_dtype(self):
        """The element type of what the trace got from this operator."""
        return self.original_node.outputs()[0].type().dtype()

    def number_of_results(self):
        """Into how many tensors the program takes the operator's list apart."""
        unpack = next((use.user for use in self.original_node.outputs()[0].uses()), None)
        return unpack.outputsSize() if unpack is not None else 0


def _computed_size(node):
    """What a node makes of sizes that are known, so that `x.view(n, width // 2)` knows a size, too; else
    None.
    """
    values = [v.node().t("value") for v in node.inputs() if v.node().kind() == "onnx::Constant"]
    if node.kind() not in FOLDED or len(values) != node.inputsSize():
        return None
    if any(v.dtype != readtorch.int64 or v.dim() > 1 for v in values):
        return None
    return FOLDED[node.kind()](node, *values)


def _set_attribute(node, key, value):
    name, kind = _ATTRIBUTE.match(key).group(1, 2)
    if kind in "ifs" and isinstance(value, (list, tuple)):
        kind += "s"
    getattr(node, f"{kind}_")(name, list(value) if kind in ("is", "fs", "ss") else value)
