"""relu and its gradient over flat float32 arrays, as loops.

NumPy's `maximum` with a number is not vectorized, and a choice between two arrays takes it several passes.

In PyTorch: `aten/src/ATen/native/cpu/Activation.cpp`.
"""
import numpy as np
from numba import njit

ZERO = np.float32(0)


@njit(cache=True, nogil=True, error_model="numpy")
def relu(x, out):
    """max(x, 0); a nan stays, and so does -0."""
    for i in range(x.size):
        out[i] = ZERO if x[i] < ZERO else x[i]


@njit(cache=True, nogil=True, error_model="numpy")
def threshold_backward(grad, x, threshold, out):
    """`grad` where x is above the threshold, else 0."""
    for i in range(x.size):
        out[i] = ZERO if x[i] <= threshold else grad[i]
