"""Dispatch keys: the bits that decide which kernel an operator call reaches.

A tensor carries a set of keys, written as an int with one bit a key. A call ORs the sets of its tensors, masks the
result with what this thread lets through, and runs the kernel of the highest key that is left.

In PyTorch: `c10/core/DispatchKey.h`; the thread's part is in local_dispatch_key_set.py, the objects that Python sees are in
dispatch_key_set.py. Explained in the chapter "One operator call".
"""

# Note [ One digit ]: an int of CPython below 2**30 is one digit, and `|` and `&` are quick on these alone. All bits that a tensor
# may carry fit.

# Note [ Small sets ]
# The place of a bit says nothing about priority: that is the order of BY_PRIORITY, which is read when a table is filled. The low
# eight bits are those of calls to which no mode and no subclass has anything to add. Their sets are ints up to 255, of which
# CPython keeps one object each, so a look-up finds its entry without comparing numbers.

CPU = 1 << 0
ADINPLACEORVIEW = 1 << 1  # counts versions, marks views
AUTOGRAD = 1 << 2  # records the call
HISTORY = 1 << 3  # a fact, see below
STALE = 1 << 4  # a fact
CUDA = 1 << 5
INFERENCE_TENSOR = 1 << 6  # a fact
INFERENCE_MODE = 1 << 7  # a fact

# Backends: whose arithmetic it is. Lowest priority; among themselves a higher bit is a higher one.
META = 1 << 8  # no memory, hence no arithmetic: sizes, strides and dtypes only
SIMULATED_CUDA = 1 << 9  # a device that does not exist; its tensors carry CPU, too: Note [ Simulated devices ]
SPARSE_CPU = 1 << 10  # indices and values instead of strided elements; higher than CPU: it knows both kinds of operands
SPARSE_CSR_CPU = 1 << 28  # the same with the indices of one dimension compressed: CSR and its relatives
SPARSE = SPARSE_CPU | SPARSE_CSR_CPU
BACKENDS = CPU | CUDA | META | SIMULATED_CUDA | SPARSE
GPUS = CUDA | SIMULATED_CUDA  # whose work is put on streams
NOT_CPU = GPUS | META

# Functionality. In PyTorch: Autograd is one key a backend (AutogradCPU, AutogradCUDA …), made of this bit and the backend's,
# and so is it here.
BACKEND_SELECT = 1 << 11  # chooses the backend of what a factory makes, from its argument `device`
PYTHON = 1 << 12  # shows the call to `__torch_dispatch__`, of a mode or of a tensor's class
FUNCTIONALIZE = 1 << 13
CONJUGATE = 1 << 14  # the elements are the conjugates of what lies in memory
NEGATIVE = 1 << 15  # the elements are the negatives of what lies in memory
ZEROTENSOR = 1 << 16  # all elements are 0, and none lies in memory
TRACER = 1 << 17  # writes the call into a traced graph
AUTOCAST_CPU = 1 << 18  # casts the operands
AUTOCAST_CUDA = 1 << 19
BATCHED = 1 << 20
GRAD_WRAPPER = 1 << 21
PYTHON_TLS_SNAPSHOT = 1 << 27  # with Python, carried by tensors of a class with a `__torch_dispatch__`

# Note [ Facts ]
# What more a set says. A fact has no kernels; it chooses among those that a key could have.
# HISTORY: the tensor may require grad. STALE: it is a view, and its history may have changed behind its back.
# TANGENT: the tensor has a tangent, or is a view, whose base may have got one; let through while there is a level.
# INFERENCE_TENSOR: made under inference_mode(), may never enter a graph. INFERENCE_MODE: let through under inference_mode(), what
# is made is marked. COPY_ON_WRITE: before a write the memory is copied, see cow.py.
TANGENT = 1 << 22  # of duals and of views: see above
WRAPPED_NUMBER = 1 << 23  # a Python number on its way through an operator: weak in type promotion
THREAD = 1 << 24  # let through while this thread has something of its own to say: see local_dispatch_key_set.py
TORCH_FUNCTION = 1 << 25  # its class overrides `__torch_function__`
NO_STORAGE = 1 << 26  # it wraps other tensors: its own elements lie nowhere

COPY_ON_WRITE = 1 << 29  # a fact: its memory may be another storage's, too

# Keys that no tensor carries: a thread includes them, and so they come into a set by the slow way alone (Note [ Keys of a thread ]).
# They need not fit into one digit. Bits 30 to 33: Note [ Alias keys ].
FUNCTORCH_BACK_MODE = 1 << 34
VMAP_MODE = 1 << 35
FUNCTORCH_FRONT_MODE = 1 << 37
PRE_DISPATCH = 1 << 38  # shows the call to a mode before anything else has seen it

# All keys, highest priority first, as in PyTorch.
BY_PRIORITY = (
    *(
        PRE_DISPATCH,
        FUNCTORCH_FRONT_MODE,
        PYTHON_TLS_SNAPSHOT,
        GRAD_WRAPPER,
        VMAP_MODE,
        BATCHED,
        AUTOCAST_CUDA,
        AUTOCAST_CPU,
        TRACER,
    ),
    *(AUTOGRAD, ADINPLACEORVIEW, ZEROTENSOR, NEGATIVE, CONJUGATE, FUNCTIONALIZE, FUNCTORCH_BACK_MODE, PYTHON),
    *(BACKEND_SELECT, SPARSE_CSR_CPU, SPARSE_CPU, SIMULATED_CUDA, META, CUDA, CPU),
)


def keys_below(key):
    """The keys of lower priority than `key`."""
    return sum(BY_PRIORITY[BY_PRIORITY.index(key) + 1 :])


KEYS = sum(BY_PRIORITY)
FUNCTIONALITIES = KEYS & ~BACKENDS
FACTS = HISTORY | STALE | TANGENT | INFERENCE_TENSOR | WRAPPED_NUMBER | INFERENCE_MODE | NO_STORAGE | COPY_ON_WRITE
GRAD_FACTS = HISTORY | STALE  # without them there is nothing to record
OF_VIEWS = STALE | TANGENT  # every view carries these
AUTOCAST = AUTOCAST_CPU | AUTOCAST_CUDA
MATH_BITS = CONJUGATE | NEGATIVE | ZEROTENSOR  # the elements are not what lies in memory
ABOVE_PYTHON = KEYS & ~keys_below(PYTHON) & ~PYTHON

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
SPARSE_CSR_CPU_TENSOR = SPARSE_CSR_CPU | FOLLOWED | AUTOCAST_CPU | ON_EVERY_TENSOR

NAMES = {
    CPU: "CPU",
    CUDA: "CUDA",
    META: "Meta",
    SIMULATED_CUDA: "SimulatedCUDA",
    SPARSE_CPU: "SparseCPU",
    SPARSE_CSR_CPU: "SparseCsrCPU",
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
    PRE_DISPATCH: "PreDispatch",
    HISTORY: "History",
    STALE: "Stale",
    TANGENT: "Tangent",
    INFERENCE_TENSOR: "InferenceTensor",
    WRAPPED_NUMBER: "WrappedNumber",
    INFERENCE_MODE: "InferenceMode",
    THREAD: "Thread",
    TORCH_FUNCTION: "TorchFunction",
    NO_STORAGE: "NoStorage",
    COPY_ON_WRITE: "CopyOnWrite",
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
RUNTIME_BACKENDS = (CPU, CUDA, META, SPARSE_CPU, SPARSE_CSR_CPU)

# Entries of an operator's table, lowest priority first; 0 is for calls without tensors.
RUNTIME_KEYS = (
    0,
    *RUNTIME_BACKENDS,
    *[key for key in reversed(BY_PRIORITY) if key & FUNCTIONALITIES & keys_below(AUTOGRAD)],
    AUTOGRAD,
    *[AUTOGRAD | backend for backend in (CPU, CUDA, META)],
    *[key for key in reversed(BY_PRIORITY) if key & ~(keys_below(AUTOGRAD) | AUTOGRAD)],
)


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


def key_names(keys):
    """The names of the keys in a set, highest priority first; facts come before keys."""
    facts = [1 << bit for bit in reversed(range(COPY_ON_WRITE.bit_length())) if 1 << bit & ~KEYS]
    return [NAMES[key] for key in (*facts, *BY_PRIORITY) if keys & key]
