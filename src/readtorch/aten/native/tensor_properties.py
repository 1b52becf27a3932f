"""A tensor's sizes, strides, offset and number of elements as operators: a graph with sizes that are left open reads them so.

In PyTorch: `aten/src/ATen/native/TensorProperties.cpp`.
"""

from readtorch.aten.memory_overlap import has_internal_overlap
from readtorch.aten.native_function import native_function
from readtorch.c10.tensor_impl import storage_offset, strides_of

sym_size = native_function("sym_size.int(Tensor self, int dim) -> SymInt", "")
sym_stride = native_function("sym_stride.int(Tensor self, int dim) -> SymInt", "")
sym_numel = native_function("sym_numel(Tensor self) -> SymInt", "")
sym_storage_offset = native_function("sym_storage_offset(Tensor self) -> SymInt", "")


# 0: no element is shown twice; 1: some are, along an expanded dimension; 2: not found out.
_debug_has_internal_overlap = native_function("_debug_has_internal_overlap(Tensor self) -> int", "function")


@_debug_has_internal_overlap.compose
def _debug_has_internal_overlap_composite(self):
    return has_internal_overlap(self)


@sym_size.compose
def sym_size_composite(self, dim):
    return self._array.shape[dim]


@sym_stride.compose
def sym_stride_composite(self, dim):
    return strides_of(self)[dim]


@sym_numel.compose
def sym_numel_composite(self):
    return self._array.size


@sym_storage_offset.compose
def sym_storage_offset_composite(self):
    return storage_offset(self)
