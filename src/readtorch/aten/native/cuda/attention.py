"""The fast path of inference through an encoder layer: a whole layer in one operator, its attention in another.

They are made of other operators, as on the CPU, and serve both; what looks at elements is here.

In PyTorch: `aten/src/ATen/native/transformers/cuda/attention.cu`.
"""

import math

from readtorch.aten.functions import at
from readtorch.aten.native.transformers import transformer as layers

from .register_dispatch_key import cuda_kernel, operator_named, owned

cuda_kernel(operator_named("_native_multi_head_attention"))(layers.native_multi_head_attention)
cuda_kernel(operator_named("_transformer_encoder_layer_fwd"))(layers.transformer_encoder_layer_forward)


@cuda_kernel(operator_named("_transform_bias_rescale_qkv"))
def transform_bias_rescale_qkv_cuda(qkv, qkv_bias, num_heads):
    """(B, T, 3·D) plus the bias as q / √d, k and v of shape (B, heads, T, d)."""
    batch, length, width = qkv._array.shape
    layers.check_heads(width, num_heads)
    per_head = width // 3 // num_heads
    parts = (qkv + qkv_bias).view(batch, length, 3, num_heads, per_head).permute(2, 0, 3, 1, 4)
    q, k, v = (owned(at.clone(t)) for t in parts.unbind(0))
    return q.mul_(1 / math.sqrt(per_head)), k, v
