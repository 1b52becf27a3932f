"""pack_padded_sequence.

In PyTorch: `aten/src/ATen/native/PackedSequence.cpp`.
"""

from readtorch.aten.functions import at
from readtorch.aten.native.packed_sequence import batch_sizes_of
from readtorch.c10.tensor_impl import wrap

from .register_dispatch_key import cuda_kernel, operator_named


@cuda_kernel(operator_named("_pack_padded_sequence"))
def pack_padded_sequence_cuda(input, lengths, batch_first):
    """The lengths are on the host, as in PyTorch, and so are the batch sizes."""
    x = input.transpose(0, 1) if batch_first else input
    sizes = batch_sizes_of(x._array.shape, lengths)
    pieces = [x[t, :size] for t, size in enumerate(sizes[: x._array.shape[0]].tolist())]
    return at.cat(pieces), wrap(sizes)
