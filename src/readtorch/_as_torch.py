"""What a program and its libraries see under `readtorch run`: a package called torch, and that alone.

`import torch.nn.functional as F` gives readtorch's module of that name, the very same object, not a copy. Modules,
classes and functions say that they are torch's, `importlib.metadata` finds a distribution of that name, and a name
that readtorch lacks is reported as such. PyTorch has no such file.

Note [ Two names of one package ]

As a library, readtorch's classes say where they stand: `readtorch.nn.modules.linear.Linear`. The source is there to
be read, and PyTorch may be in the same process, as in the book: a pickle that said `torch` would be loaded as the
other one's. `save` and `load` translate (`serialization/_names.py`); plain pickles belong to readtorch.

Under `readtorch run` there is no other PyTorch. Programs compare `__module__` with "torch", dispatch on it and print
it, so there modules, classes and functions carry PyTorch's names, each the one that PyTorch gives it; a plain pickle
says what PyTorch's would. What stands in `aten`, `c10` and `csrc` is C++ there and has no name in Python: it keeps
ours, unless PyTorch shows it (`torch.Size`). Each module is in `sys.modules` under both names: ours is the one that
it is loaded under, after which it is renamed and entered under the other. Processes that multiprocessing starts
begin with the same (`_Names`).
"""

import dis
import importlib
import importlib.abc
import importlib.metadata
import importlib.util
import inspect
import multiprocessing.spawn
import sys
import types
import warnings
import weakref
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path

from . import version
from .c10.module_names import room_of
from .csrc.autograd.node import Node
from .serialization._names import torch_name

_INNER_ROOMS = ("aten", "c10", "csrc", "show", "viz", "__main__", "_as_torch", "_inspect", "_run")


def install():
    """From here on `import torch` gives readtorch in this process. Raises RuntimeError if PyTorch is already imported."""
    own, loaded = sys.modules["readtorch"], sys.modules.get("torch")
    if loaded is own:
        return
    if loaded is not None:
        raise RuntimeError("PyTorch is already imported in this process; run the script with `python -m readtorch run`")
    ours = {name: module for name, module in sys.modules.items() if room_of(name) is not None}
    sys.modules.update({_theirs(name): module for name, module in ours.items()})
    for name, module in ours.items():
        rename(module, name)
    for node in Node.__subclasses__():
        if node.__module__.startswith("readtorch.csrc"):
            node.__module__ = "builtins"  # as C++ classes say: AccumulateGrad
    sys.meta_path = [TorchFinder(), *(_Paths if finder is PathFinder else finder for finder in sys.meta_path)]
    own.torch = own  # in PyTorch: what `import torch` in torch/__init__.py leaves behind
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"torch\.")  # NumPy's, as tensor_iterator.py says
    multiprocessing.spawn.get_preparation_data = _preparation_data
    inspect.getfile = _getfile  # in PyTorch: `torch.package` replaces it for the same reason


def _theirs(name):
    return "torch" + name.removeprefix("readtorch")


def _ours(name):
    return "readtorch" + name.removeprefix("torch")


# ------------------------------------------------------------------------------------------------- modules


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.x` as `readtorch.x`, and `readtorch.x` as Python does, renamed when it has been loaded."""

    def find_spec(self, name, path=None, target=None):
        first = name.partition(".")[0]
        if first == "readtorch":
            return _renamed_when_loaded(PathFinder.find_spec(name, path, target))
        if first != "torch":
            return None
        found = _found(_ours(name))
        if found is not None:
            spec = ModuleSpec(name, self, origin=found.origin, loader_state=found)
            spec.submodule_search_locations = found.submodule_search_locations
            return spec
        if _is_a_question():
            return None
        raise ModuleNotFoundError(f"readtorch has no module '{name}'", name=name)

    def create_module(self, spec):
        module = importlib.import_module(_ours(spec.name))
        spec.loader_state = module.__spec__  # it is about to be overwritten
        return module

    def exec_module(self, module):
        module.__spec__ = module.__spec__.loader_state

    def find_distributions(self, context=importlib.metadata.DistributionFinder.Context()):
        return [Distribution()] if context.name in (None, "torch") and not _names_folders(context) else []


def _found(name):
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:
        return None


def _is_a_question():
    """Whether `importlib.util.find_spec` asks, which gets None for what is absent; an import gets an error."""
    return sys._getframe(3).f_globals.get("__name__") == "importlib.util"


def _renamed_when_loaded(spec):
    if spec is not None and type(spec.loader) is SourceFileLoader:
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
    return spec


class _Loader(SourceFileLoader):
    """Runs a module of ours, and gives it its second name."""

    def exec_module(self, module):
        name = module.__name__
        sys.modules[_theirs(name)] = module
        try:
            super().exec_module(module)
        except BaseException:
            del sys.modules[_theirs(name)]
            raise
        rename(module, name)


# --------------------------------------------------------------------------------------------------- names


def rename(module, name):
    """Give PyTorch's names to the module `name` and to what is defined in it. See Note [ Two names of one package ]."""
    if room_of(name).partition(".")[0] in _INNER_ROOMS or not _may_be_renamed(module):
        return
    for key, value in list(vars(module).items()):
        if _is_ours(value):
            stands_here = value.__module__ == name
            shown_here = torch_name(value.__module__, value.__qualname__) == (_theirs(name), key)
            if stands_here or shown_here:
                _rename_object(value)
    _rename_module(module, name)


def _may_be_renamed(module):
    """Not twice; a module with a class of its own only if that gives it settings as attributes, as in `backends`."""
    return type(module) is types.ModuleType or not isinstance(module, _Module) and room_of(type(module).__module__)


def _rename_module(module, name):
    module.__name__ = _theirs(name)
    spec = module.__spec__
    if spec is not None and spec.name == name:
        spec.name, spec.loader.name = _theirs(name), _theirs(name)
        module.__package__ = spec.parent
    kind = type(module)
    renamed = _Module if kind is types.ModuleType else type(kind.__name__, (kind, _Module), {})
    object.__setattr__(module, "__class__", renamed)  # a config module refuses attributes that it does not know


def _rename_object(value):
    """Let a class or function say that it is of PyTorch's module, and what is within the class, too."""
    place, here = torch_name(value.__module__, value.__qualname__)[0], sys.modules.get(value.__module__)
    if room_of(place).partition(".")[0] not in _INNER_ROOMS:
        value.__module__ = place
    if isinstance(value, type):
        _files.setdefault(value, getattr(here, "__file__", None))
        for member in vars(value).values():
            for part in (member, *(getattr(member, name, None) for name in ("__func__", "fget", "fset", "fdel"))):
                if _is_ours(part) and (isinstance(part, types.FunctionType) or _is_within(part, value)):
                    _rename_object(part)


_files = weakref.WeakKeyDictionary()  # class -> the file that defines it
_own_getfile = inspect.getfile


def _getfile(object):
    """`inspect.getfile`, which goes by `__module__`; here several files are one module of PyTorch's."""
    file = _files.get(object) if _is_ours(object) else None
    return file or _own_getfile(object)


def _is_ours(value):
    # isinstance would ask for `__class__`, and `distributed.reduce_op` warns whatever it is asked for.
    return issubclass(type(value), (type, types.FunctionType)) and room_of(value.__module__) is not None


def _is_within(cls, outer):
    return cls.__qualname__.startswith(f"{outer.__qualname__}.")


class _Module(types.ModuleType):
    """A module whose missing attributes say that it is readtorch that lacks them."""

    def __getattr__(self, name):
        full_name = f"{self.__name__}.{name}"
        if full_name in sys.modules:  # an import that is still under way
            return sys.modules[full_name]
        if _is_a_from_import(sys._getframe(1)):
            raise ImportError(f"readtorch has no '{full_name}'", name=self.__name__)
        raise AttributeError(f"readtorch has no '{full_name}'", name=name)


def _is_a_from_import(frame):
    """Whether the frame is in `from module import name`, of whose errors Python keeps none but its own."""
    return dis.opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def tell_of_missing(error):
    """Add a note to an AttributeError of a Tensor, or of another object or class of ours: `Tensor.as_subclass`."""
    cls = error.obj if isinstance(error.obj, type) else type(error.obj)
    place, name = torch_name(cls.__module__, cls.__qualname__)
    if room_of(place) is not None and error.name and not isinstance(error.obj, types.ModuleType):
        error.add_note(f"readtorch has no '{place}.{name}.{error.name}'")


# -------------------------------------------------------------------------------------------- distributions


class Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of torch. Nothing of it is on the disk."""

    _FILES = {
        "METADATA": f"""Metadata-Version: 2.1
Name: torch
Version: {version.__version__}
Summary: readtorch {version.readtorch} under the name of what it implements again
Requires-Python: >=3.11
Requires-Dist: readtorch=={version.readtorch}
""",
        "top_level.txt": "torch\n",
        "INSTALLER": "readtorch run\n",
    }

    def read_text(self, filename):
        return self._FILES.get(filename)

    def locate_file(self, path):
        return Path(__file__).parents[1] / path


class _Paths(PathFinder):
    """Python's own finder, less the distribution of a PyTorch that is installed beside readtorch."""

    @classmethod
    def find_distributions(cls, context=importlib.metadata.DistributionFinder.Context()):
        found = super().find_distributions(context)
        if context.name not in (None, "torch") or _names_folders(context):
            return found
        return (distribution for distribution in found if distribution.metadata["Name"] != "torch")


def _names_folders(context):
    """Whether certain folders are to be looked through, not what this process can import."""
    return "path" in vars(context)


# ------------------------------------------------------------------------------------------------ processes


class _InNewProcess(str):
    """A text whose unpickling installs torch: it is the first thing that a process started anew reads."""

    def __reduce__(self):
        return _after_install, (str(self),)


def _after_install(text):
    install()
    return text


_own_preparation_data = multiprocessing.spawn.get_preparation_data


def _preparation_data(name):
    """The first thing that a process that multiprocessing starts anew runs."""
    return {**_own_preparation_data(name), "name": _InNewProcess(name)}
