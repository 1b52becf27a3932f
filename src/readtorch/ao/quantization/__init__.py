"""Quantization of a model's layers. In PyTorch: `torch/ao/quantization/__init__.py`.

Here are dynamic quantization of `Linear`, observers and rounding as if to integers, the marks where a model's numbers become
integers, and the fusion of layers. Left out: quantized tensors, and so what makes them (`prepare`, `convert` …).
"""

from .fake_quantize import *  # noqa: F403
from .fake_quantize import __all__ as _of_fake_quantize
from .fuse_modules import fuse_modules, fuse_modules_qat
from .fuser_method_mappings import (
    fuse_conv_bn,
    fuse_conv_bn_relu,
    fuse_convtranspose_bn,
    fuse_linear_bn,
    get_fuser_method,
)
from .observer import *  # noqa: F403
from .observer import __all__ as _of_observer
from .qconfig import *  # noqa: F403
from .qconfig import __all__ as _of_qconfig
from .quantization_mappings import get_default_dynamic_quant_module_mappings
from .quantize import propagate_qconfig_, quantize, quantize_dynamic
from .stubs import DeQuantStub, QuantStub, QuantWrapper

__all__ = [
    *_of_fake_quantize,
    *_of_observer,
    *_of_qconfig,
    "DeQuantStub",
    "QuantStub",
    "QuantWrapper",
    "fuse_conv_bn",
    "fuse_conv_bn_relu",
    "fuse_convtranspose_bn",
    "fuse_linear_bn",
    "fuse_modules",
    "fuse_modules_qat",
    "get_default_dynamic_quant_module_mappings",
    "get_fuser_method",
    "propagate_qconfig_",
    "quantize",
    "quantize_dynamic",
]
