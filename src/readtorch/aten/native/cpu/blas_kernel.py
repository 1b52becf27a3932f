"""Matrix products and transposed sums that do not hold Python's lock.

In PyTorch: `aten/src/ATen/native/cpu/BlasKernel.cpp`, called by `aten/src/ATen/native/CPUBlas.cpp`.
"""

from readtorch.aten.cpu.blas import gemm
from readtorch.aten.cpu.compile import kernel
from readtorch.c10.codecache import cached


@kernel
def add_product(x, x_turned, y, y_turned, out, beta, alpha):
    """out = alpha · x y + beta · out; x and y are given as they are stored, by rows, or turned."""
    width = out.itemsize
    inner = x.shape[0] if x_turned else x.shape[1]
    gemm(
        x_turned,
        y_turned,
        out.shape[0],
        out.shape[1],
        inner,
        alpha,
        x,
        x.strides[0] // width,
        y,
        y.strides[0] // width,
        beta,
        out,
        out.strides[0] // width,
    )


# Rows of `a` at a time: 16 float32 fill one cache line of `out`.
STRIP = 16


@cached(nogil=True, error_model="numpy")
def add_transposed(a, bias, out):
    """out = aᵀ + bias, with `a` (n, m), `bias` (n) and `out` (m, n), contiguous by rows. Strips stay in the cache."""
    n, m = a.shape
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        for i in range(m):
            for j in range(start, end):
                out[i, j] = a[j, i] + bias[j]
