"""Layers that a model with integers is written with. In PyTorch: `torch/ao/nn/quantized/modules/__init__.py`."""
