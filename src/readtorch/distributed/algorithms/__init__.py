"""What is built on collectives. In PyTorch: `torch/distributed/algorithms/__init__.py`."""
