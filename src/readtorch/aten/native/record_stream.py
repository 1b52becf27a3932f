"""record_stream tells the allocator that another stream uses a tensor's memory.

In PyTorch: `aten/src/ATen/native/cuda/RecordStream.cu`. Explained in the chapter "The caching allocator".
"""

from readtorch.aten.native_function import python_binding
from readtorch.c10.tensor_impl import storage_impl


@python_binding("record_stream", "method")
def record_stream(self, stream):
    """The memory of this tensor is not reused before `stream` has done the work that is queued on it when the tensor is
    freed.

    Raises NotImplementedError for a tensor that is not on a device.
    """
    if self.device.type != "cuda":
        raise NotImplementedError(
            "Could not run 'aten::record_stream' with arguments from the "
            f"'{self.device.type.upper()}' backend. 'aten::record_stream' is only available for "
            "these backends: [CUDA]."
        )
    memory = storage_impl(self).memory
    if memory is not None:
        memory.allocator.record_stream(memory.block, stream._impl.handle)
