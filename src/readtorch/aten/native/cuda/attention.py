"""Fused attention, and the projections of attention in the fast path of inference; the rest of it serves every device.

In PyTorch: `aten/src/ATen/native/transformers/cuda/attention.cu`,
`aten/src/ATen/native/transformers/cuda/attention_backward.cu`.
"""

import math

import numpy as np

from readtorch.aten.native import return_types
from readtorch.aten.native.tensor_iterator import F4
from readtorch.aten.native.transformers.cuda.flash_attn import flash_api
from readtorch.aten.native.transformers.cuda.sdp_utils import WIDEST
from readtorch.aten.tensor_meta import like
from readtorch.c10.scalar_type import float32

from .copy import copy
from .register_dispatch_key import cuda_impl, cuda_kernel, empty, empty_here, operator_named

U8 = np.dtype(np.uint64)


@cuda_impl(operator_named("_transform_bias_rescale_qkv"))
def transform_bias_rescale_qkv_cuda(qkv, qkv_bias, num_heads, *outs):
    batch, length, width = qkv._array.shape
    per_head = width // 3 // num_heads
    q, k, v = (qkv + qkv_bias).view(batch, length, 3, num_heads, per_head).permute(2, 0, 3, 1, 4).unbind(0)
    for part, out in zip((q * (1 / math.sqrt(per_head)), k, v), outs):
        copy(part._array, out._array)


@cuda_kernel(operator_named("_scaled_dot_product_flash_attention"))
def flash_attention_cuda(query, key, value, dropout_p, is_causal, return_debug_mask, scale):
    """The result in the order of the query's memory; the logsumexp; and what dropout would need."""
    check(query, key, value, dropout_p, return_debug_mask)
    q, k, v = query._array, key._array, value._array
    out, logsumexp = empty_here(like(query)), empty(q.shape[:3], F4)
    flash_api.mha_fwd(q, k, v, out._array, logsumexp._array, scale_of(q, scale), is_causal)
    seed, offset, mask = empty((2,), U8), empty((), U8), empty((0,), q.dtype)
    return return_types._scaled_dot_product_flash_attention(
        out, logsumexp, None, None, q.shape[2], k.shape[2], seed, offset, mask
    )


@cuda_kernel(operator_named("_scaled_dot_product_flash_attention_backward"))
def flash_attention_backward_cuda(grad_out, query, key, value, out, logsumexp, *rest):
    dropout_p, is_causal, scale = rest[4], rest[5], rest[8]
    check(query, key, value, dropout_p)
    grads = tuple([empty_here(like(t)) for t in (query, key, value)])
    delta = (grad_out.to(float32) * out.to(float32)).sum(-1)
    arrays = [t._array for t in (grad_out, query, key, value, logsumexp, delta, *grads)]
    flash_api.mha_bwd(*arrays, scale_of(query._array, scale), is_causal)
    return grads


def scale_of(q, scale):
    return 1 / math.sqrt(q.shape[3]) if scale is None else scale


def check(query, key, value, dropout_p, return_debug_mask=False):
    q, k, v = query._array, key._array, value._array
    if k.shape[2] != v.shape[2]:
        raise RuntimeError("Key and Value must have the same sequence length")
    if dropout_p > 0 or return_debug_mask:
        raise NotImplementedError("readtorch's flash attention has no dropout, and no mask of it to return.")
    sizes = "must have shape (batch_size, seqlen_k, num_heads_k, head_size_og)"
    for refused, message in (
        (q.dtype.name not in ("float16", "bfloat16"), "FlashAttention only support fp16 and bf16 data type"),
        (k.dtype != q.dtype, "query and key must have the same dtype"),
        (v.dtype != q.dtype, "query and value must have the same dtype"),
        (any(x.strides[-1] != x.itemsize for x in (q, k, v)), "Input tensor must have contiguous last dimension"),
        (not q.shape[0], "batch size must be positive"),
        (q.shape[3] % 8, "head_size must be a multiple of 8, this is ensured by padding!"),
        (q.shape[3] > WIDEST, f"FlashAttention forward only supports head dimension at most {WIDEST}"),
        (
            not k.shape[1] or q.shape[1] % k.shape[1],
            "Number of heads in key/value must divide number of heads in query",
        ),
        (k.shape != (q.shape[0], *k.shape[1:3], q.shape[3]), f"k {sizes}"),
        (v.shape != k.shape, f"v {sizes}"),
    ):
        if refused:
            raise RuntimeError(message)
