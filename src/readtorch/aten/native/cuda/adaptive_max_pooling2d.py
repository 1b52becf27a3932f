"""adaptive_max_pool2d, forward and backward. Forward an image is a volume of one layer (adaptive_max_pooling3d.py).

In PyTorch: `aten/src/ATen/native/cuda/AdaptiveMaxPooling2d.cu`.
"""

from numba import cuda

from .adaptive_max_pooling3d import adaptive_max_pool3d
from .kernel_utils import position, run
from .pool import check_floating, in_wide, planes, volumes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def adaptive_max_pool2d_backward(grad, indices, grad_input):
    run(adaptive_max_backward_kernel, grad_input, contiguous(grad), contiguous(indices), grad_input)


def adaptive_max_backward_kernel(grad, indices, out):
    down, across = grad.shape[2], grad.shape[3]
    height, width = out.shape[2], out.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(iy * down // height, ((iy + 1) * down + height - 1) // height):
            for ox in range(ix * across // width, ((ix + 1) * across + width - 1) // width):
                if indices[n, c, oy, ox] == iy * width + ix:
                    total += grad[n, c, oy, ox]
        out[n, c, iy, ix] = total


@cuda_impl(operator_named("adaptive_max_pool2d"))
def adaptive_max_pool2d_cuda(self, output_size, values, indices):
    check_floating("adaptive_max_pool2d_cuda", self)
    with in_wide(values) as out:
        adaptive_max_pool3d(*[volumes(t, 2) for t in (wide(self), out, indices)])


@cuda_impl(operator_named("adaptive_max_pool2d_backward"))
def adaptive_max_pool2d_backward_cuda(grad_output, self, indices, grad_input):
    with in_wide(grad_input) as sums:
        adaptive_max_pool2d_backward(planes(wide(grad_output)), planes(indices), planes(sums))
