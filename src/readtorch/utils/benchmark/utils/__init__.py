"""What `readtorch.utils.benchmark` is made of. In PyTorch: `torch/utils/benchmark/utils/__init__.py`."""
