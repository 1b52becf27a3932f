"""aten: the operators. Schemas and dispatcher here, kernels and derivatives in `native/`.

In PyTorch: `aten/src/ATen`. Explained in the chapter "One operator call".
"""
