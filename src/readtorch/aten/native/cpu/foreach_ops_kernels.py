"""Loops over lists of tensors.

In PyTorch: `aten/src/ATen/native/ForeachOpsKernels.cpp`, which loops over the tensors' operators;
`aten/src/ATen/native/cuda/ForeachBinaryOpScalar.cu` is one kernel for the whole list.
"""

from readtorch.aten.cpu.compile import kernel

from .multi_tensor_apply import elements, piece


@kernel
def add(addresses, ends, like, scalar, begin, end):
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            row = elements(addresses[0, i], b, e, like)
            for k in range(row.size):
                row[k] += scalar
