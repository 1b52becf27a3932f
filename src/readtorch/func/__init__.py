"""Modules and functions without state. In PyTorch: `torch/func/__init__.py`."""

from readtorch.func._functional_call import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
