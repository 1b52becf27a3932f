"""What passes share. In PyTorch: `torch/fx/passes/utils/__init__.py`."""
