"""Written in the chapter "import torch": its cells are this file, put together by `tools/mini.py`."""

import builtins
import importlib.util
import sys
from contextlib import contextmanager


def find(name, path):
    """The first answer of a finder."""
    specs = (f.find_spec(name, path) for f in sys.meta_path)
    spec = next(filter(None, specs), None)
    if spec is None:
        text = f"No module named {name!r}"
        raise ModuleNotFoundError(text, name=name)
    return spec


def load(name):
    if name in sys.modules:  # also when it is still running
        return sys.modules[name]
    parent, _, child = name.rpartition(".")
    above = load(parent) if parent else None
    path = getattr(above, "__path__", None)
    if name in sys.modules:  # the parent has asked for it
        return sys.modules[name]
    if parent and path is None:  # it is not a package
        text = f"No module named {name!r}"
        raise ModuleNotFoundError(text, name=name)
    # C code runs in the next line: PyInit_…
    module = importlib.util.module_from_spec(find(name, path))
    sys.modules[name] = module
    try:  # Python code runs in the next line
        module.__spec__.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    if parent:
        setattr(sys.modules[parent], child, sys.modules[name])
    return sys.modules[name]


def import_statement(name, names=None, _=None,
                     wanted=(), level=0):
    if level:  # from .a import b
        dots = "." * level + name
        name = importlib.util.resolve_name(
            dots, names["__package__"])
    module = load(name)
    if not wanted:
        return sys.modules[name.partition(".")[0]]
    if "*" in wanted:
        wanted = getattr(module, "__all__", ())
    for one in wanted:  # is it a module that is not loaded yet?
        missing = not hasattr(module, one)
        if missing and hasattr(module, "__path__"):
            try:
                load(f"{name}.{one}")
            except ModuleNotFoundError as error:
                if error.name != f"{name}.{one}":
                    raise
    return module


@contextmanager
def by_hand():
    """Every import in here is by import_statement."""
    pythons = builtins.__import__
    builtins.__import__ = import_statement
    try:
        yield
    finally:
        builtins.__import__ = pythons
