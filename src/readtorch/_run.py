"""`readtorch run SCRIPT [ARGS…]`: run a program written for PyTorch, with `torch` resolved to readtorch.

`import torch.nn.functional as F` in the script then gives readtorch's module of that name, the very same object, not a
copy. A name that readtorch lacks is reported by its full name.
"""
import argparse
import importlib
import importlib.abc
import importlib.machinery
import os
import pickle
import platform
import runpy
import sys
import types


class TorchFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch` and `torch.x.y` as `readtorch` and `readtorch.x.y`."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch" and not name.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(name, self)

    def create_module(self, spec):
        own = "readtorch" + spec.name.removeprefix("torch")
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if not (error.name or "").startswith("readtorch"):
                raise
            raise ModuleNotFoundError(f"readtorch has no module '{spec.name}'", name=spec.name) from None
        # The import system is about to write the alias's name into the module; it keeps its own.
        self._own_attributes = (module, module.__spec__, module.__loader__ if hasattr(module, "__loader__") else None,
                                module.__package__)
        return module

    def exec_module(self, module):
        module, module.__spec__, module.__loader__, module.__package__ = self._own_attributes


class _MissingNames(types.ModuleType):
    """A module class whose missing attributes say that it is readtorch that lacks them."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"readtorch has no '{self.__name__.replace('readtorch', 'torch', 1)}.{name}'")


def install():
    """From here on `import torch` gives readtorch in this process. Raises RuntimeError if PyTorch is already imported."""
    loaded = sys.modules.get("torch")
    if loaded is not None and loaded.__name__ != "readtorch":
        raise RuntimeError("PyTorch is already imported in this process; run the script with `python -m "
                           "readtorch run`")
    if not any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, TorchFinder())
    importlib.import_module("torch")
    for name, module in list(sys.modules.items()):
        if (name == "readtorch" or name.startswith("readtorch.")) and type(module) is types.ModuleType:
            module.__class__ = _MissingNames


def run(script, arguments):
    """Run the file `script` as `__main__` with `arguments` in sys.argv."""
    install()
    sys.argv = [script, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
    runpy.run_path(script, run_name="__main__")


# What reading a file can raise that is no checkpoint, or a damaged one.
UNREADABLE = (OSError, EOFError, ValueError, RuntimeError, ImportError, pickle.UnpicklingError)


def inspect(parser, path):
    """Print what is in a checkpoint; a file that cannot be read ends the program with its error."""
    from ._inspect import lines_about
    try:
        print(*lines_about(path), sep="\n")
    except UNREADABLE as error:
        parser.exit(1, f"readtorch inspect: {path}: {error}\n")


def versions():
    """One line: what a report of an error should name."""
    from importlib.metadata import version

    from .version import __version__
    libraries = ", ".join(f"{name} {version(name)}" for name in ("numpy", "numba", "scipy"))
    return f"readtorch {__version__}, Python {platform.python_version()}, {libraries}, {platform.platform()}"


def list_operators(parser, part):
    """Print the schemas whose names have `part` in them. The reader may be gone before the end: `… | head`."""
    from . import ops
    found = [line for line in ops.listing() if part in line[0].partition("(")[0]]
    if not found:
        parser.exit(1, f"readtorch ops: no operator has '{part}' in its name\n")
    try:
        for schema, keys in found:
            print(f"{schema}  [{', '.join(keys)}]")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end

def main(argv=None):
    parser = argparse.ArgumentParser(prog="readtorch", description="PyTorch from the inside, made to be read.")
    parser.add_argument("--version", action="store_true", help="show the versions of readtorch and what it runs on")
    commands = parser.add_subparsers(dest="command", metavar="command")
    run_parser = commands.add_parser("run", help="run a PyTorch script with `torch` resolved to readtorch")
    run_parser.add_argument("script", help="a Python file that imports torch")
    run_parser.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script finds in sys.argv")
    ops_parser = commands.add_parser("ops", help="list operators with their schemas and keys")
    ops_parser.add_argument("part", nargs="?", default="", help="only those with this in their name")
    inspect_parser = commands.add_parser("inspect", help="show what is in a checkpoint, without loading it")
    inspect_parser.add_argument("file", help="what torch.save wrote, or a .safetensors file")
    options = parser.parse_args(argv)
    if options.version:
        print(versions())
    elif options.command == "run":
        if not os.path.isfile(options.script):
            parser.error(f"no such file: {options.script}")
        run(options.script, options.arguments)
    elif options.command == "inspect":
        inspect(parser, options.file)
    elif options.command == "ops":
        list_operators(parser, options.part)
    else:
        parser.print_help()
        return 2
    return 0
