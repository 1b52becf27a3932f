"""`at`: every operator's Python binding by name, for code that is itself part of readtorch.

In PyTorch: the functions of the C++ namespace `at::`, generated from `aten/src/ATen/templates/Functions.h`.
Explained in the chapter "One operator call".
"""

from . import gen_python_functions
from .native_function import packets


class _Functions:
    """Names of operators -> functions. Bindings are made at their first use, so import stays fast."""

    def __getattr__(self, name):
        binding = _internal("torch", name) or _internal("nn", name) or _internal("linalg", name.removeprefix("linalg_"))
        if binding is None:
            raise AttributeError(f"readtorch has no operator named '{name}'")
        setattr(self, name, binding)
        return binding


def _internal(module, name):
    packet = packets.get((module, name))
    return None if packet is None else gen_python_functions.make_internal_binding(packet)


def binding_of(module, name):
    """The Python function of an operator as users call it, or None."""
    packet = packets.get((module, name))
    if packet is None:
        return None
    return gen_python_functions.make_binding(packet, is_method=False)


at = _Functions()
