"""`Variable`, the old name of a tensor, and the engine that it gives access to.

In PyTorch: `torch/autograd/variable.py`. Explained in the chapter "Autograd".
"""

from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.autograd.python_engine import ImperativeEngine
from readtorch.csrc.autograd.python_legacy_variable import LegacyVariableBase

__all__ = ["VariableMeta", "Variable"]


class VariableMeta(type):
    """Every tensor counts as a Variable."""

    def __instancecheck__(cls, other):
        return isinstance(other, TensorImpl)


class Variable(LegacyVariableBase, metaclass=VariableMeta):
    """`Variable(tensor, requires_grad=False)` is a tensor that shares memory with `tensor` and has no history."""

    _execution_engine = ImperativeEngine()
