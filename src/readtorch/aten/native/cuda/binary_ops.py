"""Quotients of two tensors, rounded as an argument says, and steps. The other functions follow from their pages: tensor_iterator.py.

In PyTorch: `aten/src/ATen/native/cuda/BinaryDivTruncKernel.cu`, `aten/src/ATen/native/cuda/BinaryDivFloorKernel.cu`.
"""

from readtorch.aten.native import math as f
from readtorch.aten.native.binary_ops.division import div_mode
from readtorch.aten.native.binary_ops.floating_point import heaviside
from readtorch.aten.native.tensor_iterator import float_result_type, result_type
from readtorch.c10 import scalar_type
from readtorch.c10.tensor_impl import dtype_of

from .register_dispatch_key import cuda_impl
from .tensor_iterator import run

QUOTIENTS = {None: f.div, "floor": f.floor_divide, "trunc": f.trunc_divide}


@cuda_impl(div_mode)
def div_mode_cuda(self, other, rounding_mode, out):
    common = (result_type if rounding_mode else float_result_type)(self, other)
    run(QUOTIENTS[rounding_mode], [self, other], (), common, out._array)


@cuda_impl(heaviside)
def heaviside_cuda(self, values, out):
    function = f.nonzero_or if dtype_of(out) is scalar_type.bool else f.heaviside
    run(function, [self, values], (), dtype_of(out), out._array)
