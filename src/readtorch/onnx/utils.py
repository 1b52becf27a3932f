"""The export: from a module to a file, one step after the other.

    trace             get_trace_graph: the graph of one run; parameters are inputs of it
    tidy              optimize_graph: constants are computed, what is not used goes, writes become values
    translate         ToONNX: each operator by its symbolic function
    tidy again        csrc/jit/passes/onnx: batch norms go into convolutions, constants are folded
    name              values and nodes after the modules that they come from
    encode            export_onnx: the protobuf message

In PyTorch: `torch/onnx/_internal/torchscript_exporter/utils.py`. Explained in the chapter "Multiprocessing
and TensorBoard".
"""

import contextlib
import inspect
import os
import re
import warnings

import readtorch
from readtorch.csrc.jit.ir.type import TensorType
from readtorch.csrc.jit.passes.common_subexpression_elimination import EliminateCommonSubexpression
from readtorch.csrc.jit.passes.constant_propagation import ConstantPropagation
from readtorch.csrc.jit.passes.dead_code_elimination import EliminateDeadCode
from readtorch.csrc.jit.passes.lower_tuples import LowerAllTuples
from readtorch.csrc.jit.passes.onnx.constant_fold import ConstantFold
from readtorch.csrc.jit.passes.onnx.deduplicate_initializers import DeduplicateInitializers
from readtorch.csrc.jit.passes.onnx.eval_peephole import EvalPeephole
from readtorch.csrc.jit.passes.onnx.naming import AssignScopedNames, GiveLegibleNames, set_names
from readtorch.csrc.jit.passes.onnx.peephole import PeepholeOptimizeONNX, eliminate_dead_nodes, eliminate_unused_inputs
from readtorch.csrc.jit.passes.onnx.remove_inplace_ops_for_onnx import RemoveInplaceOps
from readtorch.csrc.jit.passes.onnx.to_onnx import ToONNX
from readtorch.csrc.jit.passes.peephole import PeepholeOptimize
from readtorch.csrc.jit.serialization.export import export_onnx
from readtorch.csrc.onnx import TrainingMode, library
from readtorch.jit._trace import flatten, get_trace_graph
from readtorch.onnx import _constants, errors, symbolic_opset9  # noqa: F401  (the last fills the table)
from readtorch.onnx.jit_utils import GraphContext
from readtorch.onnx.registration import registry

_exporting = []  # one entry while an export is under way


def is_in_onnx_export():
    """Whether an export is under way: a module may then avoid what ONNX cannot say."""
    return bool(_exporting)


def export_model(model, args, f, settings):
    """Write `model` to `f`: a path or a file. settings: an `ExportSettings`."""
    library()  # if it is missing, say so before the work
    _exporting.append(model)
    try:
        with _model_mode(model, settings.training):
            graph, initializers = model_to_graph(model, decide_input_format(model, args), settings)
    finally:
        _exporting.pop()
    proto = export_onnx(
        graph,
        initializers if settings.export_params else {},
        settings.opset_version,
        settings.dynamic_axes,
        not settings.verbose,
        bool(settings.keep_initializers_as_inputs),
        settings.custom_opsets,
        producer=("readtorch", readtorch.version.readtorch),  # in PyTorch: "pytorch"
    )
    if settings.verbose:
        print(f"Exported graph: {graph}")
    _write(proto.SerializeToString(), f)


@contextlib.contextmanager
def _model_mode(model, training):
    """The modules in the mode of the export; afterwards each in its own again."""
    if training == TrainingMode.PRESERVE or not isinstance(model, readtorch.nn.Module):
        yield
        return
    modes = {module: module.training for module in model.modules()}
    model.train(training == TrainingMode.TRAINING)
    try:
        yield
    finally:
        for module, mode in modes.items():
            module.training = mode


def decide_input_format(model, args):
    """`args` as positional arguments of `forward`: a dict at the end holds those that are given by name."""
    args = (args,) if isinstance(args, readtorch.Tensor) else tuple(args)
    if not args or not isinstance(args[-1], dict):
        return args
    parameters = inspect.signature(getattr(model, "forward", model)).parameters
    *given, named = args
    for name in list(parameters)[len(given) :]:
        if name in named or parameters[name].default is not inspect.Parameter.empty:
            given.append(named.get(name, parameters[name].default))
    return tuple(given)


def model_to_graph(model, args, settings):
    """The ONNX graph of a module, and its initializers: name of an input of the graph -> tensor."""
    graph, result, state = get_trace_graph(model, args)
    optimize_graph(graph)
    refuse_control_flow(graph, settings.opset_version)
    count = len(graph.inputs()) - len(state)
    set_dynamic_input_shape(graph.inputs()[:count], settings)
    graph = ToONNX(
        graph,
        lambda new, node, inputs: run_symbolic_function(new, node, inputs, settings.opset_version),
        readtorch.tensor,
    )
    PeepholeOptimizeONNX(graph)
    eliminate_dead_nodes(graph)
    _check_outputs(graph, result)
    set_names(graph, graph.inputs()[:count], settings.input_names, "input")
    set_names(graph, graph.outputs(), settings.output_names, "output")
    initializers = {name: tensor.detach() for name, tensor in state.items()}
    if settings.do_constant_folding:
        if settings.training == TrainingMode.EVAL:
            EvalPeephole(graph, initializers)
        ConstantFold(graph, initializers)
    eliminate_unused_inputs(graph, initializers)
    GiveLegibleNames(graph)
    if settings.keep_initializers_as_inputs is not True:
        DeduplicateInitializers(graph, initializers)
    AssignScopedNames(graph)
    graph.lint()
    return graph, initializers


def optimize_graph(graph):
    """What can be done before the operators are ONNX's."""
    LowerAllTuples(graph)
    RemoveInplaceOps(graph)
    ConstantPropagation(graph)
    EliminateDeadCode(graph)
    EliminateCommonSubexpression(graph)
    PeepholeOptimize(graph)


def refuse_control_flow(graph, opset):
    """Scripted branches and loops that depend on inputs. In PyTorch: they become ONNX's If and Loop."""
    for node in graph.nodes():
        if node.blocks():
            raise errors.UnsupportedOperatorError(node.kind(), opset)


def set_dynamic_input_shape(inputs, settings):
    """Forget the sizes of the axes that `dynamic_axes` names. See Note [Sizes that a trace saw]."""
    for value, name in zip(inputs, settings.input_names or [v.debugName() for v in inputs]):
        axes = settings.dynamic_axes.get(name, {})
        if axes:
            sizes = [None if i in axes else n for i, n in enumerate(value.type().sizes())]
            value.setType(TensorType(value.type().dtype(), sizes))


def run_symbolic_function(graph, node, inputs, opset):
    """What the operator of `node` is in ONNX. Raises UnsupportedOperatorError if no symbolic function is registered."""
    function = registry.get(node.kind(), opset)
    if function is None:
        raise errors.UnsupportedOperatorError(node.kind(), opset, registry.first_version(node.kind()))
    return function(GraphContext(graph, opset, node), *inputs)


def _check_outputs(graph, result):
    """Every tensor that the model returned is an output, with the type that it had."""
    for value, tensor in zip(graph.outputs(), flatten(result)):
        if value.type().dtype() is None:
            value.setType(TensorType(tensor.dtype, [None] * tensor.dim()))


def validate_dynamic_axes(dynamic_axes, input_names, output_names):
    """`dynamic_axes` with a name for every axis: a list of axes gets automatic ones."""
    known, named = {*(input_names or ()), *(output_names or ())}, {}
    for key, axes in (dynamic_axes or {}).items():
        if key not in known:
            warnings.warn(f"Provided key {key} for dynamic axes is not a valid input/output name", stacklevel=3)
        if isinstance(axes, list):
            warnings.warn(
                "No names were found for specified dynamic axes of provided input."
                f"Automatically generated names will be applied to each dynamic axes of input {key}",
                stacklevel=3,
            )
            if not all(isinstance(axis, int) for axis in axes):
                raise ValueError("The type of axis index is expected to be an integer")
            axes = {axis: f"{key}_dynamic_axes_{i}" for i, axis in enumerate(axes, 1)}
        named[key] = axes
    return named


def _write(message, f):
    if isinstance(f, (str, os.PathLike)):
        with open(f, "wb") as file:
            file.write(message)
    else:
        f.write(message)


_OPERATOR_NAME = re.compile(r"^[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*$")


def register_custom_op_symbolic(symbolic_name, symbolic_fn, opset_version):
    """Let `symbolic_fn(g, *values)` say the operator "domain::name" in ONNX, from `opset_version` on.

    Raises OnnxExporterError for a name of another form, ValueError for one in ONNX's own domain.
    """
    registry.register(_operator_name(symbolic_name), opset_version, symbolic_fn, custom=True)


def unregister_custom_op_symbolic(symbolic_name, opset_version):
    """Take away what `register_custom_op_symbolic` has put there."""
    registry.unregister(_operator_name(symbolic_name), opset_version)


def _operator_name(name):
    name = f"aten{name}" if name.startswith("::") else name
    if not _OPERATOR_NAME.match(name):
        raise errors.OnnxExporterError(
            f"Failed to register operator {name}. The symbolic name must match the format domain::name, "
            "and should start with a letter and contain only alphanumeric characters"
        )
    if name.startswith("onnx::"):
        raise ValueError(f"Failed to register operator {name}. onnx domain cannot be modified.")
    return name
