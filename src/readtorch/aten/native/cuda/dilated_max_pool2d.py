"""max_pool2d, forward and backward. Forward an image is a volume of one layer (dilated_max_pool3d.py).

Grid: blocks of 256 threads with a grid-stride loop. Backward a thread gathers for one element of the input what the
windows that saw it send back: no two threads write one place, and no atomics are needed.

In PyTorch: `aten/src/ATen/native/cuda/DilatedMaxPool2d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.windows import sliding

from .dilated_max_pool3d import max_pool3d
from .kernel_utils import first_window, position, run
from .pool import check_floating, in_wide, numbers_in_space, numbers_of, planes, volumes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def max_pool2d_backward(grad, indices, window, stride, padding, dilation, grad_input):
    scalars = (*window, *stride, *padding, *dilation)
    run(max_backward_kernel, grad_input, contiguous(grad), contiguous(indices), scalars, grad_input)


def max_backward_kernel(grad, indices, scalars, out):
    wh, ww, sy, sx, py, px, dy, dx = scalars
    width = out.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iy, ix = position(e, out.shape)
        total = grad.dtype.type(0)
        for oy in range(first_window(iy + py, wh, sy, (wh - 1) * dy + 1), min((iy + py) // sy + 1, grad.shape[2])):
            for ox in range(first_window(ix + px, ww, sx, (ww - 1) * dx + 1), min((ix + px) // sx + 1, grad.shape[3])):
                if indices[n, c, oy, ox] == iy * width + ix:
                    total += grad[n, c, oy, ox]
        out[n, c, iy, ix] = total


@cuda_impl(operator_named("max_pool2d_with_indices"))
def max_pool2d_cuda(self, kernel_size, stride, padding, dilation, ceil_mode, values, indices):
    check_floating("max_pool2d_with_indices_out_cuda_frame", self)
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation)
    with in_wide(values) as out:
        x, *outs = [volumes(t, 2) for t in (wide(self), out, indices)]
        max_pool3d(x, *numbers_in_space(slide), (1, *slide.dilation), *outs)


@cuda_impl(operator_named("max_pool2d_with_indices_backward"))
def max_pool2d_backward_cuda(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input):
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation)
    how = (*numbers_of(slide), slide.dilation)
    with in_wide(grad_input) as sums:
        max_pool2d_backward(planes(wide(grad_output)), planes(indices), *how, planes(sums))
