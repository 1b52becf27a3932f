"""Rows of a matrix, added up by number.

In PyTorch: the loops in `aten/src/ATen/native/Embedding.cpp`, `EmbeddingBag.cpp`.
"""

from readtorch.aten.cpu.compile import kernel


@kernel
def add_rows(out, targets, rows, sources, skipped, begin, end):
    """out[targets[i]] += rows[sources[i]], one i after the other, in the columns begin..end.

    Passes over what belongs to row `skipped`, and to rows that do not exist.
    """
    for i in range(targets.size):
        target = targets[i]
        if target < 0 or target >= out.shape[0] or target == skipped:
            continue
        total, row = out[target, begin:end], rows[sources[i], begin:end]
        for j in range(total.size):
            total[j] += row[j]


@kernel
def add_scaled_rows(out, targets, rows, sources, factors, begin, end):
    """out[targets[i]] += factors[i] * rows[sources[i]], likewise."""
    for i in range(targets.size):
        target, factor = targets[i], factors[i]
        if target < 0 or target >= out.shape[0]:
            continue
        total, row = out[target, begin:end], rows[sources[i], begin:end]
        for j in range(total.size):
            total[j] += factor * row[j]
