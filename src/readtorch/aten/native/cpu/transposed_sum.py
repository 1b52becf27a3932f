"""out = aᵀ + bias, with both matrices read and written in pieces that stay in the cache."""
from ....c10.kernel_cache import cached

# So many rows of `a` at a time: 16 float32 fill one cache line of `out`.
STRIP = 16


@cached(nogil=True, error_model="numpy")
def add_transposed(a, bias, out):
    """`a` (n, m), `bias` (n) and `out` (m, n), all contiguous by rows."""
    n, m = a.shape
    for start in range(0, n, STRIP):
        end = min(start + STRIP, n)
        for i in range(m):
            for j in range(start, end):
                out[i, j] = a[j, i] + bias[j]
