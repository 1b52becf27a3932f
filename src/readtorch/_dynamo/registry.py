"""Backends for graphs that were captured by bytecode. In PyTorch: `torch/_dynamo/backends/registry.py`."""

from readtorch._dynamo.backends import BACKENDS
from readtorch._dynamo.exc import InvalidBackend
from readtorch._dynamo.recorded.eval_frame import optimize


def lookup_fx_backend(backend):
    """A function (GraphModule, tensors) -> function of the graph's inputs, which returns a tuple or list. For captures by bytecode.

    "inductor" hands the graph to the fuser: its operators are recorded when it first runs.
    """
    if callable(backend):
        return lambda module, inputs: _as_sequence(backend(module, inputs))
    if backend not in BACKENDS:
        raise InvalidBackend(backend)
    return fuse if backend == "inductor" else (lambda module, inputs: module.forward)


def fuse(module, inputs):
    return optimize(module.forward, backend="inductor")


def _as_sequence(function):
    """A user's backend may return one tensor."""

    def run_user(*arguments):
        result = function(*arguments)
        return result if isinstance(result, (tuple, list)) else (result,)

    return run_user
