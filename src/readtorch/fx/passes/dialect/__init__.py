"""Passes for graphs of certain operators. In PyTorch: `torch/fx/passes/dialect/__init__.py`."""
