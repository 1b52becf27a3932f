"""The parts of `readtorch.export` that programs do not call. In PyTorch: `torch/_export/__init__.py`."""
