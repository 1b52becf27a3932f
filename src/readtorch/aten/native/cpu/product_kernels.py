"""One BLAS product that does not hold Python's lock. In PyTorch: `aten/src/ATen/native/CPUBlas.cpp`."""
from ...cpu.blas import gemm
from ...cpu.compile import kernel


@kernel
def add_product(x, x_turned, y, y_turned, out, beta, alpha):
    """out = alpha · x y + beta · out; x and y are given as they are stored, by rows, or turned."""
    width = out.itemsize
    inner = x.shape[0] if x_turned else x.shape[1]
    gemm(x_turned, y_turned, out.shape[0], out.shape[1], inner, alpha, x, x.strides[0] // width, y,
         y.strides[0] // width, beta, out, out.strides[0] // width)
