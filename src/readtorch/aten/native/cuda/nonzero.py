"""nonzero and nonzero_static: the running count of what is not zero (scan_kernels.py) is each element's index in the
result.

The host asks for the total, since it is the size of the result. Grid: blocks of 256 threads with a grid-stride loop.

In PyTorch: `aten/src/ATen/native/cuda/Nonzero.cu`.
"""

from numba import cuda

from readtorch.aten.functions import at
from readtorch.c10.cuda.launch import blocks_of, launch

from .fill_kernel import filled
from .loops import THREADS
from .reduce_ops import LONG
from .register_dispatch_key import cuda_kernel, empty, operator_named
from .scan_kernels import cumsum


def places_of(counts, shape, out):
    """counts: the running counts (int64) of elements of an array of `shape`, in their order; out: (rows,
    dimensions), of which as many are written as there are elements, if there is room."""
    if out.size:
        launch(places_kernel, blocks_of(counts.size, THREADS), THREADS, counts, tuple(shape), out)


def places_kernel(counts, shape, out):
    for i in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        before = counts[i - 1] if i > 0 else 0
        if counts[i] != before and before < out.shape[0]:
            rest = i
            for d in range(len(shape) - 1, -1, -1):
                out[before, d] = rest % shape[d]
                rest //= shape[d]


@cuda_kernel(operator_named("nonzero"))
def nonzero_cuda(self):
    """The indices of all elements that are not 0, one row each. The host waits: it must know how many there
    are."""
    shape, size = self._array.shape, self._array.size
    counts = empty((size,), LONG)
    if not size:
        return empty((0, len(shape)), LONG)
    cumsum(at.ne(self, 0).reshape(-1)._array, 0, counts._array)
    total = counts[size - 1].item()
    result = empty((total, len(shape)), LONG, (1, total))  # PyTorch's strides
    places_of(counts._array, shape, result._array)
    return result


@cuda_kernel(operator_named("nonzero_static"))
def nonzero_static_cuda(self, size, fill_value):
    """The first `size` rows of nonzero. The host need not wait, for it knows how many rows there are."""
    if size < 0:
        raise RuntimeError("nonzero_static: 'size' must be an non-negative integer")
    shape = self._array.shape
    result = filled(empty((size, len(shape)), LONG), fill_value)
    if self._array.size:
        counts = empty((self._array.size,), LONG)
        cumsum(at.ne(self, 0).reshape(-1)._array, 0, counts._array)
        places_of(counts._array, shape, result._array)
    return result
