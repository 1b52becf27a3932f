"""Limits. In PyTorch: `torch/_dynamo/config.py`."""

recompile_limit = 8  # graphs for one function; what comes then runs as it is written
