"""The names of backends. In PyTorch: `torch/_dynamo/backends/registry.py`."""

from readtorch._dynamo.exc import InvalidBackend

from .debugging import aot_eager, aot_eager_decomp_partition, aot_eager_default_partitioner, eager
from .inductor import inductor

BACKENDS = {
    "inductor": inductor,
    "eager": eager,
    "aot_eager": aot_eager,
    "aot_eager_default_partitioner": aot_eager_default_partitioner,
    "aot_eager_decomp_partition": aot_eager_decomp_partition,
}
COMPILERS = {"inductor"}  # the others are tools, which `list_backends` leaves out


def list_backends():
    """The names of the backends that compile."""
    return sorted(COMPILERS)


# What `compile(mode=…)` knows: how much PyTorch's Inductor tunes and keeps. Here there is one way.
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")


def check_mode(mode, backend):
    """Only Inductor has modes; the other backends take whatever is said."""
    if mode and backend == "inductor" and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")


def lookup_backend(backend):
    """The function for a name; a function of the user's may return one tensor. Raises InvalidBackend."""
    if callable(backend):
        return lambda module, inputs: _as_sequence(backend(module, inputs))
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    return BACKENDS[backend]


def _as_sequence(function):
    def run_user(*arguments):
        result = function(*arguments)
        return result if isinstance(result, (tuple, list)) else (result,)

    return run_user
