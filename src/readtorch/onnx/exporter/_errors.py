"""What an export through `torch.export` raises. In PyTorch: `torch/onnx/_internal/exporter/_errors.py`."""

from readtorch.onnx.errors import OnnxExporterError


class TorchExportError(OnnxExporterError):
    """`torch.export` has not got a graph of the model."""


class ConversionError(OnnxExporterError):
    """The graph could not be written in ONNX."""


class DispatchError(ConversionError):
    """An operator has no symbolic function."""
