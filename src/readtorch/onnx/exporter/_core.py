"""From an ExportedProgram to ONNX, in three steps.

    export       `torch.export`: one graph of PyTorch's operators
    decompose    what the table of symbolic functions does not know is taken apart, and writes become values
    translate    node by node, each by its symbolic function; parameters and buffers become initializers

A value is called after its node in the graph of `torch.export`, an initializer after the parameter or buffer.

In PyTorch: `torch/onnx/_internal/exporter/_core.py`, whose functions are written in ONNX Script; here they are those of the
exporter that traces. Explained in the chapter "export and ONNX".
"""

import operator

import readtorch
from readtorch.csrc.jit.ir.enums import as_number
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.passes.onnx.constant_fold import ConstantFold
from readtorch.csrc.jit.passes.onnx.deduplicate_initializers import DeduplicateInitializers
from readtorch.csrc.jit.passes.onnx.eval_peephole import EvalPeephole
from readtorch.csrc.jit.passes.onnx.naming import set_names
from readtorch.csrc.jit.passes.onnx.peephole import PeepholeOptimizeONNX, eliminate_dead_nodes, eliminate_unused_inputs
from readtorch.csrc.jit.serialization.export import export_onnx
from readtorch.csrc.onnx import library
from readtorch.export import ExportedProgram, default_decompositions
from readtorch.export import export as torch_export
from readtorch.export.graph_signature import ConstantArgument, InputKind, OutputKind
from readtorch.fx import Node
from readtorch.onnx import symbolic_opset9  # noqa: F401  (fills the table)
from readtorch.onnx.jit_utils import GraphContext
from readtorch.onnx.registration import registry
from readtorch.onnx.symbolic_helper import is_list, unpack_list

from ._errors import ConversionError, DispatchError, TorchExportError
from ._onnx_program import ONNXProgram

ONNX_IR_VERSION = 10

_STEP = "Failed to {}. This is step {}/3 of exporting the model to ONNX.\n\n## Exception summary\n\n{}: {}"


def export(
    model,
    args=(),
    kwargs=None,
    *,
    dynamic_shapes=None,
    input_names=None,
    output_names=None,
    optimize=True,
    opset_version,
):
    """The ONNXProgram of a Module, or of an ExportedProgram.

    Raises TorchExportError if `torch.export` fails, ConversionError for what cannot be said in ONNX.
    """
    library()  # if it is missing, say so before the work
    program = model
    if not isinstance(model, ExportedProgram):
        try:
            program = torch_export(model, args, kwargs, dynamic_shapes=dynamic_shapes)
        except Exception as error:
            raise TorchExportError(_message("export the model with torch.export", 1, error)) from error
    try:
        program = decompose_with_registry(program, opset_version)
    except Exception as error:
        raise ConversionError(_message("decompose the FX graph for ONNX compatibility", 2, error)) from error
    try:
        graph, initializers = exported_program_to_ir(program, opset_version)
    except ConversionError as error:
        raise ConversionError(_message("convert the exported program to an ONNX model", 3, error)) from error
    if optimize:
        _optimize(graph, initializers)
    users = [value for value in graph.inputs() if value.debugName() not in initializers]
    set_names(graph, users, input_names, "input")
    set_names(graph, graph.outputs(), output_names, "output")
    _name_the_rest(graph)
    producer = ("readtorch", readtorch.version.readtorch)
    proto = export_onnx(graph, initializers, opset_version, producer=producer)
    proto.ir_version = ONNX_IR_VERSION
    return ONNXProgram(proto, program)


def _message(what, step, error):
    cause = error.__cause__ or error
    return _STEP.format(what, step, type(cause), cause)


def decompose_with_registry(program, opset_version):
    """The program as operators that have a symbolic function, as far as there are decompositions."""
    known = {name for name in registry.all_functions() if registry.get(name, opset_version)}
    table = default_decompositions()
    program = program.run_decompositions({op: f for op, f in table.items() if _kind(op) not in known})
    for node in program.graph.find_nodes(op="call_function", target=readtorch.ops.aten._assert_tensor_metadata.default):
        program.graph.erase_node(node)
    return program


def _kind(op):
    """`aten::add` of `aten.add.Tensor`: symbolic functions do not tell overloads apart."""
    return op.name().partition(".")[0]


def exported_program_to_ir(program, opset_version):
    """(the ONNX graph, {name: tensor} of its initializers)"""
    return _Translation(program, opset_version).run()


class _FxContext(GraphContext):
    """What a symbolic function writes with; the node that is translated is one of FX."""

    @property
    def result_dtype(self):
        val = self.original_node.meta["val"]
        return (val[0] if isinstance(val, tuple | list) else val).dtype

    def number_of_results(self):
        return len(self.original_node.meta["val"])


class _Translation:
    """values: node of FX -> Value of the ONNX graph; a tuple of them for an operator with several results."""

    def __init__(self, program, opset_version):
        self.program, self.opset = program, opset_version
        self.graph, self.values, self.initializers = Graph(), {}, {}

    def run(self):
        self.inputs()
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self.call_function(node)
        self.outputs()
        PeepholeOptimizeONNX(self.graph)
        eliminate_dead_nodes(self.graph)
        eliminate_unused_inputs(self.graph, self.initializers)
        return self.graph, self.initializers

    def inputs(self):
        """The user's inputs first, then parameters, buffers and constants, with their values."""
        signature, tensors = self.program.graph_signature, self.program._lifted_inputs()
        nodes = self.program.graph.find_nodes(op="placeholder")
        lifted = []
        for node, spec in zip(nodes, signature.input_specs):
            if spec.kind is not InputKind.USER_INPUT:
                lifted.append((node, spec.target, next(tensors)))
            elif not isinstance(spec.arg, ConstantArgument):  # a number is part of the operators that use it
                self.input(node, node.name)
        for node, name, tensor in lifted:
            self.input(node, name)
            self.initializers[name] = tensor.detach()

    def input(self, node, name):
        self.values[node] = _typed(self.graph.addInput(name), node.meta["val"])

    def call_function(self, node):
        if node.target is operator.getitem:
            self.values[node] = self.named(self.values[node.args[0]][node.args[1]], node)
            return
        try:
            self.values[node] = self.translated(node)
        except Exception as error:
            raise ConversionError(
                f"Error when translating node {node.format_node()}. See the stack trace for more information."
            ) from error

    def translated(self, node):
        kind = _kind(node.target)
        function = registry.get(kind, self.opset)
        if function is None:
            raise DispatchError(
                f"No ONNX function found for {node.target!r}. "
                "Failure message: No decompositions registered for the real-valued input"
            )
        result = function(_FxContext(self.graph, self.opset, node), *self.operands(node))
        if isinstance(node.meta["val"], tuple | list):
            results = tuple(unpack_list(result)) if not isinstance(result, tuple) and is_list(result) else result
            results = results if isinstance(results, tuple) else (results,)
            return tuple(value and _typed(value, val) for value, val in zip(results, node.meta["val"]))
        return self.named(result, node)

    def named(self, value, node):
        """A value gets the name of its node, unless it is an input as it is."""
        if not value.hasDebugName():
            value.setDebugName(node.name)
        return _typed(value, node.meta["val"])

    def operands(self, node):
        """Values for all arguments of the operator's schema."""
        given = dict(zip((a.name for a in node.target._schema.arguments), node.args)) | node.kwargs
        return [self.operand(given.get(a.name, a.default_value)) for a in node.target._schema.arguments]

    def operand(self, value):
        """Numbers and lists of them become constants; None, strings and devices stay for the symbolic functions to read."""
        if isinstance(value, Node):
            return self.values[value]
        value = as_number(value)
        if isinstance(value, tuple | list):
            return self.operand_list(value)
        if isinstance(value, bool | int | float):
            return self.constant(value)
        return self.graph.insertConstant(value)

    def operand_list(self, values):
        if values and all(isinstance(v, int | float) for v in values):
            return self.constant(list(values))
        parts = [self.operand(v) for v in values]
        return self.graph.insertNode(self.graph.createList(TensorType.get(), parts)).output()

    def constant(self, value):
        tensor = readtorch.tensor(value)
        node = self.graph.insertNode(self.graph.create("onnx::Constant").t_("value", tensor))
        return _typed(node.output(), tensor)

    def outputs(self):
        """What the user's program returns. New values of buffers are no outputs."""
        results = self.program.graph.output_node().args[0]
        names = []
        for node, spec in zip(results, self.program.graph_signature.output_specs):
            if spec.kind is OutputKind.USER_OUTPUT and isinstance(node, Node):
                if node.op == "placeholder":  # an output has a node and a name of its own
                    self.values[node].setDebugName(f"{node.name}_orig")
                self.graph.registerOutput(self.values[node])
                names.append(node.name)
        set_names(self.graph, self.graph.outputs(), names, "output")


def _typed(value, val):
    """`value` with the dtype and sizes that the graph of `torch.export` has for it."""
    return value.setType(TensorType(val.dtype, [n if isinstance(n, int) else None for n in val.shape]))


def _optimize(graph, initializers):
    """Batch norms into convolutions; what depends on weights alone is computed; equal weights once."""
    EvalPeephole(graph, initializers)
    ConstantFold(graph, initializers)
    eliminate_unused_inputs(graph, initializers)
    DeduplicateInitializers(graph, initializers)


def _name_the_rest(graph):
    """A node is called after its result, and a result without a name is numbered."""
    number = 0
    for node in graph.nodes():
        for value in node.outputs():
            if not value.hasDebugName():
                value.setDebugName(f"val_{number}")
                number += 1
        node.s_("onnx_name", f"node_{node.outputs()[0].debugName()}")
