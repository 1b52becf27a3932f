"""The projections of attention in the fast path of inference through an encoder layer; the rest of it serves every device.

In PyTorch: `aten/src/ATen/native/transformers/cuda/attention.cu`.
"""

import math

from .copy import copy
from .register_dispatch_key import cuda_impl, operator_named


@cuda_impl(operator_named("_transform_bias_rescale_qkv"))
def transform_bias_rescale_qkv_cuda(qkv, qkv_bias, num_heads, *outs):
    batch, length, width = qkv._array.shape
    per_head = width // 3 // num_heads
    q, k, v = (qkv + qkv_bias).view(batch, length, 3, num_heads, per_head).permute(2, 0, 3, 1, 4).unbind(0)
    for part, out in zip((q * (1 / math.sqrt(per_head)), k, v), outs):
        copy(part._array, out._array)
