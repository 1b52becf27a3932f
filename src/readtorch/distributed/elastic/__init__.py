"""Ranks that are started, looked after and started again. In PyTorch: `torch/distributed/elastic/__init__.py`.

`readtorchrun` (`readtorch/distributed/run.py`) is the way in.
"""
