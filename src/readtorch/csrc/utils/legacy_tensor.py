"""What `Tensor(…)` makes, the constructor from before `tensor` and `empty`.

In PyTorch: `legacy_tensor_ctor` in `torch/csrc/utils/tensor_new.cpp`. Explained in the chapter "Tensor and Storage".
"""
from ...aten.functions import at
from ...c10 import scalar_type
from ...c10.size import Size
from ...c10.tensor_impl import TensorImpl


def legacy_tensor_new(data=(), *sizes):
    """Of sizes an uninitialized tensor, of a sequence a tensor of the default dtype, of a tensor an alias.

    Raises TypeError for anything else.
    """
    if isinstance(data, TensorImpl):
        return at.alias(data)
    if isinstance(data, Size):
        return at.empty(data)
    if type(data) is int:
        return at.empty((data, *sizes))
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if sizes or not (hasattr(data, "__len__") and hasattr(data, "__getitem__")):
        raise TypeError(f"new(): data must be a sequence (got {type(data).__name__})")
    return at.tensor(data, dtype=scalar_type.get_default_dtype())
