"""Intel's library of layers, oneDNN: not here, its settings are kept. In PyTorch: `torch/backends/mkldnn/__init__.py`."""

import sys
import warnings

from readtorch.aten.context import check_bool

from ._settings import ContextProp, FP32Precision, PropModule, changed, flags_of, precision, setting

VERBOSE_OFF = 0
VERBOSE_ON = 1
VERBOSE_ON_CREATION = 2


def is_available():
    """Whether the library is there."""
    return False


def is_acl_available():
    """Whether it is there and uses Arm's Compute Library."""
    return False


class verbose:
    """`with verbose(VERBOSE_ON):` has the library tell of every call. AssertionError: it is not there."""

    def __init__(self, level):
        self.level = level

    def __enter__(self):
        if self.level != VERBOSE_OFF:
            raise AssertionError(
                "Failed to set MKLDNN into verbose mode. Please consider to disable this verbose scope."
            )

    def __exit__(self, exc_type, exc_val, exc_tb):
        return False


def set_flags(_enabled=None, _deterministic=None, _allow_tf32=None, _fp32_precision="none"):
    """Set what is not None, frozen or not. Returns what it was before, as a tuple."""
    values = dict(enabled=_enabled, deterministic=_deterministic, allow_tf32=_allow_tf32)
    return tuple(changed(sys.modules[__name__], **values, _own_precision=_fp32_precision).values())


def flags(enabled=False, deterministic=False, allow_tf32=True, fp32_precision="none"):
    """`with flags(enabled=False):` the settings inside are these."""
    values = dict(enabled=enabled, deterministic=deterministic, allow_tf32=allow_tf32)
    return flags_of(sys.modules[__name__], **values, _own_precision=fp32_precision)


def _refuse_tf32(allowed):
    check_bool(allowed, "_set_onednn_allow_tf32")
    warnings.warn(
        "TF32 acceleration on top of oneDNN is available for Intel GPUs. The current Torch version does not have Intel GPU "
        "Support.",
        stacklevel=3,
    )


class _MkldnnModule(PropModule):
    enabled = setting("mkldnn_enabled", "set_enabled_mkldnn")
    deterministic = setting("mkldnn_deterministic", "set_deterministic_mkldnn")
    allow_tf32 = ContextProp(lambda: None, _refuse_tf32)
    _own_precision = precision("mkldnn", "all")
    fp32_precision = ContextProp(_own_precision.getter, precision("generic", "all").setter)  # so in PyTorch, too
    matmul = FP32Precision("mkldnn", "matmul")
    conv = FP32Precision("mkldnn", "conv")
    rnn = FP32Precision("mkldnn", "rnn")


sys.modules[__name__].__class__ = _MkldnnModule
