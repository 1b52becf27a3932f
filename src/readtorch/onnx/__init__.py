"""ONNX: a model as a file that other programs run.

The model is traced; each operator of the trace is written in ONNX's operators by a symbolic function; the graph
is written as a protobuf message. Needs the package `onnx`, which only an export loads.

In PyTorch: `torch/onnx/__init__.py`, and `torch/onnx/_internal/torchscript_exporter/` for all that is done
here. Explained in the chapter "Multiprocessing and TensorBoard".
"""

from dataclasses import dataclass, field

from readtorch.csrc.onnx import OperatorExportTypes, TensorProtoDataType, TrainingMode
from readtorch.onnx import _constants, errors, symbolic_helper, utils
from readtorch.onnx.errors import OnnxExporterError
from readtorch.onnx.utils import is_in_onnx_export, register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = [
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "errors",
    "export",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "symbolic_helper",
    "unregister_custom_op_symbolic",
    "utils",
]


@dataclass
class ExportSettings:
    """The arguments of `export`, checked."""

    opset_version: int = _constants.ONNX_DEFAULT_OPSET
    input_names: list | None = None
    output_names: list | None = None
    dynamic_axes: dict = field(default_factory=dict)
    export_params: bool = True
    do_constant_folding: bool = True
    training: TrainingMode = TrainingMode.EVAL
    verbose: bool = False
    keep_initializers_as_inputs: bool | None = None
    custom_opsets: dict | None = None


def export(
    model,
    args=(),
    f=None,
    *,
    kwargs=None,
    verbose=None,
    input_names=None,
    output_names=None,
    opset_version=None,
    dynamo=False,
    export_params=True,
    keep_initializers_as_inputs=None,
    dynamic_axes=None,
    training=TrainingMode.EVAL,
    operator_export_type=OperatorExportTypes.ONNX,
    do_constant_folding=True,
    custom_opsets=None,
):
    """Run `model` once on `args` and write what it did to `f`, a path or a file, as ONNX.

    args: a tensor, or a tuple of the arguments; a dict at its end holds those given by name, as does
    `kwargs`. Tensors become inputs, everything else is fixed. input_names, output_names: for the first inputs
    and outputs. dynamic_axes: name -> {axis: name of its size}, or a list of axes: sizes that may differ from
    those of `args`. opset_version: of ONNX's operators, 13 to 20. export_params: False leaves the weights
    out. do_constant_folding: compute what depends on weights alone, and put batch norms into convolutions.
    training: the mode of the modules. verbose: print the graph, and keep source lines in the file.
    keep_initializers_as_inputs: let whoever runs the model give other weights.

    Raises errors.UnsupportedOperatorError for an operator that has no symbolic function,
    errors.SymbolicValueError where something has to be constant and is not, ModuleNotFoundError without the
    package `onnx`.
    """
    if dynamo:  # in PyTorch: True by default, and made of torch.export's graphs, which are not here
        raise ValueError("This exporter traces the model (dynamo=False): readtorch has no torch.export.")
    if not isinstance(args, tuple):
        args = (args,)
    if kwargs is not None:
        args = (*args, kwargs)
    version = _constants.ONNX_DEFAULT_OPSET if opset_version is None else opset_version
    if not _constants.ONNX_MIN_OPSET <= version <= _constants.ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET:
        raise ValueError(f"Unsupported ONNX opset version: {version}")
    axes = utils.validate_dynamic_axes(dynamic_axes, input_names, output_names)
    settings = ExportSettings(
        version,
        input_names,
        output_names,
        axes,
        export_params,
        do_constant_folding,
        training,
        bool(verbose),
        keep_initializers_as_inputs,
        custom_opsets,
    )
    utils.export_model(model, args, f, settings)
