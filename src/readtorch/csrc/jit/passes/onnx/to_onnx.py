"""A graph of PyTorch's operators becomes one of ONNX's: node by node, each by its symbolic function.

    before                                          after
    %2 : int = prim::Constant[value=1]()            %2 : Float() = onnx::Constant[value={1}]()
    %3 : Tensor = aten::add(%x, %y, %2)             %3 : Float(2, 3) = onnx::Add(%x, %y)

Numbers become constant tensors, as ONNX has nothing else. Lists stay for the symbolic functions to take
apart.

In PyTorch: `NodeToONNX` in `torch/csrc/jit/passes/onnx.cpp`. Explained in the chapter "Multiprocessing
and TensorBoard".
"""

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.type import TensorType

from .shape_type_inference import adopt_traced_type


def ToONNX(graph, translate, constant_tensor):
    """The ONNX graph of `graph`.

    translate(new_graph, node, inputs) -> Value, or a tuple of them: runs the symbolic function of the node.
    constant_tensor(value): the tensor for a number or a list of numbers.
    """
    return _Translation(graph, translate, constant_tensor).run()


class _Translation:
    def __init__(self, graph, translate, constant_tensor):
        self.old, self.new = graph, Graph()
        self.translate = translate
        self.constant_tensor = constant_tensor
        self.values = {}  # old Value -> new

    def run(self):
        for value in self.old.inputs():
            self.values[value] = self.new.addInput().copyMetadata(value)
        for node in self.old.nodes():
            self.new.current_scope = node.scope()
            self.new.current_range = node.sourceRange()
            self.node(node)
        for value in self.old.outputs():
            self.new.registerOutput(self.values[value])
        return self.new

    def node(self, node):
        inputs = [self.values[v] for v in node.inputs()]
        if node.kind() == "prim::Constant":
            outputs = [self.constant(node)]
        elif node.kind() == "prim::ListConstruct":
            outputs = [self.copy(node)]
        elif node.kind() == "prim::ListUnpack":
            outputs = inputs[0].node().inputs()
        else:
            outputs = self.translate(self.new, node, inputs)
            outputs = outputs if isinstance(outputs, tuple) else [outputs]
        for old, new in zip(node.outputs(), outputs):
            self.values[old] = new
            if new not in inputs and new is not None:
                adopt_traced_type(new, old, inputs)

    def constant(self, node):
        value = node.constant_value()
        is_number = isinstance(value, (bool, int, float, TensorImpl))
        if not is_number and not (isinstance(value, list) and value and isinstance(value[0], (int, float))):
            return self.copy(node)  # None, a string, a device: the symbolic functions read them
        tensor = value if isinstance(value, TensorImpl) else self.constant_tensor(value)
        constant = self.new.insertNode(self.new.create("onnx::Constant").t_("value", tensor))
        return constant.output().setType(TensorType.create_from_tensor(tensor))

    def copy(self, node):
        copy = self.new.insertNode(self.new.createClone(node, self.values.__getitem__))
        return copy.output()
