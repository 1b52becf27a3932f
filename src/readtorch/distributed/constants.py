"""How long collectives may take unless told otherwise. In PyTorch: `torch/distributed/constants.py`."""

from readtorch.distributed.rendezvous import DEFAULT_TIMEOUT

__all__ = ["default_pg_timeout", "default_pg_nccl_timeout"]

default_pg_timeout = DEFAULT_TIMEOUT
default_pg_nccl_timeout = None  # as in PyTorch without NCCL
