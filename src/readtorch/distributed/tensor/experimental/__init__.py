"""What may still change. In PyTorch: `torch/distributed/tensor/experimental/__init__.py`."""

from contextlib import contextmanager

from readtorch.distributed.tensor._api import DTensor

__all__ = ["implicit_replication"]


@contextmanager
def implicit_replication():
    """Within its `with` block plain tensors beside DTensors are taken for replicated ones: every rank must have the same."""
    dispatcher = DTensor._op_dispatcher
    dispatcher._allow_implicit_replication = True
    try:
        yield
    finally:
        dispatcher._allow_implicit_replication = False
