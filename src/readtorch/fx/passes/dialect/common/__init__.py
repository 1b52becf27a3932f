"""For graphs of any operators. In PyTorch: `torch/fx/passes/dialect/common/__init__.py`."""
