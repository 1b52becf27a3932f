"""Numbers of the exporter. In PyTorch: `torch/onnx/_constants.py`."""

ONNX_MIN_OPSET = 13  # in PyTorch: 7; before 13 many operators took as attributes what are inputs now
ONNX_TORCHSCRIPT_EXPORTER_MAX_OPSET = 20
ONNX_DEFAULT_OPSET = 20

INT64_MAX = 9223372036854775807
