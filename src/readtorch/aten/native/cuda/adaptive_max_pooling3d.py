"""adaptive_max_pool3d, forward and backward.

In PyTorch: `aten/src/ATen/native/cuda/AdaptiveMaxPooling3d.cu`.
"""

from numba import cuda

from readtorch.aten.native.pooling.adaptive import check_dimensions, check_not_empty
from readtorch.aten.native.pooling.windows import check_sizes
from readtorch.aten.tensor_utils import check_like_indices

from .kernel_utils import begin_of, end_of, largest, run, voxel
from .pool import check_floating, in_type_of, put_back, volumes
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, operator_named
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


@cuda_kernel(operator_named("adaptive_max_pool3d"))
def adaptive_max_pool3d_cuda(self, output_size):
    shape = self._array.shape
    check_dimensions("adaptive_max_pool3d", shape, 3, ":")
    check_not_empty("adaptive_max_pool3d", shape)
    check_sizes((*shape[:-3], *output_size))
    check_floating("adaptive_max_pool3d_cuda", self)
    x = wide(self)
    values, indices = empty(sizes := (*shape[:-3], *output_size), x._array.dtype), empty(sizes, LONG)
    adaptive_max_pool3d(volumes(x), volumes(values), volumes(indices))
    return in_type_of(self, values), indices


@cuda_kernel(operator_named("adaptive_max_pool3d_backward"))
def adaptive_max_pool3d_backward_cuda(grad_output, self, indices):
    check_not_empty("adaptive_max_pool3d_backward", grad_output._array.shape, what="grad_output")
    check_like_indices("adaptive_max_pool3d_backward", grad_output, indices, self, 3, "gradOutput")
    return in_type_of(self, put_back(grad_output, self, indices, 3).contiguous())
