"""ONNX from the graphs of `torch.export`. In PyTorch: `torch/onnx/_internal/exporter/__init__.py`."""
