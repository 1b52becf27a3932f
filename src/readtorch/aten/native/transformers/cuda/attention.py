"""The operators of fused attention on GPUs. Their kernels stand in `flash_attn`.

In PyTorch: entries of `aten/src/ATen/native/native_functions.yaml`; `aten/src/ATen/native/transformers/cuda/attention.cu`
has the forward operator, `aten/src/ATen/native/transformers/cuda/attention_backward.cu` the other one. There a seed and an
offset are kept for dropout, which the kernel here has not.
"""

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function

_scaled_dot_product_flash_attention = native_function(
    "_scaled_dot_product_flash_attention(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
    "is_causal=False, bool return_debug_mask=False, *, float? scale=None) -> (Tensor output, Tensor logsumexp, Tensor "
    "cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, Tensor rng_state, Tensor unused, Tensor debug_attn_mask)"
)
_scaled_dot_product_flash_attention_backward = native_function(
    "_scaled_dot_product_flash_attention_backward(Tensor grad_out, Tensor query, Tensor key, Tensor value, Tensor out, "
    "Tensor logsumexp, Tensor cum_seq_q, Tensor cum_seq_k, SymInt max_q, SymInt max_k, float dropout_p, bool is_causal, "
    "Tensor philox_seed, Tensor philox_offset, *, float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor "
    "grad_value)",
    "",
)


@_scaled_dot_product_flash_attention.backward
class ScaledDotProductFlashAttentionBackward0:
    output_differentiability = [True, *[False] * 8]

    def query__key__value(
        grad, query, key, value, output, logsumexp, max_q, max_k, dropout_p, is_causal, rng_state, unused, scale
    ):
        nothing = at.empty(0, device=grad.device)  # in PyTorch: undefined tensors
        rest = (max_q, max_k, dropout_p, is_causal, rng_state, unused, scale)
        return _scaled_dot_product_flash_attention_backward.call(
            grad, query, key, value, output, logsumexp, nothing, nothing, *rest
        )


_scaled_dot_product_flash_attention_backward.backward(NOT_IMPLEMENTED)
