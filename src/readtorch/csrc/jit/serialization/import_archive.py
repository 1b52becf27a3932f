"""Reads archives that `jit.save` wrote, here or in PyTorch.

In PyTorch: `ScriptModuleDeserializer` in `torch/csrc/jit/serialization/import.cpp`. Explained in the chapter
"JIT: scripting".
"""

from ....serialization._files import open_for_reading
from ....serialization._zip_reader import ZipReader
from .import_source import SourceImporter
from .unpickler import read_pickle


def load_object(f, map_location=None, extra_files=None):
    """The ScriptObject in an archive. extra_files: a dict whose values become the texts kept under its keys.

    Raises RuntimeError for a file that is no archive of TorchScript.
    """
    with open_for_reading(f) as file:
        reader = ZipReader(file)
        if "constants.pkl" not in reader:
            raise RuntimeError("PytorchStreamReader failed locating file constants.pkl: file not found")
        importer = SourceImporter(_source_of(reader), [])
        constants = read_pickle(reader, "constants", importer, map_location)
        importer.constants += constants
        object = read_pickle(reader, "data", importer, map_location)
        for name in extra_files or ():
            if f"extra/{name}" in reader:
                extra_files[name] = bytes(reader.read(f"extra/{name}"))
        return object


def _source_of(reader):
    """The text of the file that holds the definitions of a qualified name's prefix."""

    def source(qualifier):
        name = f"code/{qualifier.replace('.', '/')}.py"
        return bytes(reader.read(name)).decode() if name in reader else None

    return source
