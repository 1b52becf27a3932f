"""readtorch: PyTorch from the inside, small enough to read.

The front door. In PyTorch: `torch/__init__.py`. Explained in the chapter "import torch".
"""

import os as _os
from math import e, inf, nan, pi
from typing import TYPE_CHECKING as _TYPE_CHECKING

from .c10 import python_builtins as _python_builtins  # before numba is imported
from . import _C
from ._C import (
    DispatchKey,
    DispatchKeySet,
    ExcludeDispatchKeyGuard,
    Generator,
    ScriptModule,
    ScriptObject,
    Size,
    _mkldnn,
    channels_last,
    channels_last_3d,
    contiguous_format,
    device,
    dtype,
    jagged,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from .c10 import scalar_type as _scalar_type
from ._settings import (
    are_deterministic_algorithms_enabled,
    get_default_device,
    get_deterministic_debug_mode,
    get_float32_matmul_precision,
    is_deterministic_algorithms_warn_only_enabled,
    set_default_device,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    use_deterministic_algorithms,
)
from .aten.cpu.flush_denormal import set_flush_denormal
from .aten.parallel import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from .c10.exception import is_warn_always_enabled, set_warn_always
from .c10.qscheme import (
    per_channel_affine,
    per_channel_affine_float_qparams,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
    qscheme,
)
from .c10.scalar_type import can_cast as _can_cast
from .c10.scalar_type import get_default_dtype, promote_types, set_default_dtype
from ._sym_functions import sym_float, sym_int, sym_ite, sym_max, sym_min, sym_not, sym_sum
from .c10.sym_int import SymBool, SymFloat, SymInt
from .c10.types_without_tensors import TYPES_WITHOUT_TENSORS as _types_without_tensors
from .c10.type_info import finfo, iinfo
from .csrc.distributed.future import Future
from .csrc.tensor.python_tensor import cpu_types as _cpu_types
from .csrc.tensor.python_tensor import set_default_tensor_type

# Every operator that is a function: torch.add, torch.zeros …
globals().update(vars(_C._VariableFunctions))
if _TYPE_CHECKING:
    from ._VariableFunctions import *  # noqa: F403  the same, as type checkers can read it
# Every element type, also under its second name: torch.float32 and torch.float.
globals().update({t.name: t for t in _scalar_type.ALL_TYPES}, **_scalar_type.ALIASES)
globals().update(_types_without_tensors, chalf=_types_without_tensors["complex32"])
# The old names of tensor types: FloatTensor, LongTensor …
globals().update(_cpu_types)

newaxis = None

from . import autograd
from ._tensor import Tensor
from ._tensor_str import set_printoptions
from .autograd import enable_grad, inference_mode, is_grad_enabled, is_inference_mode_enabled, no_grad, set_grad_enabled
from .functional import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    broadcast_shapes,
    broadcast_tensors,
    cartesian_prod,
    cdist,
    meshgrid,
    split,
    unravel_index,
)
from .storage import TypedStorage, UntypedStorage
from .storage import _storage_classes, _warn_typed_storage_removal, legacy_classes as _legacy_storages
from .serialization import load, save
from .serialization._file_reader import PyTorchFileReader
from .random import default_generator, fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

# FloatStorage, LongStorage …: names in checkpoints.
globals().update(_legacy_storages, Storage=_legacy_storages["FloatStorage"])

from . import (
    __config__,
    __future__,
    accelerator,
    amp,
    backends,
    compiler,
    cpu,
    cuda,
    distributed,
    fft,
    func,
    futures,
    hub,
    linalg,
    multiprocessing,
    nn,
    optim,
    overrides,
    profiler,
    return_types,
    serialization,
    signal,
    sparse,
    special,
    testing,
    types,
    utils,
    version,
)
from .amp import GradScaler, autocast
from .csrc.autograd.autocast_init import *  # noqa: F403
from . import _VF
from .func import vmap
from ._ops import ops
from .aten.tags import Tag
from .c10.cuda.cuda_exception import AcceleratorError, OutOfMemoryError
from .cuda.streams import Event, Stream
from ._checks import (
    _check,
    _check_index,
    _check_is_size,
    _check_not_implemented,
    _check_tensor_all,
    _check_tensor_all_with,
    _check_type,
    _check_value,
    _check_with,
)
from ._linalg_utils import _symeig as symeig, eig, lstsq, matrix_rank, solve
from ._lowrank import pca_lowrank, svd_lowrank
from .utils import checkpoint as _checkpoint, data as _data, serialization as _serialization  # `utils.data` is there
from .utils import _device as _utils_device, deterministic as _deterministic
from .utils.dlpack import from_dlpack, to_dlpack
from .torch_version import __version__
from ._higher_order_ops import cond, while_loop

legacy_contiguous_format = contiguous_format  # an old name


def compile(
    model=None,
    *,
    fullgraph=False,
    dynamic=None,
    backend=None,
    mode=None,
    options=None,
    name=None,
    disable=False,
    recompile_limit=None,
):
    """`model` (a function or a Module) with graphs of its calls kept and fused; without `model`, a decorator.

    fullgraph: raise where a call cannot be captured. dynamic: False for a graph a shape. backend: a name
    ("inductor" if None), or a function (graph, inputs) -> function of the inputs. mode, options, name: accepted,
    without effect.
    Raises InvalidBackend for unknown names, RuntimeError for unknown modes. Explained in the chapter "Inductor: loops, fusion, code".
    """
    if model is None:
        given = dict(fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name)
        return lambda model: compile(model, **given, disable=disable, recompile_limit=recompile_limit)
    if mode is not None and options is not None:
        raise RuntimeError("Either mode or options can be specified, but both can't be specified at the same time.")
    if disable:
        return compiler.disable(model)
    from . import _dynamo  # in PyTorch: imported when first needed, too

    _dynamo.check_mode(mode, backend or "inductor")
    if _os.environ.get("TORCHDYNAMO_DISABLE", "") == "1":
        return model
    options = dict(fullgraph=fullgraph, dynamic=dynamic, recompile_limit=recompile_limit)
    return _dynamo.optimize(model, backend=backend or "inductor", **options)


def is_tensor(obj):
    """Whether `obj` is a Tensor."""
    return isinstance(obj, Tensor)


def is_storage(obj):
    """Whether `obj` is a storage."""
    return isinstance(obj, (TypedStorage, UntypedStorage))


def typename(obj):
    """The full name of an object's type, as error messages give it: "torch.FloatTensor", "builtins" left out."""
    if isinstance(obj, Tensor):
        return obj.type()
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(obj, "__module__", "") if named is obj else named.__module__
    return named.__qualname__ if module in ("", None, "builtins") else f"{module}.{named.__qualname__}"


def compiled_with_cxx11_abi():
    """True, as in every build of PyTorch since 2.7. Nothing here is compiled from C++."""
    return True


def get_device_module(device=None):
    """The module of a device's type: `readtorch.cpu`, `readtorch.cuda`. None: of the accelerator, if there is one.

    Raises RuntimeError if the type has no module.
    """
    if device is None:
        device = accelerator.current_accelerator() or "cpu"
    if not isinstance(device, (str, _C.device)):
        raise RuntimeError(f"Invalid value of device '{device}', expect torch.device, str, or None")
    kind = _C.device(device).type
    if kind not in {*globals(), *_LATER}:
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return globals()[kind] if kind in globals() else __getattr__(kind)


def _assert(condition, message):
    """`assert condition, message` that a trace records."""
    if type(condition) is not Tensor and overrides.has_torch_function((condition,)):
        return overrides.handle_torch_function(_assert, (condition,), condition, message)
    if not condition:
        raise AssertionError(message)


_LATER = {
    "_dynamo",
    "_export",
    "_inductor",
    "ao",
    "distributions",
    "export",
    "fx",
    "jit",
    "library",
    "masked",
    "mps",
    "mtia",
    "nested",
    "onnx",
    "quantization",
    "quasirandom",
    "xpu",
}


def __getattr__(name):
    """`readtorch.jit` and its like are loaded when they are first asked for: most programs never do."""
    if name in _LATER:
        import importlib

        return importlib.import_module(f"readtorch.{name}")
    raise AttributeError(f"module 'readtorch' has no attribute '{name}'")


def __dir__():
    return sorted({*globals(), *_LATER})


# What `from readtorch import *` gives: no modules, which would take the places of Python's `random`, `signal` and `types`.
# Type checkers are not shown the list: they take one that they cannot compute for an empty one.
globals().update(
    __all__=sorted(
        _name for _name, _value in globals().items() if not _name.startswith("_") and not isinstance(_value, type(_os))
    )
)


_simulated = _os.environ.get("READTORCH_SIMULATE_CUDA")
if _simulated:
    cuda.simulate_as_asked(_simulated)
