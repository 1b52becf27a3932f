"""A whole encoder layer in one operator, and its attention in another: the fast path of inference.

No graph is recorded here, so the intermediate results can be overwritten and the three projections are one product.

In PyTorch: `aten/src/ATen/native/transformers/transformer.cpp`, `aten/src/ATen/native/transformers/attention.cpp`;
`masked_softmax_cpu` in `aten/src/ATen/native/SoftMax.cpp`. There the fast path also takes nested tensors, whose
sequences have different lengths.
"""

import math

import numpy as np

from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.functions import at
from readtorch.aten.native.softmax import softmax_array, softmax_slope
from readtorch.aten.native.tensor_iterator import WIDENED, compute, not_implemented
from readtorch.aten.native_function import below_autograd, native_function
from readtorch.aten.register_dispatch_key import any_device
from readtorch.aten.tensor_meta import TensorMeta, like
from readtorch.c10.dispatch_key import CUDA
from readtorch.c10.scalar_type import bool as bool_type
from readtorch.c10.tensor_impl import dtype_of, wrap

from .flash_attention import _scaled_dot_product_flash_attention_for_cpu

_masked_softmax = native_function(
    "_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> Tensor"
)
_masked_softmax_backward = native_function(
    "_masked_softmax_backward(Tensor grad_output, Tensor output, Tensor mask, int? dim=None) -> Tensor", ""
)
_transform_bias_rescale_qkv = native_function(
    "_transform_bias_rescale_qkv(Tensor qkv, Tensor qkv_bias, int num_heads) -> (Tensor, Tensor, Tensor)"
)
_native_multi_head_attention = native_function(
    "_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int embed_dim, int num_head, "
    "Tensor qkv_weight, Tensor qkv_bias, Tensor proj_weight, Tensor proj_bias, Tensor? mask=None, "
    "bool need_weights=True, bool average_attn_weights=True, int? mask_type=None) -> (Tensor, Tensor)"
)
_transformer_encoder_layer_fwd = native_function(
    "_transformer_encoder_layer_fwd(Tensor src, int embed_dim, int num_heads, Tensor qkv_weight, Tensor qkv_bias, "
    "Tensor proj_weight, Tensor proj_bias, bool use_gelu, bool norm_first, float eps, Tensor norm_weight_1, Tensor "
    "norm_bias_1, Tensor norm_weight_2, Tensor norm_bias_2, Tensor ffn_weight_1, Tensor ffn_bias_1, Tensor "
    "ffn_weight_2, Tensor ffn_bias_2, Tensor? mask=None, int? mask_type=None) -> Tensor"
)
_addmm_activation = native_function(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, "
    "bool use_gelu=False) -> Tensor",
    "function, method",
    out=True,
)


# --------------------------------------------------------------------------------------------- masked softmax

# What a mask of another shape than the scores (B, H, L, L) means.
SRC_MASK, KEY_PADDING_MASK, FULL_MASK = 0, 1, 2


@_masked_softmax.meta
def masked_softmax_meta(self, mask, dim, mask_type):
    mask_of_scores(self, mask, mask_type)
    return like(self)


def mask_of_scores(self, mask, mask_type):
    """The mask in the shape of the scores. RuntimeError if it does not fit."""
    if dtype_of(mask) is not bool_type:
        raise RuntimeError("Mask should be a boolean tensor")
    shape = self._array.shape
    return mask if mask._array.shape == shape else expanded_mask(mask, shape, mask_type)


@_masked_softmax.kernel
def masked_softmax_cpu(self, mask, dim, mask_type):
    """softmax over the unmasked elements. A row that is masked as a whole gives nan."""
    x, hidden = self._array, mask_of_scores(self, mask, mask_type)._array
    if not dtype_of(self).is_floating_point:
        raise not_implemented("masked_softmax")(dtype_of(self))
    axis = -1 if dim is None else dim

    def masked_softmax(x):
        return softmax_array(np.where(hidden, -math.inf, x).astype(x.dtype, copy=False), axis)

    return wrap(compute(masked_softmax, (x,), dtype_of(self)))


def expanded_mask(mask, shape, mask_type):
    length, hidden = shape[-1], mask._array
    if hidden.ndim == 2 and mask_type is None:
        raise RuntimeError("Mask Type should be defined")
    if hidden.ndim == 2 and mask_type not in (SRC_MASK, KEY_PADDING_MASK, FULL_MASK):
        raise RuntimeError("Mask Type should be 0 (src_mask) or 1 (src_key_padding_mask), or 2 (default_mask)")
    if mask_type == SRC_MASK and hidden.ndim == 2:
        if hidden.shape != (shape[-2], length):
            raise RuntimeError("For mask_type == 0 mask shape should be (L, L)")
        return mask.expand(shape)
    if mask_type == KEY_PADDING_MASK and hidden.ndim == 2:
        if hidden.shape != (shape[0], length):
            raise RuntimeError("For mask_type == 1 mask shape should be (B, L)")
        return mask.view(shape[0], 1, 1, length).expand(shape)
    raise RuntimeError("For mask_type == 2 mask shape should match input shape")


@_masked_softmax.backward
class MaskedSoftmaxBackward0:
    def self(grad, result, mask, dim):
        return _masked_softmax_backward.call(grad, result, mask, dim)


@_masked_softmax_backward.meta
def masked_softmax_backward_meta(grad_output, output, mask, dim):
    if grad_output._array.shape != mask._array.shape:
        raise RuntimeError("Mask shape should match grad shape")
    return TensorMeta(output._array.shape, dtype_of(output))


@_masked_softmax_backward.kernel
def masked_softmax_backward_cpu(grad_output, output, mask, dim):
    masked_softmax_backward_meta(grad_output, output, mask, dim)
    g, y, hidden = grad_output._array, output._array, mask._array
    axis = -1 if dim is None else dim

    def masked_slope(g, y):
        return np.ascontiguousarray(np.where(hidden, y.dtype.type(0), softmax_slope(g, y, axis)))

    return wrap(compute(masked_slope, (g, y), dtype_of(output)))


_masked_softmax_backward.backward(NOT_IMPLEMENTED)


# --------------------------------------------------------------------------------------- multi-head attention


@_transform_bias_rescale_qkv.meta
def transform_bias_rescale_qkv_meta(qkv, qkv_bias, num_heads):
    """(B, T, 3·D) plus the bias as q / √d, k and v of shape (B, heads, T, d)."""
    batch, length, width = qkv._array.shape
    check_heads(width, num_heads)
    return (TensorMeta((batch, num_heads, length, width // 3 // num_heads), dtype_of(qkv)),) * 3


@_transform_bias_rescale_qkv.kernel
def transform_bias_rescale_qkv_cpu(qkv, qkv_bias, num_heads):
    x, bias = qkv._array, qkv_bias._array
    batch, length, width = x.shape
    check_heads(width, num_heads)
    per_head = width // 3 // num_heads

    def transformed(x, bias):
        parts = (x + bias).reshape(batch, length, 3, num_heads, per_head).transpose(2, 0, 3, 1, 4)
        parts = np.ascontiguousarray(parts)
        parts[0] *= x.dtype.type(1 / math.sqrt(per_head))
        return parts

    return tuple(map(wrap, compute(transformed, (x, bias), dtype_of(qkv))))


def check_heads(width, num_heads):
    if width % 3 or width // 3 % num_heads:
        condition = "_3D % 3 == 0" if width // 3 % num_heads == 0 else "D % num_head == 0"
        raise RuntimeError(
            f"Expected {condition} to be true, but got false.  (Could this error message be "
            "improved?  If so, please report an enhancement request to PyTorch.)"
        )


@_native_multi_head_attention.kernel
@any_device
def native_multi_head_attention(
    query,
    key,
    value,
    embed_dim,
    num_head,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    mask,
    need_weights,
    average_attn_weights,
    mask_type,
):
    check_shapes(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias)
    with below_autograd():
        qkv = projections(query, key, value, qkv_weight)
        if not qkv._array.size:
            return at.empty_like(query), None
        q, k, v = _transform_bias_rescale_qkv.call(qkv, qkv_bias, num_head)
        in_one_go = mask is None and not need_weights and qkv._array.dtype not in WIDENED
        if in_one_go and not qkv._keys & CUDA:
            # in PyTorch: in steps here, too
            heads = _scaled_dot_product_flash_attention_for_cpu.call(q, k, v, 0.0, False, None, 1.0)[0]
        else:
            weights = attention_weights(q, k, mask, mask_type)
            heads = weights @ v
        joined = heads.transpose(1, 2).reshape(query._array.shape)
        result = at.linear(joined, proj_weight, proj_bias)
        if not need_weights:
            return result, None
        return result, weights.sum(1).div_(num_head) if average_attn_weights else weights


def attention_weights(q, k, mask, mask_type):
    scores = q @ k.transpose(-2, -1)
    if mask is None:
        return scores.softmax(-1)
    return _masked_softmax.call(scores, mask.to(bool_type), scores.dim() - 1, mask_type)


def projections(query, key, value, qkv_weight):
    """query, key and value times their third of the weight, side by side; in one product if they are the same."""
    if query is key is value:
        return query @ qkv_weight.t()
    thirds = qkv_weight.chunk(3)
    return at.cat([x @ w.t() for x, w in zip((query, key, value), thirds)], 2)


def check_shapes(query, key, value, embed_dim, num_head, qkv_weight, qkv_bias):
    q, k, v, w, b = (t._array.shape for t in (query, key, value, qkv_weight, qkv_bias))
    if len(q) != 3:
        raise RuntimeError(f"expected 3-D `query`, got {len(q)}-D tensor")
    if q[2] != embed_dim:
        raise RuntimeError(f"passed-in embed_dim {embed_dim} didn't match last dim of query {q[2]}")
    for name, shape in (("key", k), ("value", v)):
        if len(shape) != 3:
            raise RuntimeError(f"expected 3-D `{name}`, got {len(shape)}-D tensor")
    if not q == k == v:
        raise RuntimeError("expected `query`/`key`/`value` shapes to match")
    if len(w) != 2:
        raise RuntimeError(f"expected 2-D `qkv_weight`, got {len(w)}-D tensor")
    if w[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_weight` first dim to be 3x embed_dim")
    if w[1] != embed_dim:
        raise RuntimeError("expected `qkv_weight` second dim to be embed_Dim")
    if len(b) != 1:
        raise RuntimeError(f"expected 1-D `qkv_bias`, got {len(b)}-D tensor")
    if b[0] != 3 * embed_dim:
        raise RuntimeError("expected `qkv_bias` first dim and first dim of query to be equal")
    if embed_dim % num_head:
        raise RuntimeError("`embed_dim` must divide evenly by `num_heads`")


# ---------------------------------------------------------------------------------------------- encoder layer


@_addmm_activation.kernel
@any_device
def addmm_activation(self, mat1, mat2, beta, alpha, use_gelu):
    with below_autograd():
        result = at.addmm(self, mat1, mat2, beta=beta, alpha=alpha)
        return at.gelu(result) if use_gelu else result.relu_()


_addmm_activation.backward(NOT_IMPLEMENTED)


@_transformer_encoder_layer_fwd.kernel
@any_device
def transformer_encoder_layer_forward(
    src,
    embed_dim,
    num_heads,
    qkv_weight,
    qkv_bias,
    proj_weight,
    proj_bias,
    use_gelu,
    norm_first,
    eps,
    norm_weight_1,
    norm_bias_1,
    norm_weight_2,
    norm_bias_2,
    ffn_weight_1,
    ffn_bias_1,
    ffn_weight_2,
    ffn_bias_2,
    mask,
    mask_type,
):
    """Self-attention, then two linear layers; each is added to its input and normalized, before or after."""

    def attend(x):
        return native_multi_head_attention(
            x, x, x, embed_dim, num_heads, qkv_weight, qkv_bias, proj_weight, proj_bias, mask, False, True, mask_type
        )[0]

    def feed_forward(x):
        rows = x.reshape((-1, embed_dim))
        hidden = addmm_activation(ffn_bias_1, rows, ffn_weight_1.t(), 1, 1, use_gelu)
        return at.addmm(ffn_bias_2, hidden, ffn_weight_2.t()).view(x._array.shape)

    with below_autograd():
        if not src._array.size:
            return src.clone()
        x = src
        for block, weight, bias in ((attend, norm_weight_1, norm_bias_1), (feed_forward, norm_weight_2, norm_bias_2)):
            if norm_first:
                x = block(at.layer_norm(x, [embed_dim], weight, bias, eps)).add_(x)
            else:
                x = at.layer_norm(block(x).add_(x), [embed_dim], weight, bias, eps)
        return x


for _operator in (_transform_bias_rescale_qkv, _native_multi_head_attention, _transformer_encoder_layer_fwd):
    _operator.backward(NOT_IMPLEMENTED)
