"""avg_pool2d and avg_pool3d, forward and backward: a thread adds up the window of one result, or the shares of one element
of the input.

All arrays are (N, C, D, H, W). An image is a volume of one layer.

In PyTorch: `aten/src/ATen/native/cuda/AveragePool2d.cu`, `aten/src/ATen/native/cuda/AveragePool3d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.windows import sliding

from .kernel_utils import first_window, run, voxel
from .pool import check_floating, in_wide, numbers_in_space, volumes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def avg_pool(x, window, stride, padding, count_include_pad, divisor, out):
    """divisor: what to divide by, or 0 for the number of elements in the window."""
    scalars = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_kernel, out, contiguous(x), scalars, out)


def avg_pool_backward(grad, window, stride, padding, count_include_pad, divisor, grad_input):
    scalars = (*window, *stride, *padding, int(count_include_pad), divisor)
    run(average_backward_kernel, grad_input, contiguous(grad), scalars, grad_input)


def extent(o, window, stride, padding, size):
    """(begin, end, length with padding) of a window, cut off at the edges."""
    begin = o * stride - padding
    end = min(begin + window, size + padding)
    return max(begin, 0), min(end, size), end - begin


def divided_by(seen, covered, include_padding, divisor):
    return divisor if divisor != 0 else covered if include_padding else max(seen, 1)


def average_kernel(x, scalars, out):
    wd, wh, ww, sz, sy, sx, pz, py, px, include_padding, divisor = scalars
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        front, back, layers = extent(oz, wd, sz, pz, x.shape[2])
        top, bottom, rows = extent(oy, wh, sy, py, x.shape[3])
        left, right, columns = extent(ox, ww, sx, px, x.shape[4])
        total = x.dtype.type(0)
        for z in range(front, back):
            for y in range(top, bottom):
                for i in range(left, right):
                    total += x[n, c, z, y, i]
        seen = (back - front) * (bottom - top) * (right - left)
        count = divided_by(seen, layers * rows * columns, include_padding, divisor)
        out[n, c, oz, oy, ox] = total / x.dtype.type(count)


def average_backward_kernel(grad, scalars, out):
    wd, wh, ww, sz, sy, sx, pz, py, px, include_padding, divisor = scalars
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, iz, iy, ix = voxel(e, out.shape)
        total = grad.dtype.type(0)
        for oz in range(first_window(iz + pz, wd, sz, wd), min((iz + pz) // sz + 1, grad.shape[2])):
            front, back, layers = extent(oz, wd, sz, pz, out.shape[2])
            for oy in range(first_window(iy + py, wh, sy, wh), min((iy + py) // sy + 1, grad.shape[3])):
                top, bottom, rows = extent(oy, wh, sy, py, out.shape[3])
                for ox in range(first_window(ix + px, ww, sx, ww), min((ix + px) // sx + 1, grad.shape[4])):
                    left, right, columns = extent(ox, ww, sx, px, out.shape[4])
                    seen = (back - front) * (bottom - top) * (right - left)
                    count = divided_by(seen, layers * rows * columns, include_padding, divisor)
                    total += grad[n, c, oz, oy, ox] / grad.dtype.type(count)
        out[n, c, iz, iy, ix] = total


def register(name, dims, kernel_name):
    def how(kernel_size, stride, padding, count_include_pad, divisor_override):
        window = numbers_in_space(sliding(name, dims, kernel_size, stride, padding))
        return *window, count_include_pad, divisor_override or 0

    @cuda_impl(operator_named(name))
    def forward(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, out):
        check_floating(kernel_name, self)
        numbers = how(kernel_size, stride, padding, count_include_pad, divisor_override)
        with in_wide(out) as means:
            avg_pool(volumes(wide(self), dims), *numbers, volumes(means, dims))

    @cuda_impl(operator_named(f"{name}_backward"))
    def backward(
        grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override, grad_input
    ):
        numbers = how(kernel_size, stride, padding, count_include_pad, divisor_override)
        with in_wide(grad_input) as sums:
            avg_pool_backward(volumes(wide(grad_output), dims), *numbers, volumes(sums, dims))


register("avg_pool2d", 2, "avg_pool2d_out_cuda_frame")
register("avg_pool3d", 3, "avg_pool3d_out_cuda")
