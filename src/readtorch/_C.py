"""The names of c10, aten and csrc in one module, as PyTorch's extension `torch._C` has them.

In PyTorch: `torch/csrc/Module.cpp` (`PyInit__C`, `initModule`). Explained in the chapter "import torch".
"""

import sys as _sys
from types import ModuleType as _Module
from types import SimpleNamespace as _Namespace

# What in PyTorch has happened when the libraries have been mapped, before `initModule` is called.
from .aten import native  # noqa: F401  (every operator registers itself)
from .aten import autocast_mode as _autocast_mode  # noqa: F401
from .aten import register_backend_select as _register_backend_select  # noqa: F401
from .aten import conjugate_fallback as _conjugate_fallback  # noqa: F401  (one kernel for every operator)
from .aten import zero_tensor_fallback as _zero_tensor_fallback  # noqa: F401
from .aten.native import negate_fallback as _negate_fallback  # noqa: F401
from .aten.functorch import register_batch_rules as _register_batch_rules  # noqa: F401
from .csrc.autograd import gen_variable_type as _gen_variable_type  # noqa: F401  (it writes Autograd kernels)
from .csrc.autograd import gen_inplace_or_view_type as _gen_inplace_or_view_type  # noqa: F401
from .c10 import cpu_allocator as _cpu_allocator
from .aten.functions import binding_of as _binding_of
from .aten.native_function import packets as _packets
from .csrc.autograd import inference_mode as _inference_mode  # noqa: F401

_cpu_allocator.keep_freed_memory()

# From here on the order is that of `initModule`.
from .c10.logging import _log_api_usage_once  # noqa: E402,F401
from .csrc.module import (  # noqa: E402,F401
    get_deterministic_fill_uninitialized_memory as _get_deterministic_fill_uninitialized_memory,
    set_deterministic_fill_uninitialized_memory as _set_deterministic_fill_uninitialized_memory,
)
from .c10.exception import is_warn_always_enabled as _get_warnAlways  # noqa: E402,F401
from .c10.exception import set_warn_always as _set_warnAlways  # noqa: E402,F401
from .csrc.functorch.init import _vmapmode_increment_nesting, _vmapmode_decrement_nesting  # noqa: E402,F401
from .csrc.utils.tensor_dlpack import (  # noqa: E402,F401
    _to_dlpack,
    _to_dlpack_versioned,
    _from_dlpack,
    _torch_device_to_dl_device as _torchDeviceToDLDevice,
)
from .c10.scalar_type import get_default_dtype  # noqa: E402,F401
from .csrc.autograd.python_engine import (  # noqa: E402,F401
    will_engine_execute_node as _will_engine_execute_node,
    current_graph_task_id as _current_graph_task_id,
    current_node as _current_autograd_node,
)
from .csrc.utils.disable_torch_function import (  # noqa: E402,F401
    _is_torch_function_enabled,
    _is_torch_function_all_disabled,
    _disabled_torch_function_impl,
)
from .c10.torch_dispatch_mode_tls import _disabled_torch_dispatch_impl  # noqa: E402,F401
from .csrc.utils.disable_torch_function import (  # noqa: E402,F401
    _skip_one_hop_torch_function,
    _has_torch_function,
    _has_torch_function_unary,
    _has_torch_function_variadic,
)
from .csrc.autograd.init import (  # noqa: E402,F401
    _set_grad_enabled,
    is_grad_enabled,
    _set_fwd_grad_enabled,
    _is_fwd_grad_enabled,
)
from .csrc.autograd.autocast_init import (  # noqa: E402,F401
    set_autocast_enabled,
    is_autocast_enabled,
    set_autocast_dtype,
    get_autocast_dtype,
    _is_any_autocast_enabled,
    _is_autocast_available,
    clear_autocast_cache,
    set_autocast_cpu_enabled,
    is_autocast_cpu_enabled,
    set_autocast_cpu_dtype,
    get_autocast_cpu_dtype,
    set_autocast_gpu_dtype,
    get_autocast_gpu_dtype,
    set_autocast_xla_enabled,
    is_autocast_xla_enabled,
    set_autocast_xla_dtype,
    get_autocast_xla_dtype,
    set_autocast_ipu_enabled,
    is_autocast_ipu_enabled,
    set_autocast_ipu_dtype,
    get_autocast_ipu_dtype,
    autocast_increment_nesting,
    autocast_decrement_nesting,
    is_autocast_cache_enabled,
    set_autocast_cache_enabled,
)
from .csrc.autograd.init import (  # noqa: E402,F401
    increment_version as _increment_version,
    _enter_dual_level,
    _exit_dual_level,
)
from .csrc.utils.disable_torch_function import (  # noqa: E402,F401
    _is_torch_function_mode_enabled,
    _push_on_torch_function_stack,
    _pop_torch_function_stack,
    _get_function_stack_at,
    _len_torch_function_stack,
)
from .c10.torch_dispatch_mode_tls import _push_on_torch_dispatch_stack, _pop_torch_dispatch_stack  # noqa: E402,F401
from .c10.torch_dispatch_mode_tls import _get_dispatch_stack_at, _len_torch_dispatch_stack  # noqa: E402,F401
from .c10.torch_dispatch_mode_tls import _set_dispatch_mode, _get_dispatch_mode, _unset_dispatch_mode  # noqa: E402,F401
from .csrc.generator import Generator  # noqa: E402,F401
from .c10.size import Size  # noqa: E402,F401
from .c10.scalar_type import dtype  # noqa: E402,F401
from .c10.type_info import finfo, iinfo  # noqa: E402,F401
from .c10.layout import layout  # noqa: E402,F401
from .c10.memory_format import memory_format  # noqa: E402,F401
from .c10.device import device  # noqa: E402,F401
from .csrc.autograd.python_variable import _TensorMeta, TensorBase  # noqa: E402,F401  (the operators become methods)


def _operators_of(module, public):
    """Name -> function for all operators of one Python module, which say that they are of the module `public`."""
    names = [name for (owner, name), packet in _packets.items() if owner == module and packet.is_function]
    functions = {name: _binding_of(module, name) for name in names}
    for name, function in functions.items():
        if functions.get(function.__name__) is not function:  # clip is clamp, which has its name already
            function.__name__ = function.__qualname__ = name
        function.__module__ = public
    return functions


def _module_of(module):
    """`_C._nn` and the like: pickles of their functions import them."""
    made = _sys.modules[f"{__name__}.{module}"] = _Module(f"{__name__}.{module}")
    operators = _operators_of(module.removeprefix("_"), made.__name__)
    if module not in ("_nn", "_sparse"):
        for name, function in operators.items():
            function.__name__ = f"{module[1:]}_{name}"  # what `__torch_function__` finds as its name
        vars(made).update((function.__name__, function) for function in operators.values())
    vars(made).update(operators, __all__=sorted(operators))
    return made


_VariableFunctions = _Namespace(**_operators_of("torch", __package__))

from .csrc.autograd.python_engine import ImperativeEngine as _ImperativeEngine  # noqa: E402,F401
from .aten.tags import Tag  # noqa: E402,F401
from .csrc.module import is_alias_of as _is_alias_of  # noqa: E402,F401
from .c10.local_dispatch_key_set import trace_under_way as _get_tracing_state  # noqa: E402,F401
from .csrc.jit.api.object import ScriptObject  # noqa: E402,F401
from .csrc.jit.api.module import ScriptModule  # noqa: E402,F401


def _dispatch_library(kind, name, dispatch_key, file, line):
    """The registrar behind a `torch.library.Library`."""
    from .csrc.utils.library import Library

    return Library(kind, name, dispatch_key, file, line)


from .csrc.utils.python_dispatch_keys import (  # noqa: E402,F401
    _dispatch_dump,
    _dispatch_dump_table,
    _dispatch_has_kernel,
    _dispatch_has_kernel_for_dispatch_key,
    _dispatch_kernel_for_dispatch_key_is_fallthrough,
    _dispatch_has_kernel_for_any_dispatch_key,
    _dispatch_has_computed_kernel_for_dispatch_key,
)
from .csrc.utils.python_dispatch import _dispatch_get_computed_kernel_for_dispatch_key  # noqa: E402,F401
from .csrc.utils.python_dispatch_keys import (  # noqa: E402,F401
    _dispatch_find_dangling_impls,
    _dispatch_get_all_op_names,
    _dispatch_tls_set_dispatch_key_excluded,
    _dispatch_tls_is_dispatch_key_excluded,
    _dispatch_tls_set_dispatch_key_included,
    _dispatch_tls_is_dispatch_key_included,
    _dispatch_key_name,
    _dispatch_key_parse,
    _dispatch_num_backends,
)
from .c10.dispatch_key_set import DispatchKey, DispatchKeySet  # noqa: E402,F401
from .csrc.utils.python_dispatch_keys import (  # noqa: E402,F401
    _after_autograd_keyset,
    _after_ADInplaceOrView_keyset,
    _dispatch_has_backend_fallback,
    _dispatch_keyset_full_after,
    _dispatch_keyset_full,
    _dispatch_is_alias_key,
    _dispatch_keyset_to_string,
    _dispatch_get_backend_keyset_from_autograd,
    _dispatch_keys,
    _dispatch_tls_local_include_set,
    _dispatch_tls_local_exclude_set,
    _dispatch_is_included_in_alias,
    ExcludeDispatchKeyGuard,
    _ForceDispatchKeyGuard,
    _PreserveDispatchKeyGuard,
    _IncludeDispatchKeyGuard,
    _ExcludeDispatchKeyGuard,
    _SetExcludeDispatchKeyGuard,
    _AutoDispatchBelowAutograd,
    _AutoDispatchBelowADInplaceOrView,
    _dispatch_print_registrations_for_dispatch_key,
    _parse_dispatch_key,
    _dispatch_get_registrations_for_dispatch_key,
    _dispatch_key_for_device,
)
from .csrc.functorch.init import are_transforms_active as _are_functorch_transforms_active  # noqa: E402,F401
from .csrc.autograd.autocast_init import _autocast_supported_devices  # noqa: E402,F401
from .c10.torch_dispatch_mode_tls import _TorchDispatchModeKey  # noqa: E402,F401
from .csrc.functorch import init as _functorch  # noqa: E402,F401

_sys.modules[f"{__name__}._functorch"] = _functorch

_nn, _fft, _linalg, _sparse, _special = map(_module_of, ("_nn", "_fft", "_linalg", "_sparse", "_special"))
from .csrc.autograd.python_nn_functions import _parse_to  # noqa: E402

_nn._parse_to = _parse_to
del _parse_to

from .csrc.autograd.python_legacy_variable import LegacyVariableBase as _LegacyVariableBase  # noqa: E402,F401
from .csrc.storage_methods import StorageBase  # noqa: E402,F401

has_lapack = True
from .csrc.module import WeakTensorRef as _WeakTensorRef  # noqa: E402,F401
from .aten.native.convolution.backend import (  # noqa: E402,F401
    ConvBackend as _ConvBackend,
    select_conv_backend as _select_conv_backend,
)
from .aten.native.math_bits_fallback import _set_conj, _set_neg  # noqa: E402,F401
from .csrc.utils.python_dispatch_keys import _dispatch_key_set, _meta_in_tls_dispatch_include  # noqa: E402,F401
from .csrc.module import (  # noqa: E402,F401
    storage_address as _storage_address,
    data_address as _data_address,
    is_cow_tensor as _is_cow_tensor,
)
from .csrc.generator import default_generator  # noqa: E402,F401
from .csrc.utils.disable_torch_function import (  # noqa: E402,F401
    DisableTorchFunctionSubclass,
    DisableTorchFunction,
    _TorchFunctionState,
    _set_torch_function_state,
    _get_torch_function_state,
)
from .csrc.autograd.basic_ops import functions as _autograd_functions  # noqa: E402

_functions = _Module(f"{__name__}._functions")
vars(_functions).update(_autograd_functions)
from .csrc.autograd.init import methods as _autograd_methods  # noqa: E402

_autograd = _Module(f"{__name__}._autograd")
vars(_autograd).update(_autograd_methods)
from .csrc.autograd.autograd_not_implemented_fallback import (  # noqa: E402,F401
    set_autograd_fallback_mode as _set_autograd_fallback_mode,
    get_autograd_fallback_mode as _get_autograd_fallback_mode,
)
from .c10.torch_dispatch_mode_tls import _RestorePythonTLSSnapshot  # noqa: E402,F401
from .csrc.utils.python_dispatch_keys import _DisableTorchDispatch  # noqa: E402,F401

# In PyTorch: `_C._initExtension` puts these into `torch`, when it is half made.
from .c10.memory_format import channels_last, channels_last_3d, contiguous_format, preserve_format  # noqa: E402,F401
from .c10.layout import strided, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc, _mkldnn, jagged  # noqa: E402,F401

# What is loaded when it is first asked for: name -> module. Schemas with TorchScript's types need much of csrc.jit.
_LATER = {
    "parse_schema": "frontend.function_schema_parser",
    "FunctionSchema": "ir.function_schema",
    "Argument": "ir.function_schema",
}
_LATER |= dict.fromkeys("TensorType IntType FloatType BoolType StringType NumberType DeviceObjType".split(), "ir.type")
_LATER |= dict.fromkeys("ListType OptionalType TupleType DictType AnyType NoneType".split(), "ir.type")


def __getattr__(name):
    if name in _LATER:
        import importlib

        return getattr(importlib.import_module(f"{__package__}.csrc.jit.{_LATER[name]}"), name)
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
