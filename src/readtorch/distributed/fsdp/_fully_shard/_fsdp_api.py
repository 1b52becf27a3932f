"""Policies, and what collectives of one's own must have. In PyTorch: `torch/distributed/fsdp/_fully_shard/_fsdp_api.py`."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import readtorch


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """Dtypes of a module: shards and the optimizer keep the original one.

    param_dtype: of whole parameters, so of computation and of the all-gather. reduce_dtype: of the gradients' reduction; by
    default param_dtype. output_dtype: what the module's outputs are cast to. cast_forward_inputs: whether its inputs are
    cast to param_dtype.
    """

    param_dtype: readtorch.dtype | None = None
    reduce_dtype: readtorch.dtype | None = None
    output_dtype: readtorch.dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing is offloaded."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Shards, gradients and optimizer state are on the CPU, and copied to the device for each all-gather.

    pin_memory: in page-locked memory, so that copies need not be waited for.
    """

    pin_memory: bool = True


class Comm(ABC):
    """A collective that a program has written itself: where its buffers come from, and what is done when it is called."""

    @abstractmethod
    def allocate(self, size, *, dtype, device):
        """Memory for a buffer of that size."""


class AllGather(Comm):
    """For `FSDPModule.set_custom_all_gather`."""

    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, async_op=False):
        """Let each rank have all ranks' inputs; with async_op returns what can be waited for."""


class ReduceScatter(Comm):
    """For `FSDPModule.set_custom_reduce_scatter`."""

    @abstractmethod
    def __call__(self, output_tensor, input_tensor, group, op, async_op=False):
        """Let each rank have its part of what all ranks' inputs are together."""
