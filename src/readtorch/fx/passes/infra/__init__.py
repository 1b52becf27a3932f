"""What passes are, and how they run one behind the other. In PyTorch: `torch/fx/passes/infra/__init__.py`."""
