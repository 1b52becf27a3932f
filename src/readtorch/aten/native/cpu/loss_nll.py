"""nll_loss of a batch as loops over its labels.

In PyTorch: the loops in `aten/src/ATen/native/LossNLL.cpp`.
"""

from readtorch.aten.cpu.compile import kernel


@kernel
def nll_sum(x, target, ignore_index):
    """-Σ x[i, target[i]], how many terms it has, and the first row whose class does not exist, or -1."""
    total, count = 0.0, 0
    for i in range(target.size):
        label = target[i]
        if label == ignore_index:
            continue
        if label < 0 or label >= x.shape[1]:
            return total, count, i
        total -= x[i, label]
        count += 1
    return total, count, -1


@kernel
def nll_sum_backward(share, target, ignore_index, out):
    """`share` into out, which holds zeros, wherever a loss was picked. Returns the first wrong row, or -1."""
    for i in range(target.size):
        label = target[i]
        if label == ignore_index:
            continue
        if label < 0 or label >= out.shape[1]:
            return i
        out[i, label] = share
    return -1
