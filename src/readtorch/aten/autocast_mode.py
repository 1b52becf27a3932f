"""Autocast: before an operator runs, its operands are cast to the dtype that its policy names.

A policy belongs to an operator and a kind of device, and is its kernel at the key AutocastCPU or AutocastCUDA: above Autograd, so
that the cast is recorded, and what is saved for backward is small. Every tensor carries the key of its device, and every
thread excludes it; `autocast` takes it out of that set. So a call costs nothing more while autocast is off.

In PyTorch: `aten/src/ATen/autocast_mode.h`, `autocast_mode.cpp`. Explained in the chapter "Mixed precision".
"""

import threading
import weakref

from readtorch.c10 import scalar_type
from readtorch.c10.device import device
from readtorch.c10.dispatch_key import AUTOCAST_CPU, AUTOCAST_CUDA
from readtorch.c10.local_dispatch_key_set import AutoGradMode, KeyGuard, tls, update_mask
from readtorch.c10.tensor_impl import TensorImpl

from . import dispatcher

KEYS = {"cpu": AUTOCAST_CPU, "cuda": AUTOCAST_CUDA}
SUPPORTED_DEVICES = ["cpu", "cuda", "mtia", "maia", "xpu", "ipu", "hpu", "xla", "privateuseone", "mps"]

float32, float64 = scalar_type.float32, scalar_type.float64
float16, bfloat16 = scalar_type.float16, scalar_type.bfloat16


# ------------------------------------------------------------------------------------------- the state of a thread


class AutocastState(threading.local):
    """nesting: how many `with autocast(…)` are open. others: devices of PyTorch without a backend here for which autocast is on."""

    def __init__(self):
        self.nesting = 0
        self.cache_enabled = True
        self.others = set()
        self.dtypes = {
            **dict.fromkeys(("cpu", "xla", "hpu"), bfloat16),
            **dict.fromkeys(("cuda", "hip", "xpu", "mps", "ipu", "privateuseone"), float16),
        }


state = AutocastState()


def kind_of(device_type):
    """The kind of device that a string names. RuntimeError if it names none."""
    kind, _, _ = device_type.partition(":")
    return kind if kind in SUPPORTED_DEVICES else device(device_type).type


def is_autocast_available(device_type):
    return kind_of(device_type) in SUPPORTED_DEVICES


def _autocast_device(device_type):
    kind = kind_of(device_type)
    if kind not in SUPPORTED_DEVICES:
        raise RuntimeError("unknown device type for autocast in get_autocast_dispatch_key_from_device_type")
    return kind


def is_autocast_enabled(device_type):
    kind = _autocast_device(device_type)
    return kind in state.others if kind not in KEYS else not tls.excluded & KEYS[kind]


def set_autocast_enabled(device_type, enabled):
    kind = _autocast_device(device_type)
    if kind not in KEYS:
        (state.others.add if enabled else state.others.discard)(kind)
        return
    tls.excluded = tls.excluded & ~KEYS[kind] if enabled else tls.excluded | KEYS[kind]
    update_mask()


def is_any_autocast_enabled():
    return any(map(is_autocast_enabled, SUPPORTED_DEVICES))


def get_autocast_dtype(device_type):
    dtypes = state.dtypes
    dtype = dtypes[device_type] if device_type in dtypes else dtypes.get(kind_of(device_type))
    if dtype is None:
        raise RuntimeError("unsupported scalarType")
    return dtype


def set_autocast_dtype(device_type, dtype):
    state.dtypes[kind_of(device_type)] = dtype


def increment_nesting():
    state.nesting += 1
    return state.nesting


def decrement_nesting():
    state.nesting -= 1
    return state.nesting


# ---------------------------------------------------------------------------------------------------- casting

# Note [ The cache of casts ]
# A weight is used several times in a forward pass (a shared layer, a recurrence, a checkpointed part run again), and is cast each time
# to the same numbers. So the cast of a float32 leaf that requires grad is kept until the outermost autocast ends. All uses share one
# cast in the graph, hence one node that adds their gradients up in low precision and casts the sum.
# The key is the tensor's identity; the weak reference tells whether it is still the same tensor.
_cached_casts = {}


def clear_cache():
    _cached_casts.clear()


def is_eligible(t, device_type):
    """Whether autocast for this kind of device may cast `t`: doubles are left alone."""
    return (
        isinstance(t, TensorImpl) and t.device.type == device_type and t.dtype.is_floating_point and t.dtype != float64
    )


def cached_cast(dtype, argument, device_type):
    """`argument` with its eligible tensors, or those of its list, cast to `dtype`."""
    if isinstance(argument, (list, tuple)):
        return [cached_cast(dtype, one, device_type) for one in argument]
    if not is_eligible(argument, device_type) or argument.dtype == dtype:
        return argument
    if not _can_be_cached(dtype, argument, device_type):
        return argument.to(dtype)
    source, cast = _cached_casts.get(id(argument), (None, None))
    if source is None or source() is not argument:
        with AutoGradMode(True):  # it may be made under no_grad() and used again outside
            cast = argument.to(dtype)
        _cached_casts[id(argument)] = weakref.ref(argument), cast
    return cast


def _can_be_cached(dtype, t, device_type):
    is_weight = t.requires_grad and t.is_leaf and t.dtype == float32
    is_kept = is_weight and not t._is_view() and state.cache_enabled and not tls.inference_mode
    return is_kept and dtype == get_autocast_dtype(device_type)


# ---------------------------------------------------------------------------------------------------- policies
# Each takes an operator, a kind of device and the arguments, within a guard that switches autocast off.


def lower_precision_fp(operator, device_type, arguments):
    """All floating-point operands in the dtype of the autocast: where speed is, and rounding does little harm."""
    dtype = get_autocast_dtype(device_type)
    return operator.call(*[cached_cast(dtype, a, device_type) for a in arguments])


def fp32(operator, device_type, arguments):
    """All floating-point operands in float32: where numbers grow, cancel or add up."""
    return operator.call(*[cached_cast(float32, a, device_type) for a in arguments])


def fp32_set_opt_dtype(operator, device_type, arguments):
    """The argument `dtype` float32, unless the caller gave one: the kernel casts as it reads, so the operand needs no copy."""
    arguments = list(arguments)
    place = [a.name for a in operator.schema.arguments].index("dtype")
    if is_eligible(arguments[0], device_type) and arguments[place] is None:
        arguments[place] = float32
    return operator.call(*arguments)


def fp32_append_dtype(operator, device_type, arguments):
    """The same for `norm`. In PyTorch: its overload with `dtype` is called, which casts as it reads; there is none here."""
    return fp32(operator, device_type, arguments)


def promote(operator, device_type, arguments):
    """float32 if an operand has it, else the dtype of the autocast. RuntimeError for a third one that comes before float32."""
    dtype = get_autocast_dtype(device_type)
    for t in _tensors(arguments):
        dtype = _wider(dtype, t, device_type)
    return operator.call(*[cached_cast(dtype, a, device_type) for a in arguments])


def _tensors(arguments):
    return (t for a in arguments for t in (a if isinstance(a, (list, tuple)) else (a,)))


def _wider(dtype, t, device_type):
    if not is_eligible(t, device_type):
        return dtype
    if float32 in (dtype, t.dtype):
        return float32
    if dtype == t.dtype:
        return dtype
    raise RuntimeError("Unexpected floating ScalarType in at::autocast::prioritize")


def banned(operator, device_type, arguments):
    """On CUDA: the logarithm of a float16 that was rounded to 0 or 1 is lost."""
    raise RuntimeError(
        "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
        "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
        "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
        "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
        "safe to autocast."
    )


# ------------------------------------------------------------------------------------------ which operator has which

_CPU = {
    lower_precision_fp: (
        "conv1d conv1d.padding conv2d conv2d.padding conv3d conv3d.padding conv_tbc conv_transpose1d conv_transpose2d.input "
        "conv_transpose3d.input _convolution.deprecated mm bmm addmm addbmm baddbmm matmul linear _addmm_activation "
        "linalg_vecdot prelu mkldnn_rnn_layer scaled_dot_product_attention _native_multi_head_attention"
    ),
    fp32: (
        # losses
        "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss nll_loss2d cross_entropy_loss kl_div poisson_nll_loss soft_margin_loss "
        "multi_margin_loss multilabel_margin_loss multilabel_margin_loss_forward margin_ranking_loss triplet_margin_loss "
        "hinge_embedding_loss cosine_embedding_loss binary_cross_entropy binary_cross_entropy_with_logits ctc_loss.IntList "
        "ctc_loss.Tensor "
        # Fourier transforms
        "fft_fft fft_ifft fft_fft2 fft_ifft2 fft_fftn fft_ifftn fft_rfft fft_irfft fft_rfft2 fft_irfft2 fft_rfftn fft_irfftn fft_hfft "
        "fft_ihfft stft stft.center "
        # linear algebra
        "linalg_cond linalg_cond.p_str linalg_matrix_rank linalg_matrix_rank.tol_tensor linalg_matrix_rank.atol_rtol_tensor "
        "linalg_matrix_rank.atol_rtol_float linalg_solve linalg_cholesky linalg_cholesky_ex linalg_svd linalg_svdvals linalg_eig "
        "linalg_eigvals linalg_eigh linalg_eigvalsh linalg_inv linalg_inv_ex linalg_householder_product linalg_tensorinv "
        "linalg_tensorsolve linalg_qr linalg_lstsq cholesky cholesky_inverse cholesky_solve inverse pinverse lu_solve _lu_with_info "
        "qr svd geqrf orgqr ormqr triangular_solve trace "
        # pooling, padding, sampling
        "avg_pool3d max_pool3d max_unpool2d max_unpool3d adaptive_avg_pool3d adaptive_max_pool3d fractional_max_pool2d "
        "fractional_max_pool3d reflection_pad1d reflection_pad2d replication_pad1d replication_pad2d replication_pad3d grid_sampler "
        "grid_sampler_2d _grid_sampler_2d_cpu_fallback grid_sampler_3d "
        # the rest
        "prod prod.dim_int quantile quantile.scalar nanquantile nanquantile.scalar cdist polar view_as_complex "
        "fake_quantize_per_tensor_affine"
    ),
    promote: "stack cat index_copy",
}
_CUDA = {
    lower_precision_fp: (
        "_convolution _convolution.deprecated convolution conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d.input "
        "conv_transpose3d.input cudnn_convolution cudnn_convolution_transpose mm mv bmm addmm addmv addr addbmm baddbmm matmul einsum "
        "linear chain_matmul linalg_multi_dot linalg_vecdot prelu lstm_cell gru_cell rnn_tanh_cell rnn_relu_cell "
        "_thnn_fused_lstm_cell _thnn_fused_gru_cell scaled_dot_product_attention _scaled_dot_product_flash_attention"
    ),
    fp32: (
        # functions of one number
        "acos asin cosh sinh tan erfinv exp expm1 log log10 log2 log1p reciprocal rsqrt pow.Tensor_Scalar pow.Tensor_Tensor "
        "pow.Scalar softplus "
        # norms and distances
        "layer_norm native_layer_norm group_norm rms_norm frobenius_norm.dim nuclear_norm nuclear_norm.dim renorm logsumexp dist "
        "pdist cdist cosine_similarity "
        # losses
        "mse_loss l1_loss smooth_l1_loss huber_loss nll_loss nll_loss2d kl_div poisson_nll_loss soft_margin_loss multi_margin_loss "
        "multilabel_margin_loss margin_ranking_loss triplet_margin_loss hinge_embedding_loss cosine_embedding_loss "
        "binary_cross_entropy_with_logits "
        # interpolation
        "upsample_nearest1d upsample_nearest2d upsample_nearest3d _upsample_nearest_exact1d _upsample_nearest_exact2d "
        "_upsample_nearest_exact3d upsample_linear1d upsample_bilinear2d _upsample_bilinear2d_aa upsample_trilinear3d "
        "upsample_bicubic2d _upsample_bicubic2d_aa"
    ),
    fp32_set_opt_dtype: (
        "prod prod.dim_int sum sum.dim_IntList cumsum cumprod softmax.int log_softmax.int linalg_vector_norm linalg_matrix_norm "
        "linalg_matrix_norm.str_ord"
    ),
    fp32_append_dtype: "norm.Scalar norm.ScalarOpt_dim",
    promote: "addcdiv addcmul atan2 bilinear cross dot vdot grid_sampler index_put tensordot scatter_add",
    banned: "binary_cross_entropy",
}
POLICIES = {
    device_type: {f"aten::{name}": policy for policy, names in table.items() for name in names.split()}
    for device_type, table in {"cpu": _CPU, "cuda": _CUDA}.items()
}


def autocast_writer(device_type):
    """What writes the kernels of a kind of device, for the operators that have a policy there."""
    key, policies = KEYS[device_type], POLICIES[device_type]

    def make_autocast_kernel(operator, keys):
        policy = policies[operator.name]

        def autocast_kernel(*arguments):
            with KeyGuard(exclude=key):
                return policy(operator, device_type, arguments)

        return autocast_kernel

    make_autocast_kernel.serves = lambda operator: operator.name in policies
    return make_autocast_kernel


for _device_type, _key in KEYS.items():
    dispatcher.writers[_key] = autocast_writer(_device_type)
