"""The records of a checkpoint's archive, for programs that read them one by one.

In PyTorch: `PyTorchFileReader`, made in `torch/csrc/jit/python/init.cpp`.
"""

from ._inline_container import ZipReader


class PyTorchFileReader:
    """Reads what `save` wrote. file: a path, or an open file. Raises RuntimeError for what is no such archive."""

    def __init__(self, file):
        self._opened = open(file, "rb") if isinstance(file, str) else None
        self._reader = ZipReader(self._opened or file)

    def __del__(self):
        if getattr(self, "_opened", None) is not None:
            self._opened.close()

    def get_record(self, name):
        """The bytes of a record. Raises RuntimeError if there is none."""
        return bytes(self._reader.read(name))

    def has_record(self, name):
        """Whether there is such a record."""
        return name in self._reader

    def get_all_records(self):
        """All names."""
        return self._reader.names()

    def serialization_id(self):
        """Forty digits that tell checkpoints apart."""
        return self._reader.serialization_id()
