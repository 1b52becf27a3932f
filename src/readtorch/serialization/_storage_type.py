"""What stands for `torch.FloatStorage` while a checkpoint is read: just its dtype.

In PyTorch: `StorageType` of `torch/serialization.py`.
"""

from readtorch.storage import _get_dtype_from_pickle_storage_type


class StorageType:
    """The dtype behind a name such as "FloatStorage". Raises KeyError for an unknown name."""

    def __init__(self, name):
        self._dtype = _get_dtype_from_pickle_storage_type(name)

    @property
    def dtype(self):
        return self._dtype

    def __str__(self):
        return f"StorageType(dtype={self.dtype})"
