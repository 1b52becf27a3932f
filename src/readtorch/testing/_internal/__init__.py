"""What PyTorch's own tests use, as far as public functions need it. In PyTorch: `torch/testing/_internal/__init__.py`."""
