"""Layers that make integers of their inputs themselves. In PyTorch: `torch/ao/nn/quantized/dynamic/modules/__init__.py`."""
