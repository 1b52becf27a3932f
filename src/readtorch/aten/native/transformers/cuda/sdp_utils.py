"""Which backend computes attention on a GPU: the first, in the order of their priority, whose conditions are met.

There are two, flash attention and the one made of operators; of the others it is said that they are not compiled in.

In PyTorch: `aten/src/ATen/native/transformers/cuda/sdp_utils.cpp`, whose words these are.
"""

import warnings

from readtorch.aten.context import context
from readtorch.aten.native.transformers.sdp_utils import (
    NO_POSITIONS,
    Reason,
    step_in_row,
    why_not_these_dimensions,
    why_not_these_heads,
    why_not_this_type,
)
from readtorch.aten.sdp_backend import SDPBackend
from readtorch.c10.cuda import runtime
from readtorch.c10.device import current_device

WIDEST = 128  # numbers of a query that the kernel has registers for; in PyTorch: 256
FLASH, MATH = SDPBackend.FLASH_ATTENTION, SDPBackend.MATH
SHIPPED = (FLASH, MATH, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION)


def select_sdp_backend(*arguments):
    """query, key, value, attn_mask, dropout_p, is_causal, enable_gqa → FLASH_ATTENTION or MATH. Raises RuntimeError, after
    warnings that say why, if both are ruled out."""
    allowed = context.sdp_backends
    if not any(backend in allowed for backend in SHIPPED):
        raise RuntimeError("No viable backend for scaled_dot_product_attention was found.")
    for backend in map(SDPBackend, context.sdp_priority):
        if backend is FLASH and why_not_flash(*arguments) is None or backend is MATH and MATH in allowed:
            return backend
    for name, reason in (
        ("Memory efficient kernel", "Torch was not compiled with memory efficient attention."),
        ("Flash attention kernel", why_not_flash(*arguments)),
        ("CuDNN attention kernel", "Torch was not compiled with cuDNN attention."),
    ):
        warnings.warn(f"{name} not used because:", stacklevel=4)
        warnings.warn(reason, stacklevel=4)
    raise RuntimeError("No available kernel. Aborting execution.")


def why_not_flash(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
    """The first condition that is not met; None if all are."""
    q, k, v = query._array, key._array, value._array
    return (
        FLASH not in context.sdp_backends
        and Reason("Flash attention has been runtime disabled.")
        or why_not_these_dimensions(q, k, v)
        or attn_mask is not None
        and Reason("Flash Attention does not support non-null attn_mask.")
        or why_not_these_widths(q.shape[3], k.shape[3], v.shape[3])
        or why_not_this_chip()
        or is_causal
        and why_not_this_triangle(q.shape[2], k.shape[2])
        or why_not_this_type(query, key, value, ("Half", "BFloat16"))
        or dropout_p > 0
        and Reason("readtorch's flash attention has no dropout.")  # in PyTorch: drawn by philox in the kernel
        or why_not_these_heads(q.shape, k.shape, v.shape, enable_gqa)
        or not (q.shape[2] and k.shape[2])
        and Reason(NO_POSITIONS)
        or why_not_these_steps(query, key, value)
        or None
    )


def why_not_these_widths(q, k, v):
    if q == k == v <= WIDEST:
        return None
    return Reason(
        f"Flash attention requires q,k,v to have the same last dimension and to be less than or equal to {WIDEST}. "
        f"Got Query.size(-1): {q}, Key.size(-1): {k}, Value.size(-1): {v} instead."
    )


def why_not_this_chip():
    chip = runtime.driver().get_device_properties(current_device.index)
    return chip.major < 8 and Reason(
        "Flash attention only supports gpu architectures in the range [sm80, sm90]. Attempting to run on a sm "
        f"{chip.major}.{chip.minor} gpu."
    )


def why_not_this_triangle(queries, keys):
    """Its mask is counted from the last position, `is_causal` from the first."""
    return queries != keys and Reason(
        "Flash attention does not support the is_causal flag when seqlen_q != seqlen_k. "
        f"Got seqlen_q: {queries} seqlen_k: {keys}. If you would like to use causal attention with non-square masks, please see "
        "CausalAttnMask."
    )


def why_not_these_steps(query, key, value):
    """A row's numbers lie one after the other; of one number that is true anyhow."""
    steps = [step_in_row(t) for t in (query, key, value)]
    return (
        query._array.shape[3] != 1
        and steps != [1, 1, 1]
        and Reason(
            "All fused kernels require the last dimension of the input to have stride 1. "
            f"Got Query.stride(-1): {steps[0]}, Key.stride(-1): {steps[1]}, Value.stride(-1): {steps[2]}"
        )
    )
