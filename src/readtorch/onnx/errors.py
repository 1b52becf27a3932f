"""What an export raises. In PyTorch: `torch/onnx/errors.py`. Explained in the chapter "Multiprocessing
and TensorBoard".
"""

import textwrap

__all__ = ["OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterWarning(UserWarning):
    """A warning of the exporter."""


class OnnxExporterError(RuntimeError):
    """What every error of the exporter is."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator has no symbolic function, or none for this version of ONNX.

    name: "aten::…"; version: of ONNX's operators; supported_version: from which on there is one, or None.
    """

    def __init__(self, name, version, supported_version=None):
        message = f"Exporting the operator '{name}' to ONNX opset version {version} is not supported"
        if supported_version is not None:
            message += (
                f". Support for this operator was added in version {supported_version}, try exporting with this version"
            )
        elif not name.startswith(("aten::", "prim::", "quantized::")):
            message = (
                f"ONNX export failed on an operator with unrecognized namespace {name}. "
                "If you are trying to export a custom operator, make sure you registered it "
                "with the right domain and version."
            )
        super().__init__(message)


class SymbolicValueError(OnnxExporterError):
    """A symbolic function cannot do with the Value that it was given: a size that is known at run time only, say."""

    def __init__(self, msg, value):
        node = value.node()
        message = (
            f"{msg}  [Caused by the value '{value}' (type '{value.type().str()}') in the TorchScript graph. "
            f"The containing node has kind '{node.kind()}'.] "
        )
        if node.sourceRange():
            message += f"\n    (node defined in {node.sourceRange().source.text})"
        values = [("Inputs", node.inputs()), ("Outputs", node.outputs())]
        parts = [f"{title}:\n{_numbered(each)}" for title, each in values]
        super().__init__(message + "\n\n" + textwrap.indent("\n".join(parts), "    "))


def _numbered(values):
    lines = [f"    #{i}: {value}  (type '{value.type().str()}')" for i, value in enumerate(values)]
    return "\n".join(lines) or "    Empty"
