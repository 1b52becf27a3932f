"""`backends`: what this build computes with, and settings of libraries that may be among it.

Of the libraries that PyTorch is built with readtorch uses none: it computes with NumPy and with kernels that numba compiles.
So `is_available()` is False everywhere, and most settings are kept, reported, and change nothing. These do something:
`opt_einsum`, `mha.set_fastpath_enabled`, and `cuda.enable_flash_sdp` and its relatives.

In PyTorch: `torch/backends/__init__.py`; also `python_native`, `xeon`, `_coreml` and `_nnapi`, which are about other libraries.
"""

import sys

from . import (
    cpu,
    cuda,
    cudnn,
    cusparselt,
    kleidiai,
    mha,
    miopen,
    mkl,
    mkldnn,
    mps,
    nnpack,
    openmp,
    opt_einsum,
    quantized,
    xnnpack,
)
from ._settings import allow_nonbracketed_mutation as __allow_nonbracketed_mutation  # noqa: F401
from ._settings import ContextProp, PropModule, changed, disable_global_flags, flags_frozen, flags_of, precision


def set_flags(_fp32_precision="none"):
    """Set what is not None, frozen or not. Returns what it was before, as a tuple."""
    return tuple(changed(sys.modules[__name__], fp32_precision=_fp32_precision).values())


def flags(fp32_precision="none"):
    """`with flags(fp32_precision="ieee"):` a precision for all libraries."""
    return flags_of(sys.modules[__name__], fp32_precision=fp32_precision)


class _GenericModule(PropModule):
    fp32_precision = precision("generic", "all")


sys.modules[__name__].__class__ = _GenericModule
