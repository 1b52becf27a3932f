"""Attention in one operator, which keeps no matrix of weights for backward but only their normalizers.

    weights = exp(scale · q kᵀ + mask - logsumexp)        out = weights v

Backward computes the weights again. With Δ_i = Σ_d grad_id out_id, which is Σ_j weights_ij (grad vᵀ)_ij:

    ∂v = weightsᵀ grad      S = weights · (grad vᵀ - Δ)      ∂q = scale · S k      ∂k = scale · Sᵀ q

In PyTorch: `aten/src/ATen/native/transformers/attention.cpp` and
`aten/src/ATen/native/cpu/FlashAttentionKernel.cpp`, after T. Dao: FlashAttention-2 (2023). Explained in
the chapter "Attention".
"""

import functools
import math

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.native import return_types
from readtorch.aten.native.copy import allocate_like
from readtorch.aten.native.tensor_iterator import F4, WIDENED, cast
from readtorch.aten.native_function import native_function
from readtorch.aten.parallel import parallel_for
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10.scalar_type import op_math_type
from readtorch.c10.tensor_impl import contiguous_strides, dtype_of, type_name, wrap

_scaled_dot_product_flash_attention_for_cpu = native_function(
    "_scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, bool "
    "is_causal=False, *, Tensor? attn_mask=None, float? scale=None) -> (Tensor output, Tensor logsumexp)"
)
_scaled_dot_product_flash_attention_for_cpu_backward = native_function(
    "_scaled_dot_product_flash_attention_for_cpu_backward(Tensor grad_out, Tensor query, Tensor key, Tensor "
    "value, Tensor out, Tensor logsumexp, float dropout_p, bool is_causal, *, Tensor? attn_mask=None, "
    "float? scale=None) -> (Tensor grad_query, Tensor grad_key, Tensor grad_value)",
    "",
)
_PREFIX = "scaled_dot_product_attention_flash_attention: "


@_scaled_dot_product_flash_attention_for_cpu.meta
def flash_attention_meta(query, key, value, dropout_p, is_causal, attn_mask, scale):
    check(query, key, value, dropout_p, attn_mask)
    return like(query), with_heads_outside(query._array.shape[:3], op_math_type(dtype_of(query)))


def with_heads_outside(shape, dtype):
    """A (B, H, L, …) with the memory of a (B, L, H, …): what comes next joins a position's heads."""
    batch, heads, length, *rest = shape
    step = math.prod(rest)
    return TensorMeta(shape, dtype, (length * heads * step, step, heads * step, *contiguous_strides(rest)))


@_scaled_dot_product_flash_attention_for_cpu.kernel
def flash_attention_cpu(query, key, value, dropout_p, is_causal, attn_mask, scale):
    check(query, key, value, dropout_p, attn_mask)
    q, k, v = query._array, key._array, value._array
    mask = added_mask(attn_mask, q, v)
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    out = np.empty(q.shape, q.dtype) if q.flags.c_contiguous else allocate_like(q)
    logsumexp = heads_outside(q.shape[:3], WIDENED.get(q.dtype, q.dtype))
    attend = attend_compiled if loops_serve(q, v, mask, out) else attend_numpy
    attend(q, k[:, :, : v.shape[2]], v, mask, is_causal, factor, out, logsumexp)
    return return_types._scaled_dot_product_flash_attention_for_cpu(wrap(out), wrap(logsumexp))


@_scaled_dot_product_flash_attention_for_cpu.backward
class ScaledDotProductFlashAttentionForCpuBackward0:
    output_differentiability = [True, False]

    def query__key__value(grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask, scale):
        return _scaled_dot_product_flash_attention_for_cpu_backward.call(
            grad, query, key, value, output, logsumexp, dropout_p, is_causal, attn_mask, scale
        )


@_scaled_dot_product_flash_attention_for_cpu_backward.meta
def flash_attention_backward_meta(grad_out, query, key, value, *rest):
    return tuple([with_heads_outside(t._array.shape, dtype_of(t)) for t in (query, key, value)])


@_scaled_dot_product_flash_attention_for_cpu_backward.kernel
def flash_attention_backward_cpu(grad_out, query, key, value, out, logsumexp, dropout_p, is_causal, attn_mask, scale):
    q, k, v = query._array, key._array, value._array
    mask = added_mask(attn_mask, q, v)
    factor = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    grads = tuple([heads_outside(x.shape, x.dtype) for x in (q, k, v)])
    backward = backward_compiled if loops_serve(q, v, mask, out._array) else backward_numpy
    backward(grad_out._array, q, k[:, :, : v.shape[2]], v, out._array, logsumexp._array, mask, is_causal, factor, grads)
    return return_types._scaled_dot_product_flash_attention_for_cpu_backward(*map(wrap, grads))


_scaled_dot_product_flash_attention_for_cpu_backward.backward(NOT_IMPLEMENTED)


def check(query, key, value, dropout_p, attn_mask):
    q, k, v = query._array, key._array, value._array
    if not dtype_of(query).is_floating_point:
        raise RuntimeError(
            f"{_PREFIX}Expected data type in FP32, FP64, BF16, FP16, but got {type_name(query)} instead."
        )
    if not q.ndim == k.ndim == v.ndim == 4:
        raise RuntimeError(f"{_PREFIX}Accept only 4 dims inputs shape of {{B, H, T, K}}")
    if dropout_p != 0:
        raise RuntimeError(f"{_PREFIX}Currently do not support dropout > 0")
    if not q.shape[3] == k.shape[3] == v.shape[3]:
        raise RuntimeError(f"{_PREFIX}Q/K/V should have the same head size")
    if k.shape[2] < v.shape[2]:  # in PyTorch: no check, and the kernel reads on in memory behind the key
        raise RuntimeError(f"{_PREFIX}key has {k.shape[2]} positions, and value {v.shape[2]}")
    if attn_mask is not None and attn_mask._array.dtype not in (F4, q.dtype):
        raise RuntimeError(f"{_PREFIX}Attention mask is the same data type as query")
    if attn_mask is not None and attn_mask._array.ndim not in (2, 4):
        raise RuntimeError(f"{_PREFIX}Attention mask dim in {{2, 4}}")


def heads_outside(shape, dtype):
    """A new array in the order of `with_heads_outside`."""
    batch, heads, length, *rest = shape
    return np.empty((batch, length, heads, *rest), dtype).swapaxes(1, 2)


def added_mask(attn_mask, q, v):
    """The mask as (B, H, L, S) without copying, or None."""
    if attn_mask is None or not attn_mask._array.size:
        return None
    return np.broadcast_to(attn_mask._array, (*q.shape[:3], v.shape[2]))


# --------------------------------------------------------------------------------------------- compiled loops

# Fewer weights than this are not worth loading the compiler for.
FROM_SIZE = 1024
# So many additions and multiplications take a thread about 100 µs.
GRAIN = 5_000_000


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from readtorch.aten.native.cpu import flash_attention_kernel

    return flash_attention_kernel


def loops_serve(q, v, mask, out):
    if q.dtype is not F4 or (mask is not None and mask.dtype is not F4) or not has_rows(out):
        return False
    return math.prod(q.shape[:3]) * v.shape[2] >= FROM_SIZE and q.shape[3] > 0


def has_rows(x):
    """Whether BLAS can read the last two dimensions as a matrix stored by rows."""
    step, item = x.strides[2:]
    return item == x.itemsize and step >= item * x.shape[3]


def with_rows(x):
    return x if has_rows(x) else np.ascontiguousarray(x)


def heads_at_once(q, v):
    return max(1, GRAIN // (4 * q.shape[2] * v.shape[2] * q.shape[3]))


NO_MASK = np.zeros((1, 1, 1, 1), F4)


def attend_compiled(q, k, v, mask, is_causal, factor, out, logsumexp):
    q, k, v = with_rows(q), with_rows(k), with_rows(v)
    masked, mask, factor = mask is not None, NO_MASK if mask is None else mask, F4.type(factor)
    attend = loops().attend()
    parallel_for(
        0,
        q.shape[0] * q.shape[1],
        heads_at_once(q, v),
        lambda begin, end: attend(q, k, v, mask, masked, is_causal, factor, out, logsumexp, begin, end),
    )


def backward_compiled(grad, q, k, v, out, logsumexp, mask, is_causal, factor, grads):
    grad, q, k, v = with_rows(grad), with_rows(q), with_rows(k), with_rows(v)
    masked, mask, factor = mask is not None, NO_MASK if mask is None else mask, F4.type(factor)
    grad_q, grad_k, grad_v = grads
    seen = min(q.shape[2], v.shape[2]) if is_causal else v.shape[2]
    grad_k[:, :, seen:] = 0
    grad_v[:, :, seen:] = 0
    backward = loops().attend_backward()
    parallel_for(
        0,
        k.shape[0] * k.shape[1],
        max(1, heads_at_once(q, v) // 2),
        lambda begin, end: backward(
            grad, q, k, v, out, logsumexp, mask, masked, is_causal, factor, grad_q, grad_k, grad_v, begin, end
        ),
    )


# ------------------------------------------------------------------------------------------------ with NumPy


def attend_numpy(q, k, v, mask, is_causal, factor, out, logsumexp):
    """Write attention and the logarithm of each row's sum of exponentials."""
    wide, narrow = logsumexp.dtype, q.dtype
    if k.shape[1] != q.shape[1]:
        q, k, v, out, logsumexp, mask = in_groups(k.shape[1], q, k, v, out, logsumexp, mask)
    scores = masked_scores(q, k, mask, is_causal, factor, wide)
    top = np.maximum.reduce(scores, -1, keepdims=True)
    if mask is not None:
        top[top == -math.inf] = 0  # a row that is masked everywhere: its exponentials are 0, not nan
    scores -= top
    weights = np.exp(scores, out=scores)
    total = np.add.reduce(weights, -1, keepdims=True)
    if mask is not None:
        total[total == 0] = 1
    sums = np.matmul(rounded(weights, narrow), cast(v, wide))
    out[...] = cast(np.divide(sums, total, out=sums), narrow)
    logsumexp[...] = (top + np.log(total))[..., 0]


def backward_numpy(grad, q, k, v, out, logsumexp, mask, is_causal, factor, grads):
    """Write the gradients of q, k and v."""
    wide, narrow = logsumexp.dtype, q.dtype
    grad_q, grad_k, grad_v = grads
    if k.shape[2] != grad_k.shape[2]:
        grad_k[:, :, k.shape[2] :] = 0
        grad_k = grad_k[:, :, : k.shape[2]]
    shared = k.shape[1] != q.shape[1]
    if shared:
        q, k, v, grad, out, logsumexp, mask, grad_q = in_groups(k.shape[1], q, k, v, grad, out, logsumexp, mask, grad_q)
    g = cast(grad, wide)
    weights = masked_scores(q, k, mask, is_causal, factor, wide)
    weights -= logsumexp[..., None]
    np.exp(weights, out=weights)
    to_v = np.matmul(rounded(weights, narrow).swapaxes(-1, -2), g)
    slope = np.matmul(g, cast(v, wide).swapaxes(-1, -2))
    slope -= np.add.reduce(g * cast(out, wide), -1, keepdims=True)
    slope *= weights
    slope = rounded(slope, narrow)
    slope *= wide.type(factor)
    grad_q[...] = cast(np.matmul(slope, cast(k, wide)), narrow)
    to_k = np.matmul(slope.swapaxes(-1, -2), cast(q, wide))
    grad_k[...] = cast(to_k.sum(2) if shared else to_k, narrow)
    grad_v[...] = cast(to_v.sum(2) if shared else to_v, narrow)


def in_groups(kv_heads, *arrays):
    """(B, H, …) as (B, kv_heads, heads of the query that share one, …)."""

    def grouped(x):
        return None if x is None else x.reshape(x.shape[0], kv_heads, x.shape[1] // max(kv_heads, 1), *x.shape[2:])

    return [grouped(x) for x in arrays]


def masked_scores(q, k, mask, is_causal, factor, wide):
    """factor · q kᵀ + mask, and -inf where a key comes after its query."""
    scores = np.matmul(cast(q, wide), cast(k, wide).swapaxes(-1, -2))
    scores *= wide.type(factor)
    if mask is not None:
        scores += mask
    if is_causal:
        np.copyto(scores, -math.inf, where=comes_later(*scores.shape[-2:]))
    return scores


@functools.lru_cache(16)
def comes_later(queries, keys):
    """True where the key's position is after the query's."""
    return ~np.tri(queries, keys, dtype=bool)


def rounded(x, narrow):
    """As it is kept between two products: PyTorch's matrix product takes 16-bit operands."""
    return cast(cast(x, narrow), x.dtype)
