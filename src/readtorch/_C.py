"""The engine room's names, gathered in one module as PyTorch's extension `torch._C` gathers them.

In PyTorch: `torch/csrc/Module.cpp` (`PyInit__C`, `initModule`). Explained in the chapter "import torch".
"""
from types import SimpleNamespace as _Namespace

# What in PyTorch has happened when the libraries have been mapped, before `initModule` is called.
from .aten import native  # noqa: F401  (every operator registers itself)
from .csrc.autograd import variable_type as _variable_type  # noqa: F401  (it writes Autograd kernels)
from .c10 import cpu_allocator as _cpu_allocator
from .aten.functions import face_of as _face_of
from .aten.native_function import packets as _packets
from .csrc.autograd import inference_mode as _inference_mode  # noqa: F401

_cpu_allocator.keep_freed_memory()

# From here on the order is that of `initModule`.
from .c10.scalar_type import get_default_dtype  # noqa: E402,F401
from .csrc.generator import Generator  # noqa: E402,F401
from .c10.size import Size  # noqa: E402,F401
from .c10.scalar_type import dtype  # noqa: E402,F401
from .c10.type_info import finfo, iinfo  # noqa: E402,F401
from .c10.layout import layout, memory_format  # noqa: E402,F401
from .c10.device import device  # noqa: E402,F401
from .csrc.autograd.python_variable import TensorBase  # noqa: E402,F401  (the operators become methods)


def _operators_of(module):
    """Name -> function for all operators of one Python module."""
    names = [name for (place, name), packet in _packets.items() if place == module and packet.is_function]
    return {name: _face_of(module, name) for name in names}


_VariableFunctions = _Namespace(**_operators_of("torch"))
_nn = _Namespace(**_operators_of("nn"))
_fft = _Namespace(**_operators_of("fft"))
_linalg = _Namespace(**_operators_of("linalg"))
_special = _Namespace(**_operators_of("special"))

from .csrc.generator import default_generator  # noqa: E402,F401

# In PyTorch: `_C._initExtension` puts these into `torch`, when it is half made.
from .c10.layout import channels_last, channels_last_3d, contiguous_format, preserve_format  # noqa: E402,F401
from .c10.layout import sparse_coo, strided  # noqa: E402,F401
