"""Dispatch keys: the bits that decide which kernel an operator call reaches.

A tensor carries a set of keys, written as an int with one bit a key. A call ORs the sets of its tensors, masks the
result with what this thread lets through, and runs the kernel of the highest bit that is left.

In PyTorch: `c10/core/DispatchKey.h`, `c10/core/DispatchKeySet.h`, `c10/core/impl/LocalDispatchKeySet.h`.
Explained in the chapter "One operator call".
"""

import threading

# Backends: whose arithmetic it is. Lowest bits, so lowest priority.
CPU = 1 << 0
CUDA = 1 << 1
META = 1 << 2  # no memory, hence no arithmetic: sizes, strides and dtypes only
SIMULATED_CUDA = 1 << 3  # a device that does not exist; its tensors carry CPU, too: Note [ Simulated devices ]
SPARSE_CPU = 1 << 6  # indices and values instead of strided elements; higher than CPU: it knows both kinds of operands
BACKENDS = CPU | CUDA | META | SIMULATED_CUDA | SPARSE_CPU

# Facts about a tensor. They pick no kernel of their own and are masked off before the look-up.
WRAPPED_NUMBER = 1 << 4  # a Python number on its way through an operator: weak in type promotion
INFERENCE_TENSOR = 1 << 5  # made under inference_mode(): may never enter a graph

# Functionality, highest priority last.
ADINPLACEORVIEW = 1 << 8  # the tensor is a view: its history may have changed behind its back
AUTOGRAD = 1 << 9  # the tensor requires grad
INFERENCE_MODE = 1 << 10  # marks what is made under inference_mode()
TRACER = 1 << 11  # writes the call into a traced graph
PYTHON = 1 << 12  # shows the call to a Python mode (observers, widgets, TorchDispatchMode)

# Every tensor carries these three; threads mask them off until a mode is entered. So an ordinary call pays nothing
# for them. In PyTorch: such keys come from a thread-local *include* set, which costs each call a second OR.
ON_EVERY_TENSOR = INFERENCE_MODE | TRACER | PYTHON

# In PyTorch: every tensor outside inference mode carries Autograd and ADInplaceOrView, and the kernel asks whether
# there is work to do. Here a tensor carries them when there may be: a plain tensor's calls go straight to the backend.
# In PyTorch the kernels at ADInplaceOrView also count versions; here an in-place operation does it where it writes.
GRAD_KEYS = AUTOGRAD | ADINPLACEORVIEW

CPU_TENSOR = CPU | ON_EVERY_TENSOR
CUDA_TENSOR = CUDA | ON_EVERY_TENSOR
SIMULATED_CUDA_TENSOR = SIMULATED_CUDA | CPU | ON_EVERY_TENSOR
META_TENSOR = META | ON_EVERY_TENSOR
SPARSE_CPU_TENSOR = SPARSE_CPU | ON_EVERY_TENSOR

NAMES = {
    CPU: "CPU",
    CUDA: "CUDA",
    META: "Meta",
    SIMULATED_CUDA: "SimulatedCUDA",
    SPARSE_CPU: "SparseCPU",
    WRAPPED_NUMBER: "WrappedNumber",
    INFERENCE_TENSOR: "InferenceTensor",
    ADINPLACEORVIEW: "ADInplaceOrView",
    AUTOGRAD: "Autograd",
    INFERENCE_MODE: "InferenceMode",
    TRACER: "Tracer",
    PYTHON: "Python",
}

DEFAULT_MASK = BACKENDS | GRAD_KEYS


class LocalDispatchKeySet(threading.local):
    """Which keys this thread lets through. `no_grad()` clears GRAD_KEYS here; entering a mode sets its bit."""

    mask = DEFAULT_MASK
    tracer = None  # the trace that is under way, see csrc/jit/frontend/tracer.py


tls = LocalDispatchKeySet()

# The threads whose mask is not the default one. Note [ The mask of a call ]: nearly always there are none, and asking
# that costs half of what reading a thread-local does, so calls write `tls.mask if threads_with_modes else
# DEFAULT_MASK`. The price is that a mask may only be assigned through `set_mask`.
threads_with_modes = set()


def set_mask(mask):
    """Make `mask` what this thread lets through."""
    tls.mask = mask
    if mask == DEFAULT_MASK:
        threads_with_modes.discard(threading.get_ident())
    else:
        threads_with_modes.add(threading.get_ident())


def trace_under_way():
    """The trace that this thread is writing (a TracingState), or None."""
    return tls.tracer if threads_with_modes else None


def grad_mode_enabled():
    """Whether this thread records operations: what `no_grad()` switches off."""
    return bool(tls.mask & AUTOGRAD)


class MaskGuard:
    """`with MaskGuard(exclude=AUTOGRAD):` changes this thread's mask and puts the old one back."""

    __slots__ = ("include", "exclude", "previous")

    def __init__(self, include=0, exclude=0):
        self.include = include
        self.exclude = exclude

    def __enter__(self):
        self.previous = tls.mask
        set_mask(self.previous & ~self.exclude | self.include)
        return self

    def __exit__(self, *exception):
        set_mask(self.previous)


def highest_key(keys):
    """The key of highest priority in a non-empty set."""
    return 1 << (keys.bit_length() - 1)


def key_names(keys):
    """The names of the keys in a set, highest priority first."""
    return [NAMES[1 << bit] for bit in reversed(range(keys.bit_length())) if keys >> bit & 1]
