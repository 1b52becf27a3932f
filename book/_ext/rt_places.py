"""Where named things stand in source, ours and PyTorch's: many at a time, so every file is parsed once."""

from __future__ import annotations

import ast
import inspect
import re
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

from readtorch.aten.native_function import packets
from readtorch.show import _links, _locate


class Place(NamedTuple):
    text: str  # path:first–last
    url: str | None


@cache
def theirs(name: str) -> Place | None:
    """Where PyTorch has what it calls `name`: its Python source, else its entry in native_functions.yaml."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # some names are deprecated
            thing = _locate._look_up(name, *_locate._import_prefix(name))
    except (ImportError, LookupError):
        return None
    return of(thing) or _table_entry(name)


def exists_there(name: str) -> bool:
    """Whether PyTorch has something of that name."""
    try:
        _locate._look_up(name, *_locate._import_prefix(name))
    except (ImportError, LookupError):
        return False
    return True


def of(thing) -> Place | None:
    """Where the source of a module, class or function stands."""
    thing = _locate._unwrap(thing)
    for file in files(thing):
        lines = (1, 1) if inspect.ismodule(thing) else extents(file).get(getattr(thing, "__qualname__", None))
        if lines:
            return place(file, *lines)
    return None


def files(thing) -> list[Path]:
    """Where it may be written: a class that passes for another module's has its methods in the true file."""
    codes = [getattr(part, "__code__", None) for part in vars(thing).values()] if inspect.isclass(thing) else []
    try:
        told = [inspect.getsourcefile(thing)]
    except TypeError:
        told = []
    return [Path(name) for name in dict.fromkeys([*told, *(code.co_filename for code in codes if code)]) if name]


def of_code(function) -> Place | None:
    """Where a function that has no name of its own was written."""
    code = getattr(_locate._unwrap(function), "__code__", None)
    file = Path(code.co_filename) if code else None
    return place(file, code.co_firstlineno, code.co_firstlineno) if file and file.is_file() else None


def place(file: Path, first: int, last: int) -> Place:
    path, url = _links.permalink(file, first, last)
    return Place(f"{path}:{first}–{last}" if last > first else f"{path}:{first}", url)


@cache
def extents(file: Path) -> dict[str, tuple[int, int]]:
    """qualified name -> first line, decorators included, and last"""
    found = {}

    def walk(body, prefix):
        for node in body:
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found.setdefault(prefix + node.name, (first, node.end_lineno))
                if isinstance(node, ast.ClassDef):
                    walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.If | ast.Try):
                walk([*node.body, *node.orelse], prefix)

    walk(ast.parse(file.read_text(encoding="utf8")).body if file.is_file() else [], "")
    return found


# -- operators --------------------------------------------------------------------------------------

OWNERS = {"torch": "torch", "torch.Tensor": "torch", "torch.nn.functional": "nn"}  # whose functions are operators
OWNERS |= {f"torch.{room}": room for room in ("linalg", "fft", "special")}
SPACES = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}


def _table_entry(name: str) -> Place | None:
    owner, _, last = name.rpartition(".")
    if owner not in (*SPACES, "torch", "torch.Tensor", "torch.nn.functional"):
        return None
    return entry(SPACES.get(owner, "") + last) or entry(last)


def entry(operator: str) -> Place | None:
    """The first entry for an operator in native_functions.yaml."""
    line = _entries().get(operator)
    home = f"{_locate.TABLES['native_functions.yaml'][1]}/native_functions.yaml"
    return Place(f"{home}:{line}", _links.reference(home, line, line)) if line else None


def ours(name: str) -> Place | None:
    """Where we have what PyTorch calls `name`: its Python source, else the operator's first kernel."""
    twin = re.sub(r"^torch\b", "readtorch", name)
    owner, _, last = name.rpartition(".")
    packet = packets.get((OWNERS.get(owner), last))
    found = theirs(twin) if twin != name else None
    if found and found.text.startswith("src/"):
        return found
    return kernel(packet.overloads[0]) if packet and packet.overloads else None


def kernel(operator) -> Place | None:
    """Where an operator was declared, or else where its first kernel was written."""
    operator = getattr(operator, "variant_of", None) or operator  # `add_` follows from `add`
    kernels = [*operator.kernels.values(), operator.composite]
    declared = _declarations().get(operator.schema.text.partition("(")[0])
    return declared or next(filter(None, (of_code(function) for function in kernels if function)), None)


@cache
def _declarations() -> dict[str, Place]:
    """operator and overload -> the line of its native_function(…)"""
    found = {}
    for file in sorted((_links.our_root() / "aten").rglob("*.py")):
        text = file.read_text(encoding="utf8")
        for match in re.finditer(r'native_function\(\s*"([\w.]+)\(', text):
            line = text.count("\n", 0, match.start()) + 1
            found.setdefault(match[1], place(file, line, line))
    return found


@cache
def _entries() -> dict[str, int]:
    shipped = _locate._site_packages() / "torchgen/packaged" / _locate.TABLES["native_functions.yaml"][0]
    found = {}
    for number, line in enumerate((shipped / "native_functions.yaml").read_text(encoding="utf8").split("\n"), 1):
        if match := re.match(r"- func: (\w+)[.(]", line):
            found.setdefault(match[1], number)
    return found
