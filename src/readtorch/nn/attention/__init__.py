"""The choice among implementations of `scaled_dot_product_attention`. In PyTorch: `torch/nn/attention/__init__.py`.

`bias.py` has masks that are classes of tensors; `flex_attention.py` is an attention whose scores and masks are functions. In
PyTorch: also `varlen.py`, for sequences of different lengths in one tensor, whose kernels only GPUs have.
"""

import contextlib
import warnings

from readtorch.aten.context import context
from readtorch.aten.sdp_backend import SDPBackend
from readtorch.backends.cuda import can_use_efficient_attention, can_use_flash_attention

from ._registry import (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
)

__all__ = [
    "SDPBackend",
    "sdpa_kernel",
    "WARN_FOR_UNFUSED_KERNELS",
    "register_flash_attention_impl",
    "activate_flash_attention_impl",
    "list_flash_attention_impls",
    "current_flash_attention_impl",
    "restore_flash_attention_impl",
]

for _function in (
    activate_flash_attention_impl,
    current_flash_attention_impl,
    list_flash_attention_impls,
    register_flash_attention_impl,
    restore_flash_attention_impl,
):
    _function.__module__ = __name__

# True: a CausalBias warns where no fused kernel can compute it.
WARN_FOR_UNFUSED_KERNELS = False

# In the order in which they are listed.
_BACKENDS = (
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.MATH,
    SDPBackend.OVERRIDEABLE,
)


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """`with sdpa_kernel(SDPBackend.MATH):` only this backend, or these, may be used; RuntimeError if none can.

    backends: an SDPBackend or a list of them. set_priority: whether they are tried in this order. That is for GPUs: on a
    CPU FLASH_ATTENTION comes before MATH, here as in PyTorch. AssertionError for anything else than these two types.
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, "
            f"got {type(backends).__name__}"
        )
    backends = list(dict.fromkeys(backends)) if isinstance(backends, list) else [backends]
    previous = _cur_sdpa_kernel_backends(with_priority=set_priority)
    try:
        _sdpa_kernel(backends, set_priority)
        yield {}
    finally:
        _sdpa_kernel(previous, set_priority)


def _sdpa_kernel(backends, set_priority=False):
    context.sdp_backends = tuple([backend for backend in _BACKENDS if backend in backends])
    if set_priority:
        first = [int(backend) for backend in backends]
        context.sdp_priority = (*first, *(backend for backend in context.sdp_priority if backend not in first))


def _cur_sdpa_kernel_backends(with_priority=False):
    """Those that may be used."""
    allowed = [backend for backend in _BACKENDS if backend in context.sdp_backends]
    return sorted(allowed, key=lambda b: context.sdp_priority.index(int(b))) if with_priority else allowed


def _raise_kernel_warnings(params):
    """Say that the kernels for GPUs cannot be used, if that is wanted."""
    if not WARN_FOR_UNFUSED_KERNELS:
        return
    for name, can_use in (("Efficient", can_use_efficient_attention), ("Flash", can_use_flash_attention)):
        if not can_use(params):
            warnings.warn(f"{name} attention can't be used because:", stacklevel=2)
            can_use(params, True)
