"""What writes code: kernels (`numba_cpu.py`), and the function that calls them (`wrapper.py`).

In PyTorch: `torch/_inductor/codegen/__init__.py`.
"""
