"""NVIDIA's GPUs: their kernels are those of numba here, none of NVIDIA's libraries is used, and what is set for these is kept.

In PyTorch: `torch/backends/cuda/__init__.py`.
"""

import contextlib
import warnings

from readtorch.aten.blas_backend import BlasBackend, LinalgBackend, ROCmFABackend
from readtorch.aten.context import check_bool, context
from readtorch.aten.float32_precision import float32_precision
from readtorch.aten.native.transformers.cuda.sdp_utils import why_not_flash
from readtorch.aten.sdp_backend import SDPBackend
from readtorch.c10.cuda import runtime
from readtorch.c10.dispatch_key import CUDA
from readtorch.cuda import current_device, device_count
from readtorch.cuda._utils import _get_device_index

from ._settings import set_precision


def is_built():
    """Whether this build can use such a GPU where there is one: numba compiles the kernels."""
    return True


# -- products of matrices ---------------------------------------------------------------------------


def _pair_of_bools(value, name):
    """(in reduced precision, with the sum split) of a bool, or of one or two of them. TypeError for anything else."""
    if isinstance(value, bool):
        return value, True
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"{name} expects a bool or a tuple/list of bools, but got {type(value)!r}")
    if not 1 <= len(value) <= 2:
        raise TypeError(f"{name} expects at {'most two boolean arguments' if value else 'least one boolean argument'}")
    for which, part in zip(("allow_reduced_precision", "allow_splitk"), value):
        if not isinstance(part, bool):
            raise TypeError(f"{name} expects a bool for {which}, but got {type(part)!r}")
    reduced, split = (*value, True)[:2]
    if reduced and not split:
        raise RuntimeError("allow_splitk=False is not supported when reduced precision reductions are enabled")
    return reduced, split


class cuBLASModule:
    """How a library for products of matrices may round. Raises AttributeError for any other name."""

    def __getattr__(self, name):
        for kind in ("fp16", "bf16"):
            if name.startswith(reduction := f"allow_{kind}_reduced_precision_reduction"):
                pair = getattr(context, f"cublas_{kind}_reduction")
                if name in (reduction, f"{reduction}_split_k"):
                    return pair[name != reduction]
        if name == "allow_tf32":
            return float32_precision.cublas_tf32()
        if name == "allow_fp16_accumulation":
            return context.cublas_fp16_accumulation
        if name == "fp32_precision":
            return float32_precision.get("cuda", "matmul")
        raise AttributeError("Unknown attribute " + name)

    def __setattr__(self, name, value):
        if name == "allow_tf32":
            check_bool(value, "set_allow_tf32_cublas")
            float32_precision.set_cublas_tf32(value)
        elif name == "allow_fp16_reduced_precision_reduction":
            context.cublas_fp16_reduction = _pair_of_bools(value, name)
        elif name == "allow_bf16_reduced_precision_reduction":
            context.cublas_bf16_reduction = _pair_of_bools(value, name)
        elif name == "allow_fp16_accumulation":
            check_bool(value, "set_allow_fp16_accumulation_cublas")
            context.cublas_fp16_accumulation = value
        elif name == "fp32_precision":
            set_precision("cuda", "matmul", value)
        else:
            raise AttributeError("Unknown attribute " + name)


matmul = cuBLASModule()


# -- which library ----------------------------------------------------------------------------------

_LinalgBackends = {"default": LinalgBackend.Default, "cusolver": LinalgBackend.Cusolver, "magma": LinalgBackend.Magma}
_BlasBackends = {
    "default": BlasBackend.Default,
    "cublas": BlasBackend.Cublas,
    "hipblas": BlasBackend.Cublas,
    "cublaslt": BlasBackend.Cublaslt,
    "hipblaslt": BlasBackend.Cublaslt,
    "ck": BlasBackend.Ck,
}
_ROCmFABackends = {"default": ROCmFABackend.Default, "aotriton": ROCmFABackend.AOTriton, "ck": ROCmFABackend.Ck}


def _named(backend, backends, refuse=RuntimeError):
    """A library given by its name or as what it is. RuntimeError for an unknown name, `refuse` for another type."""
    choose = f"Unknown input value. Choose from: {', '.join(backends)}."
    if isinstance(backend, str):
        if backend not in backends:
            raise RuntimeError(choose)
        return backends[backend]
    if isinstance(backend, type(backends["default"])):
        return backend
    raise refuse("Unknown input value type." if refuse is RuntimeError else choose)


def _not_compiled(library):
    return RuntimeError(f"Cannot set preferred backend to {library} if PyTorch has not been compiled with {library}.")


def preferred_linalg_library(backend=None):
    """Ask for a library of linear algebra: "default", "cusolver" or "magma". Returns the one that was asked for.

    RuntimeError for all but "default": there is none of them.
    """
    if backend is not None:
        chosen = _named(backend, _LinalgBackends)
        if chosen is not LinalgBackend.Default:
            raise _not_compiled("cuSOLVER" if chosen is LinalgBackend.Cusolver else "MAGMA")
        context.linalg_library = chosen
    return context.linalg_library


def preferred_blas_library(backend=None):
    """Ask for a library of products: "default", "cublas", "cublaslt" or "ck". Returns the one that was asked for.

    RuntimeError for "cublaslt", which is not there; the others are kept, without effect.
    """
    if backend is not None:
        chosen = _named(backend, _BlasBackends)
        if chosen is BlasBackend.Cublaslt:
            raise _not_compiled("cuBLASLt")
        context.blas_library = BlasBackend.Cublas if chosen is BlasBackend.Default else chosen
    return context.blas_library


def preferred_rocm_fa_library(backend=None):
    """Ask for AMD's way to compute attention: "default", "aotriton" or "ck". It is kept, without effect."""
    if backend is not None:
        context.rocm_fa_library = _named(backend, _ROCmFABackends, refuse=ValueError)
    return context.rocm_fa_library


def _verb(size):
    return "get" if size is None else "set"


def cublas_workspace_size(size=None):
    """Raises AttributeError: without the library it has no memory."""
    raise AttributeError(f"module 'torch._C' has no attribute '_cuda_{_verb(size)}CublasWorkspaceSize'")


def cublaslt_workspace_size(size=None):
    """Raises AttributeError: without the library it has no memory."""
    raise AttributeError(f"module 'torch._C' has no attribute '_cuda_{_verb(size)}CublasLtWorkspaceSize'")


def blas_workspace_size(size=None, backend=None):
    """The same for the library that is named, or preferred. RuntimeError for names that do not exist, and for "ck"."""
    if isinstance(backend, str) and backend not in _BlasBackends:
        raise RuntimeError(f"Unknown backend string. Choose from: {', '.join(_BlasBackends)}.")
    if backend is not None and not isinstance(backend, (str, BlasBackend)):
        raise RuntimeError("Unknown backend type.")
    chosen = context.blas_library if backend is None else _named(backend, _BlasBackends)
    if chosen is BlasBackend.Ck:
        raise RuntimeError("CK backend does not use a workspace.")
    return cublaslt_workspace_size(size) if chosen is BlasBackend.Cublaslt else cublas_workspace_size(size)


# -- plans for Fourier transforms -------------------------------------------------------------------


def _no_plans(*arguments):
    raise RuntimeError("Cannot access cuFFT plan cache without ATen_cuda library.")


class cuFFTPlanCache:
    """The plans that a device's library for Fourier transforms has kept. RuntimeError: there is no such library."""

    size = max_size = property(_no_plans, _no_plans)
    clear = _no_plans

    def __init__(self, device_index):
        self.device_index = device_index


class cuFFTPlanCacheManager:
    """The caches of all devices, by index; its attributes are those of the current device's cache."""

    def __getitem__(self, device):
        index, count = _get_device_index(device), device_count()
        if not 0 <= index < count:
            raise RuntimeError(
                f"cufft_plan_cache: expected 0 <= device index < {count}, but got device with index {index}"
            )
        return cuFFTPlanCache(index)

    def __getattr__(self, name):
        return getattr(self[current_device()], name)

    def __setattr__(self, name, value):
        setattr(self[current_device()], name, value)


cufft_plan_cache = cuFFTPlanCacheManager()


# -- attention ---------------------------------------------------------------------------------------


def _allow(backend, enabled, setter_says="set_sdp_use_math"):  # the same words for most of them, so in PyTorch, too
    check_bool(enabled, setter_says)
    context.set_sdp_backend(backend, enabled)


def flash_sdp_enabled():
    """Whether `scaled_dot_product_attention` may be one operator."""
    return SDPBackend.FLASH_ATTENTION in context.sdp_backends


def enable_flash_sdp(enabled: bool):
    """Let `scaled_dot_product_attention` be one operator, or not. RuntimeError for no bool."""
    _allow(SDPBackend.FLASH_ATTENTION, enabled)


def mem_efficient_sdp_enabled():
    """Whether the memory-efficient kernel may be used: it is not there."""
    return SDPBackend.EFFICIENT_ATTENTION in context.sdp_backends


def enable_mem_efficient_sdp(enabled: bool):
    """Allow or forbid the memory-efficient kernel. RuntimeError for no bool."""
    _allow(SDPBackend.EFFICIENT_ATTENTION, enabled)


def math_sdp_enabled():
    """Whether attention may be computed step by step."""
    return SDPBackend.MATH in context.sdp_backends


def enable_math_sdp(enabled: bool):
    """Let attention be computed step by step, or not. RuntimeError for no bool."""
    _allow(SDPBackend.MATH, enabled)


def cudnn_sdp_enabled():
    """Whether cuDNN's kernel may be used: it is not there."""
    return SDPBackend.CUDNN_ATTENTION in context.sdp_backends


def enable_cudnn_sdp(enabled: bool):
    """Allow or forbid cuDNN's kernel. RuntimeError for no bool."""
    if type(enabled) is not bool:
        raise RuntimeError(f"set_sdp_use_cudnn expects a bool, but got %s{type(enabled).__name__}")
    _allow(SDPBackend.CUDNN_ATTENTION, enabled)


def allow_fp16_bf16_reduction_math_sdp(enabled: bool):
    """Allow sums in half precision, step by step. It is kept, without effect. RuntimeError for no bool."""
    check_bool(enabled, "set_sdp_use_math")
    context.math_sdp_low_precision_reduction = enabled


def fp16_bf16_reduction_math_sdp_allowed():
    """What `allow_fp16_bf16_reduction_math_sdp` has set."""
    return context.math_sdp_low_precision_reduction


def is_flash_attention_available() -> bool:
    """Whether there is a GPU that runs the kernel of that name. In PyTorch: whether the build has it."""
    return runtime.is_available() and runtime.driver().runs_kernels


def is_ck_sdpa_available() -> bool:
    """Whether the build has AMD's kernel of that name."""
    return False


class SDPAParams:
    """The arguments of one call of attention, to ask which kernel could compute it."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa


SDPAParams.__qualname__ = "_SDPAParams"  # as in C++, where the class has that name


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the kernel for GPUs could. debug: say why not, in a warning."""
    if not params.query._keys & CUDA:
        return False
    p = params
    reason = why_not_flash(p.query, p.key, p.value, p.attn_mask, p.dropout, p.is_causal, p.enable_gqa)
    if reason is not None and debug:
        warnings.warn(reason, stacklevel=2)
    return reason is None


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether the memory-efficient kernel could: it is not there."""
    return False


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Whether cuDNN's kernel could: it is not there."""
    return False


@contextlib.contextmanager
def _only(backends):
    before, context.sdp_backends = context.sdp_backends, tuple(backends)
    try:
        yield {}
    finally:
        context.sdp_backends = before


def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
):
    """`with sdp_kernel(enable_flash=False):` warns that `nn.attention.sdpa_kernel` has replaced it, and does the same."""
    warnings.warn(
        "`torch.backends.cuda.sdp_kernel()` is deprecated. "
        "In the future, this context manager will be removed. "
        "Please see `torch.nn.attention.sdpa_kernel()` for the new context manager, "
        "with updated signature.",
        FutureWarning,
        stacklevel=2,
    )
    asked = {
        SDPBackend.FLASH_ATTENTION: enable_flash,
        SDPBackend.EFFICIENT_ATTENTION: enable_mem_efficient,
        SDPBackend.MATH: enable_math,
        SDPBackend.CUDNN_ATTENTION: enable_cudnn,
    }
    return _only([backend for backend, wanted in asked.items() if wanted])
