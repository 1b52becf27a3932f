"""`save` and `load` of modules in TorchScript, in PyTorch's archive format.

In PyTorch: `torch/jit/_serialization.py`. Explained in the chapter "JIT: scripting".
"""

import os

from readtorch.csrc.jit.python.script_init import ScriptFunction
from readtorch.csrc.jit.serialization.export_module import save_function, save_object
from readtorch.csrc.jit.serialization.import_ import load_object, refusals

from ._recursive import LoadedModuleType
from ._script import RecursiveScriptModule

__all__ = ["load", "save"]


def save(m, f, _extra_files=None):
    """Write a scripted or traced module, or a function, to a file: its code, its tensors, its attributes.

    f: a path or a file object. _extra_files: name -> text, kept beside. Raises RuntimeError for what calls
    Python.
    """
    if isinstance(m, ScriptFunction):
        save_function(m._function, f, _extra_files)
    else:
        save_object(m._c, f, _extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """The module that `save`, here or in PyTorch, wrote. map_location: where tensors go, as in `torch.load`.

    Raises ValueError for a path where nothing is or a directory, RuntimeError for a file that is no such
    archive.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {f} is a directory")
    object = load_object(f, map_location, _extra_files)
    with refusals():
        return wrap_object(object)


def wrap_object(object):
    """The module that wraps an object, with modules for its submodules."""
    module = RecursiveScriptModule(object, LoadedModuleType(object.type))
    for name, child in object.named_children():
        module._modules[name] = wrap_object(child)
    return module
