"""A Python function for every element: `apply_`, `map_`, `map2_`. Slow, and invisible to autograd.

In PyTorch: `torch/csrc/utils/tensor_apply.cpp`. Explained in the chapter "Tensor and Storage".
"""

import numpy as np

from readtorch.aten.native_function import python_binding
from readtorch.c10.cow import mutable_array
from readtorch.c10.tensor_impl import TensorImpl, dtype_of, legacy_type_name

from .tensor_new import as_number


@python_binding("apply_", "method")
def apply_(self, callable):
    """Replace each element x by `callable(x)`, in place. Raises RuntimeError for a tensor that requires grad."""
    return _apply("apply_", self, {}, callable)


@python_binding("map_", "method")
def map_(self, other, callable):
    """Replace each element x by `callable(x, y)`, y the element of `other` at the same position."""
    return _apply("map_", self, {"other": other}, callable)


@python_binding("map2_", "method")
def map2_(self, x, y, callable):
    """Replace each element by `callable(element, element of x, element of y)`."""
    return _apply("map2_", self, {"x": x, "y": y}, callable)


def _apply(method, self, others, callable):
    _check(method, self, others)
    arrays = [mutable_array(self)] + [t.expand(self.shape)._array for t in others.values()]
    dtype = dtype_of(self)
    for index in np.ndindex(self._array.shape):
        result = callable(*[array[index].item() for array in arrays])
        self._array[index] = as_number(result, dtype)
    return self


def _check(method, self, others):
    """Raises unless all are tensors of one dtype and none requires grad."""
    for position, (name, other) in enumerate(others.items(), start=1):
        if not isinstance(other, TensorImpl):
            raise TypeError(
                f"{method}(): argument '{name}' (position {position}) must be Tensor, not {type(other).__name__}"
            )
    if any(t.requires_grad for t in (self, *others.values())):
        raise RuntimeError(
            f"Can't call {method}() on Variable that requires grad. Use var.detach().{method}() instead."
        )
    for name, other in others.items():
        if dtype_of(other) is not dtype_of(self):
            named = f"argument '{name}'" if len(others) > 1 else f"'{name}'"
            raise TypeError(f"{method}: expected {legacy_type_name(self)} for {named} (got {legacy_type_name(other)})")
