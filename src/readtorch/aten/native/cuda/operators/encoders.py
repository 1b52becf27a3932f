"""The fast path of inference through an encoder layer: a whole layer in one operator, its attention in
another.

They are made of other operators, as on the CPU, and serve both; what looks at elements is here.

In PyTorch: `aten/src/ATen/native/transformers/cuda/attention.cu`, `aten/src/ATen/native/cuda/SoftMax.cu`.
"""

import math

from .....c10.scalar_type import bool as bool_type
from .....c10.tensor_impl import dtype_of
from ....functions import at
from ...tensor_iterator import not_implemented
from ...transformers import transformer as layers
from .pointwise import operator_named
from .registration import cuda_kernel, owned

cuda_kernel(operator_named("_native_multi_head_attention"))(layers.native_multi_head_attention)
cuda_kernel(operator_named("_transformer_encoder_layer_fwd"))(layers.transformer_encoder_layer_forward)
cuda_kernel(operator_named("_addmm_activation"))(layers.addmm_activation)


@cuda_kernel(operator_named("_transform_bias_rescale_qkv"))
def transform_bias_rescale_qkv_cuda(qkv, qkv_bias, num_heads):
    """(B, T, 3·D) plus the bias as q / √d, k and v of shape (B, heads, T, d)."""
    batch, length, width = qkv._array.shape
    layers.check_heads(width, num_heads)
    per_head = width // 3 // num_heads
    parts = (qkv + qkv_bias).view(batch, length, 3, num_heads, per_head).permute(2, 0, 3, 1, 4)
    q, k, v = (owned(at.clone(t)) for t in parts.unbind(0))
    return q.mul_(1 / math.sqrt(per_head)), k, v


@cuda_kernel(operator_named("_masked_softmax"))
def masked_softmax_cuda(self, mask, dim, mask_type):
    """softmax over what the mask does not hide. A row that is hidden as a whole gives nan."""
    if dtype_of(mask) is not bool_type:
        raise RuntimeError("Mask should be a boolean tensor")
    if mask._array.shape != self._array.shape:
        mask = layers.expanded_mask(mask, self._array.shape, mask_type)
    if not dtype_of(self).is_floating_point:
        raise not_implemented("masked_softmax")(dtype_of(self))
    return at.softmax(self.masked_fill(mask, -math.inf), -1 if dim is None else dim)


@cuda_kernel(operator_named("_masked_softmax_backward"))
def masked_softmax_backward_cuda(grad_output, output, mask, dim):
    if grad_output._array.shape != mask._array.shape:
        raise RuntimeError("Mask shape should match grad shape")
    grad = at._softmax_backward_data(grad_output, output, -1 if dim is None else dim, output.dtype)
    return grad.masked_fill(mask, 0)
