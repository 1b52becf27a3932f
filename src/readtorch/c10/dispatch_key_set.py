"""Dispatch keys and sets of them as Python sees them: `torch._C.DispatchKey`, `torch._C.DispatchKeySet`.

Note [ Two representations ]
PyTorch's set is 64 bits: 16 for backends, one for each functionality above them; `AutogradCPU` is the functionality bit of Autograd
read together with the backend bit of the CPU. What is written here has the same bits, so that sets print, compare and are
computed with as there. The dispatcher's own sets (dispatch_key.py) have a bit for each key that this build serves, which fits
into one digit of CPython's ints. `from_keys` and `to_keys` translate; what only one side has is lost.

In PyTorch: `c10/core/DispatchKeySet.h`, and for Python `torch/csrc/utils/python_dispatch.cpp`. Explained in the chapter "One
operator call".
"""

from enum import Enum

from . import dispatch_key as keys
from .device import device

_BACKENDS = "CPU CUDA HIP XLA MPS IPU XPU HPU VE Lazy MTIA MAIA PrivateUse1 PrivateUse2 PrivateUse3 Meta".split()
_FUNCTIONALITIES = """
    Undefined Dense FPGA Vulkan Metal Quantized CustomRNGKeyId MkldnnCPU Sparse SparseCsr NestedTensor BackendSelect Fake Python
    FuncTorchDynamicLayerBackMode Functionalize Conjugate Negative ZeroTensor ADInplaceOrView AutogradOther AutogradFunctionality
    AutogradNestedTensor Tracer AutocastCPU AutocastMTIA AutocastMAIA AutocastXPU AutocastIPU AutocastHPU AutocastXLA AutocastMPS
    AutocastCUDA AutocastPrivateUse1 FuncTorchBatched BatchedNestedTensor FuncTorchVmapMode Batched VmapMode FuncTorchGradWrapper
    DeferredInit PythonTLSSnapshot FuncTorchDynamicLayerFrontMode TESTING_ONLY_GenericWrapper TESTING_ONLY_GenericMode PreDispatch
    PythonDispatcher EndOfFunctionalityKeys
""".split()

# Functionalities of which there is one key a backend -> how that key's name begins.
_PER_BACKEND = {
    "Dense": "",
    "Quantized": "Quantized",
    "Sparse": "Sparse",
    "SparseCsr": "SparseCsr",
    "NestedTensor": "NestedTensor",
    "AutogradFunctionality": "Autograd",
}
_ALIASES = """
    Autograd CompositeImplicitAutograd FuncTorchBatchedDecomposition CompositeImplicitAutogradNestedTensor CompositeExplicitAutograd
    CompositeExplicitAutogradNonFunctional
""".split()


def _numbers():
    """The name of each key -> its number in PyTorch, in order."""
    numbers = {name: i for i, name in enumerate(_FUNCTIONALITIES)}
    for functionality, prefix in _PER_BACKEND.items():
        numbers[f"StartOf{functionality}Backends"] = len(numbers)
        for backend in _BACKENDS:
            numbers[prefix + backend] = len(numbers)
    for name in _ALIASES:
        numbers[name] = len(numbers)
    for functionality, prefix in _PER_BACKEND.items():
        numbers[f"EndOf{functionality}Backends"] = numbers[f"{prefix}Meta"]
    return numbers


class _DispatchKey(Enum):
    def __int__(self):
        return self.value

    __index__ = __int__

    def __hash__(self):
        return self.value


DispatchKey = _DispatchKey("DispatchKey", _numbers())
DispatchKey.__module__ = "readtorch"

_NAMES = {key.value: key.name for key in DispatchKey}
_BACKEND_BITS = (1 << len(_BACKENDS)) - 1


def _bit(functionality):
    """The bit of a functionality in a set."""
    return 1 << (DispatchKey[functionality].value + len(_BACKENDS) - 1)


def _raw_of(key):
    """The bits of one key; 0 for Undefined and for aliases."""
    name = key.name
    for functionality, prefix in _PER_BACKEND.items():
        if name.startswith(prefix) and name[len(prefix) :] in _BACKENDS:
            return _bit(functionality) | 1 << _BACKENDS.index(name[len(prefix) :])
    name = name.removeprefix("StartOf").removesuffix("Backends")
    return _bit(name) if name in _FUNCTIONALITIES[1:-1] else 0


class DispatchKeySet:
    """A set of keys, in PyTorch's bits. Made of one DispatchKey; `|`, `&` and `-` make others."""

    __slots__ = ("_raw",)
    __hash__ = None

    def __init__(self, key):
        self._raw = _RAW[key]

    @staticmethod
    def from_raw_repr(raw):
        made = object.__new__(DispatchKeySet)
        made._raw = raw
        return made

    def raw_repr(self):
        return self._raw

    def __or__(self, other):
        return self.from_raw_repr(self._raw | _raw(other, "__or__"))

    def __and__(self, other):
        return self.from_raw_repr(self._raw & _raw(other, "__and__"))

    def __sub__(self, other):
        """The functionalities that `other` has go; backends stay, for other functionalities are read together with them."""
        return self.from_raw_repr(self._raw & (_BACKEND_BITS | ~_raw(other, "__sub__")))

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._raw == other._raw

    def add(self, key):
        return self | DispatchKeySet(key)

    def remove(self, key):
        return self - DispatchKeySet(key)

    def has(self, key):
        return self._raw & _RAW[key] == _RAW[key] and key is not DispatchKey.Undefined

    def highestPriorityTypeId(self):
        found = members(self)
        return DispatchKey[found[-1]] if found else DispatchKey.Undefined

    def __repr__(self):
        return f"DispatchKeySet({', '.join(members(self))})"


DispatchKeySet.__module__ = "readtorch"
_RAW = {key: _raw_of(key) for key in DispatchKey}


def _raw(other, method):
    if not isinstance(other, DispatchKeySet):
        raise TypeError(
            f"{method}(): incompatible function arguments. The following argument types are supported:\n"
            f"    1. (self: torch._C.DispatchKeySet, arg0: torch._C.DispatchKeySet) -> torch._C.DispatchKeySet\n\n"
            f"Invoked with: {other!r}"
        )
    return other._raw


def members(key_set):
    """The names of the keys in a set, lowest priority first."""
    raw, found = key_set._raw, []
    backends = [name for i, name in enumerate(_BACKENDS) if raw >> i & 1]
    for functionality in _FUNCTIONALITIES[1:-1]:
        if raw & _bit(functionality):
            prefix = _PER_BACKEND.get(functionality)
            found += [functionality] if prefix is None else [prefix + backend for backend in backends]
    return found


# ------------------------------------------------------------------------------------- the dispatcher's own sets

# The dispatcher's bit -> PyTorch's bits.
_TRANSLATION = {
    keys.CPU: _raw_of(DispatchKey.CPU),
    keys.CUDA: _raw_of(DispatchKey.CUDA),
    keys.META: _raw_of(DispatchKey.Meta),
    keys.SIMULATED_CUDA: _raw_of(DispatchKey.CUDA),
    keys.SPARSE_CPU: _raw_of(DispatchKey.SparseCPU),
    keys.SPARSE_CSR_CPU: _raw_of(DispatchKey.SparseCsrCPU),
    keys.AUTOGRAD: _bit("AutogradFunctionality"),
} | {key: _bit(name) for key, name in keys.NAMES.items() if key & keys.FUNCTIONALITIES and key != keys.AUTOGRAD}


def from_keys(key_set):
    """A set of the dispatcher as a DispatchKeySet."""
    if key_set & keys.SIMULATED_CUDA:
        key_set &= ~keys.CPU
    raw = 0
    for key, bits in _TRANSLATION.items():
        if key_set & key:
            raw |= bits
    return DispatchKeySet.from_raw_repr(raw)


def to_keys(key_set):
    """A DispatchKeySet, a DispatchKey that is no alias, or the name of one, as a set of the dispatcher.

    The real and the simulated CUDA are one key to Python, and two bits here.
    """
    if isinstance(key_set, int):
        return key_set
    if isinstance(key_set, str):
        key_set = parse(key_set)
    raw = _RAW[key_set] if isinstance(key_set, DispatchKey) else key_set._raw
    found = 0
    for key, bits in _TRANSLATION.items():
        if raw & bits == bits:
            found |= key
    return found


def key_of(key):
    """The dispatcher's int for one key or alias, given as a DispatchKey or by name; the name if this build has no such key.

    Raises RuntimeError for a name that PyTorch does not have, either.
    """
    if isinstance(key, int):
        return key
    name = parse(key).name
    return _KEYS_BY_NAME.get(name, name)


_KEYS_BY_NAME = {keys.key_name(key): key for key in (*keys.RUNTIME_KEYS, *keys.ALIAS_NAMES)}

_EVERY_AUTOGRAD = _bit("AutogradOther") | _bit("AutogradNestedTensor")
_OTHER_AUTOCAST = sum(
    _bit(name)
    for name in _FUNCTIONALITIES
    if name.startswith("Autocast") and name not in ("AutocastCPU", "AutocastCUDA")
)


def excluded_set(key_set):
    """What a thread excludes as PyTorch prints it: Autograd of all kinds, and autocast of devices that there are not here."""
    raw = from_keys(key_set)._raw | (_OTHER_AUTOCAST if key_set & keys.AUTOCAST else 0)
    return DispatchKeySet.from_raw_repr(raw | _EVERY_AUTOGRAD if key_set & keys.AUTOGRAD else raw)


def full_keyset(below=None):
    """All keys, or all of lower priority than `below`.

    In PyTorch: one more bit belongs to each of them, that of PythonDispatcher, which stands above all keys.
    """
    last = len(_FUNCTIONALITIES) - 2
    if below is None:
        return DispatchKeySet.from_raw_repr((1 << (last + len(_BACKENDS))) - 1)
    lower = _RAW[below] & ~_BACKEND_BITS
    lower = (1 << (lower.bit_length() - 1)) - 1 if lower else 0
    return DispatchKeySet.from_raw_repr(lower | _bit("PythonDispatcher") | _BACKEND_BITS)


def backends_below(autograd_key):
    """The dense backend of `AutogradCPU` and the like; nothing for another key."""
    backend = autograd_key.name.removeprefix("Autograd")
    found = backend != autograd_key.name and backend in _BACKENDS
    return DispatchKeySet(DispatchKey[backend] if found else DispatchKey.Undefined)


def parse(name):
    """The DispatchKey of a name. Raises RuntimeError if there is none; a DispatchKey is returned as it is."""
    if isinstance(name, DispatchKey):
        return name
    if name not in DispatchKey.__members__:
        raise RuntimeError(f"could not parse dispatch key: {name}")
    return DispatchKey[name]


def device_key(device_type):
    """The name of the key for a kind of device: "CUDA" for "cuda"."""
    names = {name.lower(): name for name in _BACKENDS if not name.startswith("PrivateUse")}
    return names[device_type] if device_type in names else names[device(device_type).type]
