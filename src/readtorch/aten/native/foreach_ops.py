"""The same operation for all tensors of a list.

In PyTorch: `aten/src/ATen/native/ForeachOpsKernels.cpp`, where nearly every pointwise operator has such a
form. On the CPU they are loops; on a GPU they save launching a kernel for each tensor. Here is the one that
fused optimizers need.
"""
from ..native_function import native_function
from .multi_tensor_apply import multi_tensor_apply

_foreach_add_ = native_function("_foreach_add_.Scalar(Tensor(a!)[] self, Scalar scalar) -> ()")


@_foreach_add_.kernel
def foreach_add_cpu_(tensors, scalar):
    from .cpu.foreach_kernels import add
    multi_tensor_apply(add, [tensors], [scalar])
