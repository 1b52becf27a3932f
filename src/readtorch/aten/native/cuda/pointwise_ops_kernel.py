"""Functions of three tensors: lerp, addcmul, addcdiv.

In PyTorch: `aten/src/ATen/native/cuda/PointwiseOpsKernel.cu`, `aten/src/ATen/native/cuda/Lerp.cu`.
"""

from readtorch.aten.native import math as f

from .register_dispatch_key import cuda_kernel, operator_named
from .tensor_iterator import apply, apply_
from .unary_ops_kernel import declare


@cuda_kernel(operator_named("lerp.Scalar"))
def lerp_number_cuda(self, end, weight):
    return apply(f.lerp_by_number, [self, end], (weight,))


@cuda_kernel(operator_named("lerp.Scalar").inplace)
def lerp_number_cuda_(self, end, weight):
    return apply_(f.lerp_by_number, self, [end], (weight,))


@cuda_kernel(operator_named("lerp.Tensor"))
def lerp_cuda(self, end, weight):
    return apply(f.lerp, [self, end, weight])


def with_value(name, function):
    declare(
        name,
        lambda self, tensor1, tensor2, value: apply(function, [self, tensor1, tensor2], (value,)),
        lambda self, tensor1, tensor2, value: apply_(function, self, [tensor1, tensor2], (value,)),
    )


with_value("addcmul", f.addcmul)
with_value("addcdiv", f.addcdiv)
