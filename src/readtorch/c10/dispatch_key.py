"""Dispatch keys: the bits that decide which kernel an operator call reaches.

A tensor carries a set of keys, written as an int with one bit a key. A call ORs the sets of its tensors, masks the
result with what this thread lets through, and runs the kernel of the highest key that is left.

In PyTorch: `c10/core/DispatchKey.h`; the thread's part is in local_dispatch_key_set.py, the objects that Python sees are in
dispatch_key_set.py. Explained in the chapter "One operator call".
"""

# Note [ One digit ]: an int of CPython below 2**30 is one digit, and `|` and `&` are quick on these alone. All bits fit.

# Backends: whose arithmetic it is. Lowest bits, so lowest priority.
CPU = 1 << 0
CUDA = 1 << 1
META = 1 << 2  # no memory, hence no arithmetic: sizes, strides and dtypes only
SIMULATED_CUDA = 1 << 3  # a device that does not exist; its tensors carry CPU, too: Note [ Simulated devices ]
SPARSE_CPU = 1 << 4  # indices and values instead of strided elements; higher than CPU: it knows both kinds of operands
BACKENDS = CPU | CUDA | META | SIMULATED_CUDA | SPARSE_CPU

# Functionality, highest priority last. In PyTorch: Autograd is one key a backend (AutogradCPU, AutogradCUDA …), made of
# this bit and the backend's, and so is it here.
BACKEND_SELECT = 1 << 5  # chooses the backend of what a factory makes, from its argument `device`
PYTHON = 1 << 6  # shows the call to `__torch_dispatch__`, of a mode or of a tensor's class
FUNCTORCH_BACK_MODE = 1 << 7
FUNCTIONALIZE = 1 << 8
CONJUGATE = 1 << 9  # the elements are the conjugates of what lies in memory
NEGATIVE = 1 << 10  # the elements are the negatives of what lies in memory
ZEROTENSOR = 1 << 11  # all elements are 0, and none lies in memory
ADINPLACEORVIEW = 1 << 12  # counts versions, marks views
AUTOGRAD = 1 << 13  # records the call
TRACER = 1 << 14  # writes the call into a traced graph
AUTOCAST_CPU = 1 << 15  # casts the operands
AUTOCAST_CUDA = 1 << 16
BATCHED = 1 << 17
VMAP_MODE = 1 << 18
GRAD_WRAPPER = 1 << 19
PYTHON_TLS_SNAPSHOT = 1 << 20
FUNCTORCH_FRONT_MODE = 1 << 21

# Note [ Facts ]
# What more a set says. A fact has no kernels; it chooses among those that a key could have.
HISTORY = 1 << 22  # the tensor may require grad
STALE = 1 << 23  # it is a view: its history may have changed behind its back
INFERENCE_TENSOR = 1 << 24  # made under inference_mode(): may never enter a graph
WRAPPED_NUMBER = 1 << 25  # a Python number on its way through an operator: weak in type promotion
INFERENCE_MODE = 1 << 26  # let through under inference_mode(): what is made is marked
THREAD = 1 << 27  # let through while this thread has something of its own to say: see local_dispatch_key_set.py
TORCH_FUNCTION = 1 << 28  # its class overrides `__torch_function__`
NO_STORAGE = 1 << 29  # it wraps other tensors: its own elements lie nowhere

KEYS = FUNCTORCH_FRONT_MODE * 2 - 1
FUNCTIONALITIES = KEYS & ~BACKENDS
FACTS = (NO_STORAGE * 2 - 1) & ~KEYS & ~THREAD & ~TORCH_FUNCTION  # but those that are about a call's way
GRAD_FACTS = HISTORY | STALE  # without them there is nothing to record
AUTOCAST = AUTOCAST_CPU | AUTOCAST_CUDA
MATH_BITS = CONJUGATE | NEGATIVE | ZEROTENSOR  # the elements are not what lies in memory
ABOVE_PYTHON = KEYS & -(PYTHON * 2)

# Every tensor carries these; threads mask them off until there is need. So an ordinary call pays nothing for them.
# In PyTorch: such keys come from a thread-local *include* set, which costs each call a second OR.
ON_EVERY_TENSOR = INFERENCE_MODE | THREAD

# Every tensor that was made outside inference mode carries these.
FOLLOWED = ADINPLACEORVIEW | AUTOGRAD

CPU_TENSOR = CPU | FOLLOWED | AUTOCAST_CPU | ON_EVERY_TENSOR
CUDA_TENSOR = CUDA | FOLLOWED | AUTOCAST_CUDA | ON_EVERY_TENSOR
SIMULATED_CUDA_TENSOR = SIMULATED_CUDA | CPU | FOLLOWED | AUTOCAST_CUDA | ON_EVERY_TENSOR
META_TENSOR = META | FOLLOWED | ON_EVERY_TENSOR
SPARSE_CPU_TENSOR = SPARSE_CPU | FOLLOWED | AUTOCAST_CPU | ON_EVERY_TENSOR

NAMES = {
    CPU: "CPU",
    CUDA: "CUDA",
    META: "Meta",
    SIMULATED_CUDA: "SimulatedCUDA",
    SPARSE_CPU: "SparseCPU",
    BACKEND_SELECT: "BackendSelect",
    PYTHON: "Python",
    FUNCTORCH_BACK_MODE: "FuncTorchDynamicLayerBackMode",
    FUNCTIONALIZE: "Functionalize",
    CONJUGATE: "Conjugate",
    NEGATIVE: "Negative",
    ZEROTENSOR: "ZeroTensor",
    ADINPLACEORVIEW: "ADInplaceOrView",
    AUTOGRAD: "Autograd",
    TRACER: "Tracer",
    AUTOCAST_CPU: "AutocastCPU",
    AUTOCAST_CUDA: "AutocastCUDA",
    BATCHED: "FuncTorchBatched",
    VMAP_MODE: "FuncTorchVmapMode",
    GRAD_WRAPPER: "FuncTorchGradWrapper",
    PYTHON_TLS_SNAPSHOT: "PythonTLSSnapshot",
    FUNCTORCH_FRONT_MODE: "FuncTorchDynamicLayerFrontMode",
    HISTORY: "History",
    STALE: "Stale",
    INFERENCE_TENSOR: "InferenceTensor",
    WRAPPED_NUMBER: "WrappedNumber",
    INFERENCE_MODE: "InferenceMode",
    THREAD: "Thread",
    TORCH_FUNCTION: "TorchFunction",
    NO_STORAGE: "NoStorage",
}


# Note [ Alias keys ]
# Keys to register kernels at that stand for several. They are in no set, so their bits need not fit into one digit.
AUTOGRAD_ALIAS = 1 << 30
COMPOSITE_IMPLICIT = 1 << 31
COMPOSITE_EXPLICIT = 1 << 32
COMPOSITE_EXPLICIT_NON_FUNCTIONAL = 1 << 33

ALIAS_NAMES = {
    AUTOGRAD_ALIAS: "Autograd",
    COMPOSITE_IMPLICIT: "CompositeImplicitAutograd",
    COMPOSITE_EXPLICIT: "CompositeExplicitAutograd",
    COMPOSITE_EXPLICIT_NON_FUNCTIONAL: "CompositeExplicitAutogradNonFunctional",
}

# The backends of which Python knows. A key of Autograd is its bit together with one of these, alone it is AutogradOther.
RUNTIME_BACKENDS = (CPU, CUDA, META, SPARSE_CPU)

# Entries of an operator's table, lowest priority first; 0 is for calls without tensors.
RUNTIME_KEYS = (
    0,
    *RUNTIME_BACKENDS,
    *[1 << bit for bit in range(BACKENDS.bit_length(), AUTOGRAD.bit_length() - 1)],
    AUTOGRAD,
    *[AUTOGRAD | backend for backend in (CPU, CUDA, META)],
    *[1 << bit for bit in range(AUTOGRAD.bit_length(), KEYS.bit_length())],
)


def runtime_backend(keys):
    """The backend of a set as Python knows it; 0 if there is none."""
    backend = keys & BACKENDS and highest_key(keys & BACKENDS)
    return CUDA if backend == SIMULATED_CUDA else backend


def autograd_key(keys):
    """The key of Autograd for a set: AutogradCPU, AutogradCUDA …"""
    backend = runtime_backend(keys)
    return AUTOGRAD | (CPU if backend == SPARSE_CPU else backend)


def key_name(key):
    """The name of one key to register at; a key that this build does not have is its name."""
    if isinstance(key, str):
        return key
    if key == 0:
        return "Undefined"
    if key in ALIAS_NAMES:
        return ALIAS_NAMES[key]
    if key & AUTOGRAD:
        return f"Autograd{NAMES[key ^ AUTOGRAD]}" if key != AUTOGRAD else "AutogradOther"
    return NAMES[key]


def highest_key(keys):
    """The key of highest priority in a non-empty set."""
    return 1 << (keys.bit_length() - 1)


def keys_below(key):
    """The keys of lower priority than `key`."""
    return key - 1


def key_names(keys):
    """The names of the keys in a set, highest priority first; facts come before keys."""
    return [NAMES[1 << bit] for bit in reversed(range(keys.bit_length())) if keys >> bit & 1]
