"""Reductions: many elements become one. Sums, truth values, extremes, variance; and scans, which keep every step.

In PyTorch: `aten/src/ATen/native/ReduceOps.cpp`.
"""

from . import all_any, cumulative, min_max, sum, var_std
