"""ONNX: a model as a file that other programs run.

The model becomes a graph, by `torch.export` or, with `dynamo=False`, by a trace; each of its operators is written in ONNX's
operators by a symbolic function; the result is written as a protobuf message. Needs the package `onnx`, which only an export
loads.

In PyTorch: `torch/onnx/__init__.py`, `torch/onnx/_internal/exporter/` for `exporter`, and
`torch/onnx/_internal/torchscript_exporter/` for the rest. Explained in the chapter "export and ONNX".
"""

import warnings
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
    dynamo=True,
    dynamic_shapes=None,
    optimize=True,
    export_params=True,
    keep_initializers_as_inputs=None,
    dynamic_axes=None,
    training=TrainingMode.EVAL,
    operator_export_type=OperatorExportTypes.ONNX,
    do_constant_folding=True,
    custom_opsets=None,
):
    """Write what `model` does with `args` to `f`, a path or a file, as ONNX. Returns an ONNXProgram if `dynamo`, else None.

    args: a tensor, or a tuple of the arguments; a dict at its end holds those given by name, as does `kwargs`. Tensors become
    inputs, everything else is fixed. input_names, output_names: for the first ones. opset_version: of ONNX's operators, 13 to 20.

    dynamo: get the graph by `torch.export`, as its arguments say; `model` may be an ExportedProgram. dynamic_shapes: as there.
    optimize: compute what depends on weights alone, and put batch norms into convolutions. The other arguments are for
    `dynamo=False`, which runs the model once and traces it.

    dynamic_axes: name -> {axis: name of its size}, or a list of axes: sizes that may differ from those of `args`.
    export_params: False leaves the weights out. do_constant_folding: as `optimize`. training: the mode of the modules. verbose:
    print the graph, and keep source lines in the file. keep_initializers_as_inputs: let whoever runs the model give other weights.

    Raises OnnxExporterError for what has no graph, no symbolic function, or a size that must be constant and is not;
    ModuleNotFoundError without the package `onnx`.
    """
    if not isinstance(args, tuple):
        args = (args,)
    if kwargs is not None:
        args = (*args, kwargs)
    version = _constants.ONNX_DEFAULT_OPSET if opset_version is None else opset_version
    if not _constants.ONNX_MIN_OPSET <= version <= _constants.ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET:
        raise ValueError(f"Unsupported ONNX opset version: {version}")
    if dynamo:
        return _export_through_export(model, args, f, version, dynamic_shapes, input_names, output_names, optimize)
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


def _export_through_export(model, args, f, version, dynamic_shapes, input_names, output_names, optimize):
    from .exporter import _core  # it needs `torch.export`, which takes a while to import

    if getattr(model, "training", False):
        warnings.warn(
            "Exporting a model while it is in training mode. Please ensure that this is intended, as it may lead to different "
            "behavior during inference. Calling model.eval() before export is recommended.",
            stacklevel=3,
        )
    *args, kwargs = (*args, {}) if not args or not isinstance(args[-1], dict) else args
    names = {"input_names": input_names, "output_names": output_names}
    program = _core.export(
        model, tuple(args), kwargs, dynamic_shapes=dynamic_shapes, optimize=optimize, opset_version=version, **names
    )
    if f is not None:
        program.save(f)
    return program
