"""Reads archives that `jit.save` wrote, here or in PyTorch.

In PyTorch: `ScriptModuleDeserializer` in `torch/csrc/jit/serialization/import.cpp`. Explained in the chapter
"JIT: scripting".
"""

import contextlib

from readtorch.csrc.jit.api.object import ScriptObject
from readtorch.serialization._files import open_for_reading
from readtorch.serialization._inline_container import ZipReader

from .import_source import SourceImporter
from .unpickler import read_pickle


def load_object(f, map_location=None, extra_files=None):
    """The ScriptObject in an archive. extra_files: a dict whose values become the texts kept under its keys.

    Raises RuntimeError for a file that is not an archive of TorchScript.
    """
    with open_for_reading(f) as file:
        reader = ZipReader(file)
        if "constants.pkl" not in reader:
            raise RuntimeError("PytorchStreamReader failed locating file constants.pkl: file not found")
        with refusals():
            object = _load(reader, map_location)
        for name in extra_files or ():
            if f"extra/{name}" in reader:
                extra_files[name] = bytes(reader.read(f"extra/{name}"))
        return object


def _load(reader, map_location):
    importer = SourceImporter(_source_of(reader), [])
    constants = read_pickle(reader, "constants", importer, map_location)
    if type(constants) is not tuple:
        raise RuntimeError("constants.pkl must hold a tuple")
    importer.constants += constants
    object = read_pickle(reader, "data", importer, map_location)
    if not isinstance(object, ScriptObject) or not object.type.is_module():
        raise RuntimeError("data.pkl must hold a module")
    return object


@contextlib.contextmanager
def refusals():
    """An error of Python that a malformed archive leads to becomes RuntimeError, as in PyTorch.

    The compiler believes that the text it gets was printed by `save`; an archive may hold any other.
    """
    try:
        yield
    except RecursionError:
        raise RuntimeError("the archive cannot be read: it is nested too deep") from None
    except (OSError, MemoryError, RuntimeError):
        raise
    except Exception as error:
        raise RuntimeError(f"the archive cannot be read: {type(error).__name__}: {error}") from error


def _source_of(reader):
    """The text of the file that holds the definitions of a qualified name's prefix."""

    def source(qualifier):
        name = f"code/{qualifier.replace('.', '/')}.py"
        return _text(name, reader.read(name)) if name in reader else None

    return source


def _text(name, data):
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise RuntimeError(f"{name} is no text: {error}") from None
