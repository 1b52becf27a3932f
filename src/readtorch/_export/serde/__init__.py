"""Exported programs as json. In PyTorch: `torch/_export/serde/__init__.py`."""
