"""What makes operators on CUDA tensors run our kernels: for each operator the host's work around the
launches.

Read it from `registration` on: how an operator gets its CUDA kernel, and which need none of their own. The
other files go by families. They check what would lead a kernel astray, allocate the results on the device,
with PyTorch's strides, and call the launchers of the files above (aten/native/cuda/*.py), which know nothing
of tensors.

An operator that is not here, and that is not made of others that are, has no CUDA kernel: it says so, and
nothing is computed by the host instead. Imported when there is a device that runs kernels.

In PyTorch: the C++ functions in `aten/src/ATen/native/cuda/*.cu` and the entries `CUDA:` in
`native_functions.yaml`.
"""

from . import registration  # noqa: F401  (first: what follows uses it)
from . import (  # noqa: F401
    arranging,
    choosing,
    combining,
    composed,
    copies,
    distances,
    encoders,
    factories,
    gates,
    images,
    layers,
    linear_algebra,
    losses,
    margins,
    more_factors,
    normalization,
    placing,
    pointwise,
    products,
    randoms,
    reductions,
    resizing,
    samplings,
    searching,
    series,
    signs,
    special,
    steps,
    view_forms,
    volumes,
)
