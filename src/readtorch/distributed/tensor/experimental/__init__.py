"""What may still change. In PyTorch: `torch/distributed/tensor/experimental/__init__.py`."""

from contextlib import contextmanager

from readtorch.distributed.tensor._api import DTensor

from ._func_map import local_map
from ._register_sharding import register_sharding

__all__ = ["implicit_replication", "local_map", "register_sharding"]


@contextmanager
def implicit_replication():
    """Within its `with` block plain tensors beside DTensors are taken for replicated ones: every rank must have the same."""
    dispatcher = DTensor._op_dispatcher
    dispatcher._allow_implicit_replication = True
    try:
        yield
    finally:
        dispatcher._allow_implicit_replication = False


for _public in (implicit_replication, local_map, register_sharding):
    _public.__module__ = __name__  # where they are documented to be, as in PyTorch
