"""Expressions of sizes. In PyTorch: `torch/utils/_sympy/__init__.py`, on top of the library sympy, which is not needed here.

functions.py   the expressions
"""
