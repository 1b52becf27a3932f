"""max_pool3d, forward and backward.

All arrays are (N, C, D, H, W). An index (int64) says where in its volume, counted through, a maximum lies. Grid:
blocks of 256 threads with a grid-stride loop, a thread for each result. A maximum sends its gradient to one position:
that is `scatter_add` of scatter_gather_kernel.py, along the volume.

In PyTorch: `aten/src/ATen/native/cuda/DilatedMaxPool3d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.windows import sliding

from .kernel_utils import largest, run, voxel
from .pool import in_wide, numbers_of, put_back, volumes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def max_pool3d(x, window, stride, padding, dilation, out, indices):
    run(max_kernel, out, contiguous(x), (*window, *stride, *padding, *dilation), out, indices)


def sliding_start(o, window, stride, padding, dilation, size):
    """(begin, end, step) of the o-th of the windows that slide; what lies in the padding is left out."""
    begin = o * stride - padding
    end = min(begin + (window - 1) * dilation + 1, size)
    while begin < 0:
        begin += dilation
    return begin, end, dilation


def max_kernel(x, scalars, out, indices):
    wd, wh, ww, sz, sy, sx, pz, py, px, dz, dy, dx = scalars
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = sliding_start(oz, wd, sz, pz, dz, x.shape[2])
        rows = sliding_start(oy, wh, sy, py, dy, x.shape[3])
        columns = sliding_start(ox, ww, sx, px, dx, x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = largest(x, n, c, layers, rows, columns)


@cuda_impl(operator_named("max_pool3d_with_indices"))
def max_pool3d_cuda(self, kernel_size, stride, padding, dilation, ceil_mode, values, indices):
    slide = sliding("max_pool3d", 3, kernel_size, stride, padding, dilation)
    with in_wide(values) as out:
        max_pool3d(volumes(wide(self)), *numbers_of(slide), slide.dilation, volumes(out), volumes(indices))


@cuda_impl(operator_named("max_pool3d_with_indices_backward"))
def max_pool3d_backward_cuda(grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices, grad_input):
    put_back(grad_output, indices, 3, grad_input)
