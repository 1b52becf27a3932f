"""max_pool2d, forward and backward.

Grid: blocks of 256 threads with a grid-stride loop. Forward a thread makes one result. Backward it gathers
for one element of the input what the windows that saw it send back: no two threads write one place, and no
atomics are needed.

In PyTorch: `aten/src/ATen/native/cuda/DilatedMaxPool2d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.windows import sliding

from .kernel_utils import first_window, position, run
from .pool import check_floating, in_wide, numbers_of, planes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def max_pool2d(x, window, stride, padding, dilation, out, indices):
    """x (N, C, H, W). indices (int64): where in its image, counted through, each maximum lies."""
    run(max_kernel, out, contiguous(x), (*window, *stride, *padding, *dilation), out, indices)


def max_pool2d_backward(grad, indices, window, stride, padding, dilation, grad_input):
    scalars = (*window, *stride, *padding, *dilation)
    run(max_backward_kernel, grad_input, contiguous(grad), contiguous(indices), scalars, grad_input)


def max_kernel(x, scalars, out, indices):
    wh, ww, sy, sx, py, px, dy, dx = scalars
    height, width = x.shape[2], x.shape[3]
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oy, ox = position(e, out.shape)
        top, left = oy * sy - py, ox * sx - px
        while top < 0:
            top += dy
        while left < 0:
            left += dx
        largest, index = x[n, c, top, left], top * width + left
        for iy in range(top, min(oy * sy - py + (wh - 1) * dy + 1, height), dy):
            for ix in range(left, min(ox * sx - px + (ww - 1) * dx + 1, width), dx):
                v = x[n, c, iy, ix]
                if v > largest or v != v:
                    largest, index = v, iy * width + ix
        out[n, c, oy, ox], indices[n, c, oy, ox] = largest, index


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
        max_pool2d(planes(wide(self)), *numbers_of(slide), slide.dilation, planes(out), planes(indices))


@cuda_impl(operator_named("max_pool2d_with_indices_backward"))
def max_pool2d_backward_cuda(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input):
    slide = sliding("max_pool2d", 2, kernel_size, stride, padding, dilation)
    how = (*numbers_of(slide), slide.dilation)
    with in_wide(grad_input) as sums:
        max_pool2d_backward(planes(wide(grad_output)), planes(indices), *how, planes(sums))
