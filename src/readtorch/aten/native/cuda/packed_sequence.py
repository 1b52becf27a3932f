"""pack_padded_sequence.

In PyTorch: `aten/src/ATen/native/PackedSequence.cpp`.
"""

from readtorch.aten.native import packed_sequence

from .register_dispatch_key import cuda_kernel

cuda_kernel(packed_sequence._pack_padded_sequence)(packed_sequence.pack_of_views)
