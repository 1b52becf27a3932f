"""Which storage a place means. In PyTorch: `torch/distributed/checkpoint/_storage_utils.py`."""

from .filesystem import FileSystemReader, FileSystemWriter


def _storage_setup(storage, checkpoint_id, reader=False):
    """The given storage, or one for the place `checkpoint_id`, ready for another checkpoint."""
    if storage is None:
        if not checkpoint_id:
            raise RuntimeError("`checkpoint_id` must be specified if storage_reader/storage_writer is None.")
        kind = FileSystemReader if reader else FileSystemWriter
        if not kind.validate_checkpoint_id(checkpoint_id):
            raise RuntimeError(
                "Cannot detect which StorageReader or StorageWriter to use. "
                "Please specify the storage_reader/storage_writer."
            )
        storage = kind(checkpoint_id)
    storage.reset(checkpoint_id)
    return storage
