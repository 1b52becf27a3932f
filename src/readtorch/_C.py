"""The engine room's names, gathered in one module as PyTorch's extension `torch._C` gathers them.

In PyTorch: `torch/csrc/Module.cpp` (`PyInit__C`, `initModule`). Explained in the chapter "import torch".
"""
from types import SimpleNamespace as _Namespace

from .aten import native  # noqa: F401  (1. every operator registers itself)
from .aten.functions import face_of as _face_of
from .aten.native_function import packets as _packets
from .c10 import cpu_allocator as _cpu_allocator
from .c10.device import device  # noqa: F401
from .c10.layout import (channels_last, channels_last_3d, contiguous_format, layout, memory_format, preserve_format,  # noqa: F401
                         sparse_coo, strided)
from .c10.scalar_type import dtype, get_default_dtype  # noqa: F401
from .c10.size import Size  # noqa: F401
from .csrc.autograd import inference_mode as _inference_mode  # noqa: F401
from .csrc.autograd import variable_type as _variable_type  # noqa: F401  (2. the dispatcher learns to write Autograd kernels)
from .csrc.generator import Generator, default_generator  # noqa: F401
from .csrc.autograd.python_variable import TensorBase  # noqa: F401  (3. the operators become methods)


_cpu_allocator.keep_freed_memory()


def _functions(module):
    """Name -> function for all operators of one Python module."""
    names = [name for (place, name), packet in _packets.items() if place == module and packet.is_function]
    return {name: _face_of(module, name) for name in names}


_VariableFunctions = _Namespace(**_functions("torch"))
_nn = _Namespace(**_functions("nn"))
_linalg = _Namespace(**_functions("linalg"))
_special = _Namespace(**_functions("special"))
_fft = _Namespace(**_functions("fft"))
