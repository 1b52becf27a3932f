"""adaptive_max_pool3d, forward and backward.

In PyTorch: `aten/src/ATen/native/cuda/AdaptiveMaxPooling3d.cu`.
"""

from numba import cuda

from .kernel_utils import begin_of, end_of, largest, run, voxel
from .pool import check_floating, in_wide, put_back, volumes
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def adaptive_max_pool3d(x, out, indices):
    run(adaptive_max_kernel, out, contiguous(x), out, indices)


def adaptive_start(o, places, size):
    return begin_of(o, places, size), end_of(o, places, size), 1


def adaptive_max_kernel(x, out, indices):
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = adaptive_start(oz, out.shape[2], x.shape[2])
        rows = adaptive_start(oy, out.shape[3], x.shape[3])
        columns = adaptive_start(ox, out.shape[4], x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = largest(x, n, c, layers, rows, columns)


@cuda_impl(operator_named("adaptive_max_pool3d"))
def adaptive_max_pool3d_cuda(self, output_size, values, indices):
    check_floating("adaptive_max_pool3d_cuda", self)
    with in_wide(values) as out:
        adaptive_max_pool3d(volumes(wide(self)), volumes(out), volumes(indices))


@cuda_impl(operator_named("adaptive_max_pool3d_backward"))
def adaptive_max_pool3d_backward_cuda(grad_output, self, indices, grad_input):
    put_back(grad_output, indices, 3, grad_input)
