"""The dispatcher for those who look into it: `torch._C._dispatch_dump_table`, the key sets of tensors and of the thread, guards.

In PyTorch: `torch/csrc/utils/python_dispatch.cpp`, and for the guards `c10/core/impl/LocalDispatchKeySet.h`. Explained in the chapter
"One operator call".
"""

from readtorch.aten.dispatcher import fallbacks, fallthrough, registry
from readtorch.aten.functorch.batch_rules_helper import has_batching_rule
from readtorch.aten.operator_entry import is_included_in_alias
from readtorch.c10.dispatch_key import AUTOGRAD, FOLLOWED, PYTHON, PYTHON_TLS_SNAPSHOT, RUNTIME_KEYS
from readtorch.c10.dispatch_key_set import (
    DispatchKey,
    DispatchKeySet,
    backends_below,
    device_key,
    excluded_set,
    from_keys,
    full_keyset,
    key_of,
    parse,
    to_keys,
)
from readtorch.c10.local_dispatch_key_set import tls, update_mask
from readtorch.c10.tensor_impl import key_set

# ------------------------------------------------------------------------------------------------------- keys


def _dispatch_keys(tensor):
    """The keys that a tensor carries."""
    return from_keys(key_set(tensor))


def _dispatch_key_set(tensor):
    """The keys that a tensor carries, as text."""
    return repr(_dispatch_keys(tensor))


def _dispatch_keyset_to_string(keyset):
    return repr(keyset)


def _dispatch_key_name(key):
    return parse(key).name


def _dispatch_key_parse(key):
    """The DispatchKey of a name. RuntimeError if there is none."""
    return parse(key)


def _parse_dispatch_key(name):
    """The DispatchKey of a name, or None."""
    return DispatchKey.__members__.get(name)


def _dispatch_key_for_device(device_type):
    """The name of the key for a kind of device: "CUDA" for "cuda"."""
    return device_key(device_type)


def _dispatch_is_alias_key(key):
    """Whether a key stands for several others, at which a kernel may be registered at once."""
    return DispatchKey.Autograd.value <= parse(key).value


def _dispatch_is_included_in_alias(key, alias):
    """Whether a kernel that is registered at `alias` may serve `key`."""
    return is_included_in_alias(key_of(key), key_of(alias))


def _dispatch_get_backend_keyset_from_autograd(key):
    """The backends that stand below a key of Autograd."""
    return backends_below(parse(key))


def _dispatch_num_backends():
    return 16


def _dispatch_keyset_full():
    return full_keyset()


def _dispatch_keyset_full_after(key):
    """All keys of lower priority."""
    return full_keyset(below=parse(key))


# -------------------------------------------------------------------------------------------------- operators


def _operator(name):
    operator = registry.get(name)
    if operator is None:
        raise RuntimeError(f"operator {name} does not exist")
    return operator


def _dispatch_dump(name):
    """What is registered for an operator; "" if there is none of this name."""
    return registry[name].dump() if name in registry else ""


def _dispatch_dump_table(name):
    """A line for each key that has a kernel: where the kernel was registered, and by which rule it serves this key."""
    return registry[name].dump_table() if name in registry else ""


def _dispatch_get_all_op_names():
    return list(registry)


def _dispatch_has_kernel(name):
    """Whether there is an operator of this name."""
    return name in registry


def _dispatch_has_kernel_for_dispatch_key(name, key):
    """Whether a kernel is registered at exactly this key or alias. RuntimeError if there is no such operator."""
    operator, key = _operator(name), key_of(key)
    return operator.kernel_at(key) is not None or has_batching_rule(operator, key)


def _dispatch_has_kernel_for_any_dispatch_key(name, keyset):
    """Whether a kernel is registered at one of the keys of a DispatchKeySet."""
    operator, keys = _operator(name), to_keys(keyset)
    wanted = [key for key in RUNTIME_KEYS[1:] if key & keys == key and key != AUTOGRAD]
    return any(operator.kernel_at(key) is not None for key in wanted)


def _dispatch_has_computed_kernel_for_dispatch_key(name, key):
    """Whether calls find a kernel at this key, its own or another's that serves it."""
    return _operator(name).entry(key_of(key))[0] is not None


def _dispatch_kernel_for_dispatch_key_is_fallthrough(name, key):
    """Whether what is registered at this key is a fallthrough. RuntimeError if nothing is."""
    kernel = _operator(name).kernel_at(key_of(key))
    if kernel is None:
        raise RuntimeError(f"no kernel for {parse(key).name} on {name}")
    return kernel.function is fallthrough


def _dispatch_has_backend_fallback(key):
    """Whether operators without a kernel of their own have one at this key."""
    return key_of(key) in fallbacks


def _dispatch_get_registrations_for_dispatch_key(dispatch_key=""):
    """The names of the operators that have a kernel at this key; of all operators if none is given."""
    if not dispatch_key:
        return list(registry)
    return [name for name, operator in registry.items() if operator.kernel_at(key_of(dispatch_key)) is not None]


def _dispatch_print_registrations_for_dispatch_key(dispatch_key=""):
    print("\n".join(_dispatch_get_registrations_for_dispatch_key(dispatch_key)))


def _dispatch_find_dangling_impls():
    """Kernels of operators that were never declared: here a kernel needs the operator, so there are none."""
    return []


# --------------------------------------------------------------------------------------------- what a thread adds


def _dispatch_tls_local_include_set():
    """The keys that this thread adds to the set of each call."""
    return from_keys(tls.included)


def _dispatch_tls_local_exclude_set():
    """The keys that this thread takes away from the set of each call."""
    return excluded_set(tls.excluded)


def _dispatch_tls_is_dispatch_key_included(key):
    return _has(_dispatch_tls_local_include_set(), key)


def _dispatch_tls_is_dispatch_key_excluded(key):
    return _has(_dispatch_tls_local_exclude_set(), key)


def _has(keyset, key):
    return keyset.has(parse(key))


def _dispatch_tls_set_dispatch_key_included(key, desired_state):
    """Include a key in this thread, or stop including it."""
    keys = to_keys(key)
    tls.included = tls.included | keys if desired_state else tls.included & ~keys
    update_mask()


def _dispatch_tls_set_dispatch_key_excluded(key, desired_state):
    """Exclude a key in this thread, or stop excluding it."""
    keys = to_keys(key)
    tls.excluded = tls.excluded | keys if desired_state else tls.excluded & ~keys
    update_mask()


def _meta_in_tls_dispatch_include():
    return _dispatch_tls_is_dispatch_key_included(DispatchKey.Meta)


class _Guard:
    """A context in which this thread includes and excludes other keys; at its end all is as before."""

    def included(self, keys):
        return keys

    def excluded(self, keys):
        return keys

    def __enter__(self):
        self._previous = tls.included, tls.excluded
        tls.included, tls.excluded = self.included(tls.included), self.excluded(tls.excluded)
        update_mask()

    def __exit__(self, *exception):
        tls.included, tls.excluded = self._previous
        update_mask()


class _ExcludeDispatchKeyGuard(_Guard):
    """`with _ExcludeDispatchKeyGuard(keyset):` calls inside skip these keys."""

    def __init__(self, keyset):
        self._keys = to_keys(keyset)

    def excluded(self, keys):
        return keys | self._keys


class _IncludeDispatchKeyGuard(_Guard):
    """`with _IncludeDispatchKeyGuard(key):` calls inside pass this key, whatever their tensors carry."""

    def __init__(self, key):
        self._keys = to_keys(key)

    def included(self, keys):
        return keys | self._keys


class _ForceDispatchKeyGuard(_Guard):
    """`with _ForceDispatchKeyGuard(include, exclude):` these DispatchKeySets take the place of the thread's."""

    def __init__(self, include, exclude):
        self._include, self._exclude = to_keys(include), to_keys(exclude)

    def included(self, keys):
        return self._include

    def excluded(self, keys):
        return self._exclude


class _SetExcludeDispatchKeyGuard(_Guard):
    """`with _SetExcludeDispatchKeyGuard(key, flag):` the key is excluded inside, or is not."""

    def __init__(self, key, desired_state):
        self._keys, self._desired_state = to_keys(key), desired_state

    def excluded(self, keys):
        return keys | self._keys if self._desired_state else keys & ~self._keys


class _PreserveDispatchKeyGuard(_Guard):
    """What is done to the thread's sets inside is undone at the end."""


class _AutoDispatchBelowAutograd(_Guard):
    """Calls inside are not recorded: what a kernel at Autograd does when it calls on."""

    def excluded(self, keys):
        return keys | AUTOGRAD


class _AutoDispatchBelowADInplaceOrView(_Guard):
    """Calls inside are not recorded, count no versions and mark no views."""

    def excluded(self, keys):
        return keys | FOLLOWED


class _DisableTorchDispatch(_Guard):
    """No `__torch_dispatch__` is asked inside."""

    def excluded(self, keys):
        return keys | PYTHON | PYTHON_TLS_SNAPSHOT


class ExcludeDispatchKeyGuard(_ExcludeDispatchKeyGuard):
    """The older name of `_ExcludeDispatchKeyGuard`."""

    __module__ = "readtorch"


_python_dispatcher = DispatchKeySet(DispatchKey.PythonDispatcher)
_after_autograd_keyset = full_keyset(below=DispatchKey.AutogradOther) | _python_dispatcher
_after_ADInplaceOrView_keyset = full_keyset(below=DispatchKey.ADInplaceOrView) | _python_dispatcher
