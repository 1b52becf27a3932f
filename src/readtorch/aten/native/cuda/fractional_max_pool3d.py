"""Fractional max pooling of images (volumes of depth 1) and volumes: windows at random distances.

In PyTorch: `aten/src/ATen/native/cuda/FractionalMaxPool3d.cu`, `aten/src/ATen/native/cuda/FractionalMaxPool2d.cu`.
"""

from numba import cuda

from .kernel_utils import largest, run, voxel
from .pool import check_floating, in_wide, put_back
from .register_dispatch_key import cuda_impl, operator_named
from .rows import contiguous
from .softmax import wide


def fractional_max_pool(x, window, samples, columns, out, indices):
    """samples (N, C, dimensions): numbers of [0, 1); columns: which of them belongs to depth, height and
    width."""
    run(fractional_max_kernel, out, contiguous(x), window, contiguous(samples), columns, out, indices)


def fractional_start(o, places, window, sample, size):
    """Equal steps of a fractional length after a random shift; the last window ends with the volume."""
    begin = size - window
    if o < places - 1:
        step = type(sample)(size - window) / type(sample)(places - 1)
        begin = int((type(sample)(o) + sample) * step) - int(sample * step)
    return begin, begin + window, 1


def fractional_max_kernel(x, window, samples, places, out, indices):
    for e in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        n, c, oz, oy, ox = voxel(e, out.shape)
        layers = fractional_start(oz, out.shape[2], window[0], samples[n, c, places[0]], x.shape[2])
        rows = fractional_start(oy, out.shape[3], window[1], samples[n, c, places[1]], x.shape[3])
        columns = fractional_start(ox, out.shape[4], window[2], samples[n, c, places[2]], x.shape[4])
        out[n, c, oz, oy, ox], indices[n, c, oz, oy, ox] = largest(x, n, c, layers, rows, columns)


def fractional_operators(dims, columns):
    """columns: which of a plane's random numbers belongs to depth, height and width."""
    name = f"fractional_max_pool{dims}d"
    one = (1,) * (3 - dims)

    @cuda_impl(operator_named(name))
    def pool(self, kernel_size, output_size, random_samples, values, indices):
        check_floating(f"{name}_out_cuda_frame", self)
        shape = self._array.shape
        planes = (*(1, *shape)[-dims - 2 : -dims], *one)
        seen = contiguous(wide(self)._array).reshape(*planes, *shape[-dims:])
        with in_wide(values) as out:
            results = [t._array.reshape(*planes, *output_size) for t in (out, indices)]
            fractional_max_pool(seen, (*one, *kernel_size), wide(random_samples)._array, columns, *results)

    @cuda_impl(operator_named(f"{name}_backward"))
    def backward(grad_output, self, kernel_size, output_size, indices, grad_input):
        put_back(grad_output, indices, dims, grad_input)


fractional_operators(2, (0, 1, 0))  # the width's number comes first; a depth of 1 needs none
fractional_operators(3, (0, 1, 2))
