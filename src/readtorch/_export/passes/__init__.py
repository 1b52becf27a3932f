"""Steps from a traced graph to an exported one. In PyTorch: `torch/_export/passes/__init__.py`."""
