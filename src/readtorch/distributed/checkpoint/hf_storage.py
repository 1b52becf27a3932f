"""Distributed checkpoints in the layout of Hugging Face's safetensors, which are not here: both classes refuse.

In PyTorch: `torch/distributed/checkpoint/hf_storage.py`.
"""

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


class HuggingFaceStorageReader:
    """Raises NotImplementedError: `readtorch.utils.safetensors` reads such files in one process."""

    def __init__(self, path, *args, **kwargs):
        raise NotImplementedError("readtorch does not read distributed checkpoints in files of safetensors")


class HuggingFaceStorageWriter:
    """Raises NotImplementedError: `FileSystemWriter` writes distributed checkpoints in PyTorch's layout."""

    def __init__(self, path, *args, **kwargs):
        raise NotImplementedError("readtorch does not write distributed checkpoints in files of safetensors")
