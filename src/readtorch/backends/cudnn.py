"""NVIDIA's library of layers: not here, its settings are kept. In PyTorch: `torch/backends/cudnn/__init__.py`."""

import sys
import warnings

from readtorch.aten.context import check_bool, context
from readtorch.aten.float32_precision import float32_precision
from readtorch.c10.scalar_type import float16, float32, float64

from ._settings import ContextProp, FP32Precision, PropModule, changed, flags_of, precision, setting

CUDNN_TENSOR_DTYPES = {float16, float32, float64}
benchmark_limit = None  # how many algorithms a benchmark may try: of a library that is there


def version():
    """None: there is no such library."""


def is_available():
    """Whether the library is there."""
    return False


def is_acceptable(tensor):
    """Whether the library could compute with this tensor: no. Warns where PyTorch with the library would say yes."""
    if context.cudnn_enabled and tensor.device.type == "cuda" and tensor.dtype in CUDNN_TENSOR_DTYPES:
        warnings.warn(
            "PyTorch was compiled without cuDNN/MIOpen support. To use cuDNN/MIOpen, rebuild "
            "PyTorch making sure the library is visible to the build system.",
            stacklevel=2,
        )
    return False


def set_flags(
    _enabled=None,
    _benchmark=None,
    _benchmark_limit=None,
    _deterministic=None,
    _allow_tf32=None,
    _fp32_precision="none",
    _depthwise_kernel=None,
):
    """Set what is not None, frozen or not. Returns what it was before, as a tuple."""
    before = changed(
        sys.modules[__name__],
        enabled=_enabled,
        benchmark=_benchmark,
        deterministic=_deterministic,
        allow_tf32=_allow_tf32,
        fp32_precision=_fp32_precision,
        depthwise_kernel=_depthwise_kernel,
    )
    was = list(before.values())
    return (*was[:2], None, *was[2:])


def flags(
    enabled=False,
    benchmark=False,
    benchmark_limit=10,
    deterministic=False,
    allow_tf32=True,
    fp32_precision="none",
    depthwise_kernel="auto",
):
    """`with flags(enabled=True, deterministic=True):` the settings inside are these."""
    return flags_of(
        sys.modules[__name__],
        enabled=enabled,
        benchmark=benchmark,
        deterministic=deterministic,
        allow_tf32=allow_tf32,
        fp32_precision=fp32_precision,
        depthwise_kernel=depthwise_kernel,
    )


def _allow_tf32(allowed):
    check_bool(allowed, "set_allow_tf32_cublas")  # so in PyTorch, too
    float32_precision.set_cudnn_tf32(allowed)


def _choose_depthwise_kernel(name):
    if not isinstance(name, str):
        raise RuntimeError(f"set_cudnn_depthwise_kernel expects a string, but got {type(name).__name__}")
    if name not in ("auto", "cudnn", "native"):
        raise RuntimeError(f"Unknown cuDNN depthwise kernel mode: {name}. Expected one of: auto, cudnn, native")
    context.cudnn_depthwise_kernel = name


class _CudnnModule(PropModule):
    enabled = setting("cudnn_enabled", "set_enabled_cudnn")
    deterministic = setting("cudnn_deterministic", "set_deterministic_cudnn")
    benchmark = setting("cudnn_benchmark", "set_benchmark_cudnn")
    allow_tf32 = ContextProp(float32_precision.cudnn_tf32_allowed, _allow_tf32)
    conv = FP32Precision("cuda", "conv")
    fp32_precision = precision("cuda", "all")
    depthwise_kernel = ContextProp(lambda: context.cudnn_depthwise_kernel, _choose_depthwise_kernel)


sys.modules[__name__].__class__ = _CudnnModule
