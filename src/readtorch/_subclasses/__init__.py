"""Tensors and modes that compute something else than elements. In PyTorch: `torch/_subclasses/__init__.py`."""
