"""Distributions without a closed form: samples by rejection, and the derivatives of gamma and beta samples by their
parameters.

In PyTorch: `aten/src/ATen/native/Distributions.h`.
"""
