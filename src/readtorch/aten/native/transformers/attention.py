"""Scaled dot product attention: softmax(q kᵀ / √d) v.

In PyTorch: `aten/src/ATen/native/transformers/attention.cpp`. Explained in the chapter "Attention".
"""

import math
import warnings

from readtorch.aten.functions import at
from readtorch.aten.native.binary_ops.arithmetic import mul_scalar
from readtorch.aten.native.softmax import _softmax_backward_data
from readtorch.aten.native.tensor_iterator import WIDENED
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device, only_geometry
from readtorch.aten.sdp_backend import SDPBackend
from readtorch.c10.dispatch_key import CUDA
from readtorch.c10.scalar_type import BOOL, C_TYPE_NAMES, float32
from readtorch.c10.scalar_type import bool as bool_type
from readtorch.c10.tensor_impl import dtype_of

from .cuda.attention import _scaled_dot_product_flash_attention
from .cuda.sdp_utils import select_sdp_backend
from .flash_attention import _scaled_dot_product_flash_attention_for_cpu
from .sdp_utils import choose_backend

_SDPA = (
    "(Tensor query, Tensor key, Tensor value, Tensor? attn_mask=None, float dropout_p=0.0, "
    "bool is_causal=False, {}*, float? scale=None, bool enable_gqa=False)"
)
scaled_dot_product_attention = native_function(
    f"scaled_dot_product_attention{_SDPA.format('')} -> Tensor", module="nn", direct=True
)
_fused_sdp_choice = native_function(f"_fused_sdp_choice{_SDPA.format('')} -> int")
_scaled_dot_product_attention_math = native_function(
    f"_scaled_dot_product_attention_math{_SDPA.format('Tensor? dropout_mask=None, ')} -> (Tensor, Tensor)"
)
_safe_softmax = native_function("_safe_softmax(Tensor self, int dim, ScalarType? dtype=None) -> Tensor")


# --------------------------------------------------------------------------------------------------- choosing


@scaled_dot_product_attention.compose
def attention(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    check(query, key, value, attn_mask)
    q, v = query._array, value._array
    if not q.shape[-2] or not v.size:
        return nothing_to_attend_to(query, key, value)
    backend = chosen_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    if attn_mask is not None:
        attn_mask = as_added_mask(attn_mask, query.dtype)
    if backend is SDPBackend.FLASH_ATTENTION and query._keys & CUDA:
        return fused_on_cuda(query, key, value, dropout_p, is_causal, scale)
    if backend is SDPBackend.FLASH_ATTENTION:
        return _scaled_dot_product_flash_attention_for_cpu.call(
            query, key, value, dropout_p, is_causal, attn_mask, scale
        )[0]
    return _scaled_dot_product_attention_math.call(
        query, key, value, attn_mask, dropout_p, is_causal, None, scale, enable_gqa
    )[0]


@_fused_sdp_choice.kernel
@only_geometry
def fused_sdp_choice(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa):
    return int(chosen_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa))


def chosen_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa):
    if query._keys & CUDA:
        return select_sdp_backend(query, key, value, attn_mask, dropout_p, is_causal, enable_gqa)
    return choose_backend(query, key, value, attn_mask, dropout_p, enable_gqa)


def fused_on_cuda(query, key, value, dropout_p, is_causal, scale):
    """Its kernel reads sixteen bytes at a time: rows get zeros behind them, up to a multiple of eight numbers."""
    width = query._array.shape[-1]
    scale = 1 / math.sqrt(width) if scale is None else scale
    if width % 8:
        query, key, value = (at.pad(t, (0, -width % 8)) for t in (query, key, value))
    out = _scaled_dot_product_flash_attention.call(query, key, value, dropout_p, is_causal, False, scale)[0]
    return out[..., :width] if width % 8 else out


def check(query, key, value, attn_mask):
    q, k, v = query._array, key._array, value._array
    if not q.dtype == k.dtype == v.dtype:
        names = [C_TYPE_NAMES[dtype_of(t)] for t in (query, key, value)]
        raise RuntimeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{names[0]} key.dtype: {names[1]} and value.dtype: {names[2]} instead."
        )
    if q.ndim < 2 or k.ndim < 2 or v.ndim < 2:
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {q.ndim} key.dim: {k.ndim} and value.dim: {v.ndim} instead."
        )
    if attn_mask is not None and dtype_of(attn_mask) not in (bool_type, float32, dtype_of(query)):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {C_TYPE_NAMES[dtype_of(attn_mask)]} and  query.dtype: "
            f"{C_TYPE_NAMES[dtype_of(query)]} instead."
        )


def nothing_to_attend_to(query, key, value):
    """Zeros that are still connected to the inputs, so that these get gradients (of 0)."""
    shape = (*query._array.shape[:-1], value._array.shape[-1])
    zeros = at.zeros(shape, dtype=query.dtype, device=query.device)
    return zeros + mul_scalar.call(query.sum() + key.sum() + value.sum(), 0)


def as_added_mask(attn_mask, dtype):
    """A bool mask as numbers to add to the scores: 0, or -inf where it is False."""
    if dtype_of(attn_mask).category != BOOL:
        return attn_mask
    return at.where(attn_mask, 0.0, at.scalar_tensor(-math.inf, dtype=dtype, device=attn_mask.device))


# ----------------------------------------------------------------------------------------------- step by step


@_scaled_dot_product_attention_math.compose
def attention_in_steps(query, key, value, attn_mask, dropout_p, is_causal, dropout_mask, scale, enable_gqa):
    """The definition, in differentiable operators; also returns the weights. 16-bit floats are widened."""
    own_type = query.dtype
    if query._array.dtype in WIDENED:
        query, key, value = query.to(float32), key.to(float32), value.to(float32)
    root, sign = root_of_scale(query, scale)
    query = mul_scalar.call(query, sign * root)
    if is_causal:
        if attn_mask is not None:
            raise RuntimeError(
                "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
            )
        attn_mask = causal_mask(query, key)
    if enable_gqa:
        key, value = repeated_heads(query, key, value)
    scores = at.matmul(query, mul_scalar.call(key.transpose(-2, -1), root))
    if attn_mask is not None:
        scores.add_(attn_mask)
    weights = _safe_softmax.call(scores, -1, None)
    if dropout_p > 0:
        weights, value = dropped(weights, value, dropout_p, dropout_mask)
    narrowed = weights.to(own_type)
    return at.matmul(weights, value).to(own_type), narrowed


def root_of_scale(query, scale):
    """√scale and its sign. Both operands get the root before they are multiplied: that keeps the products small."""
    if scale is None:
        width = query._array.shape[-1]
        return (math.sqrt(1 / math.sqrt(width)) if width else math.inf), 1
    return math.sqrt(abs(scale)), -1 if scale < 0 else 1


def causal_mask(query, key):
    """Each query attends to the keys up to its own position, counted from the first."""
    shape = (query._array.shape[-2], key._array.shape[-2])
    return as_added_mask(at.ones(shape, dtype=bool_type, device=query.device).tril(), query.dtype)


def repeated_heads(query, key, value):
    """Grouped queries: several heads of the query share one of key and value, which is repeated for each."""
    q, k, v = (t._array.shape[-3] for t in (query, key, value))
    if q == k == v:
        return key, value
    if not k or not v or q % k or q % v:
        raise RuntimeError("Number of heads in key and value must divide the number of heads in ")
    return key.repeat_interleave(q // k, -3), value.repeat_interleave(q // v, -3)


def dropped(weights, value, dropout_p, dropout_mask):
    if dropout_mask is None:
        return at.dropout(weights, dropout_p, True), value
    warnings.warn("Dropout mask should only be used for testing purposes.", stacklevel=3)
    return weights.masked_fill(dropout_mask.logical_not(), 0.0), mul_scalar.call(value, 1 / (1 - dropout_p))


# ----------------------------------------------------------------------------------------------- safe softmax


@_safe_softmax.kernel
@any_device
def safe_softmax(self, dim, dtype):
    """softmax, but 0 instead of nan for a row of nothing but -inf: a query that is masked everywhere gives 0."""
    with below_autograd():
        out = at.softmax(self, dim, dtype)
        hopeless = at.all(self.eq(-math.inf), dim, True)
        return at.where(hopeless, at.scalar_tensor(0.0, dtype=out.dtype, device=out.device), out)


@_safe_softmax.backward
class SafeSoftmaxBackward0:
    def self(grad, result, dim, self_scalar_type):
        return _softmax_backward_data.call(grad, result, dim, self_scalar_type)

    def result(self_t, result, dim):
        return result * (self_t - (result * self_t).sum(dim, True))
