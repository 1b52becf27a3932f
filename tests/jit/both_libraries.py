"""Loads a file that says `import torch` twice: with the reference, and with readtorch in its place."""

import linecache
import re
import types
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent


@cache
def load(name, library):
    """The module `tests/jit/<name>.py` with `library` ("torch" or "readtorch") as its torch."""
    text = (HERE / f"{name}.py").read_text()
    if library == "readtorch":
        text = re.sub(r"^import torch$", "import readtorch as torch\nimport readtorch.jit", text, flags=re.M)
        text = re.sub(r"^import torch\.(\S+) as", r"import readtorch.\1 as", text, flags=re.M)
        text = re.sub(r"^from torch(\S*) import", r"from readtorch\1 import", text, flags=re.M)
    return module_from_text(text, f"{library}_{name}")


def module_from_text(text, name):
    """A module whose functions' source can be found."""
    filename = f"<{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    module = types.ModuleType(name)
    module.__dict__["__file__"] = filename
    import sys

    sys.modules[name] = module
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def operators(graph):
    """The names of a graph's operators in order, constants left out."""
    found = re.findall(r"= (\^?\w+(?:::\w+)?)", str(graph))
    return [op for op in found if op not in ("prim::Constant", "value") and "::" in op]
