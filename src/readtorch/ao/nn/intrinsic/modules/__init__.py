"""Layers that follow each other, under one name. In PyTorch: `torch/ao/nn/intrinsic/modules/__init__.py`."""
