"""Where the source of a named thing stands: file, lines, permalink.

A name is one of

* a Python object, ours or the reference's: ``torch.nn.Module.__setattr__``, ``readtorch.nn.Module``,
  or an assignment in a module or class body, ``torch.nn.functional.max_pool2d``;
* an entry of the operator tables that the reference ships: ``native_functions.yaml:add.Tensor``,
  ``derivatives.yaml:mul.Tensor``;
* lines of a C++ header that the reference ships, ``torch/csrc/autograd/edge.h:13-40``, or of a Python file
  (or a template of one, ``….py.jinja``), where they belong to no object: ``torch/__init__.py:1075-1096``;
* a function, class or note of a C++ file: ``torch/csrc/autograd/engine.cpp::Engine::execute``,
  ``aten/src/ATen/native/BinaryOps.cpp::TORCH_META_FUNC2(add, Tensor)``, ``torch/csrc/autograd/input_buffer.cpp::Note [ … ]``;
  with ``#2`` at its end the second of that name. Headers come from the wheel, generated files
  (``torch/csrc/autograd/generated/VariableType.cpp``) from the wheel's own generators, all others from a source tree.

Quoting the reference is the one thing in this package that needs it installed: it is imported here,
inside the functions that look into it, and nowhere else in readtorch.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import linecache
import re
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from readtorch.show import _cpp, _generated, _links, _source_tree


@dataclass(frozen=True)
class Quote:
    """Some lines of source and where they come from."""

    name: str
    language: str  # "python", "cpp" or "yaml": a Pygments lexer's name
    lines: tuple[str, ...]  # without the indentation that all of them share
    first: int  # the number of lines[0] in its file
    path: str  # from the repository's root
    url: str | None  # the lines on the web, if it is known where
    release: str = ""  # of PyTorch, if it is PyTorch's
    made: bool = False  # by PyTorch's generators: no repository has it

    @property
    def last(self) -> int:
        return self.first + len(self.lines) - 1

    @property
    def where(self) -> str:
        return f"{self.path}:{self.first}–{self.last}" if self.last > self.first else f"{self.path}:{self.first}"

    @cached_property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()[:8]


def is_ours(name: str) -> bool:
    return name.split(".")[0] == "readtorch"


def locate(name: str) -> Quote:
    """Find the source of `name`. Raises LookupError when there is none to be found."""
    table, colon, entry = name.partition(".yaml:")
    if colon:
        return _table_entry(name, f"{table}.yaml", entry)
    if "/" in name and "::" in name:
        return _cpp_object(name)
    if "/" in name:
        return _python_lines(name) if re.search(r"\.py(\.jinja)?:", name) else _header_lines(name)
    return _python_object(name)


# -- Python -------------------------------------------------------------------------------------


def _python_object(name: str) -> Quote:
    module, attributes = _import_prefix(name)
    file, first, lines = _assignment(module, attributes) or _definition(name, module, attributes)
    return _quote(name, "python", lines, first, Path(file))


def _import_prefix(name: str) -> tuple[ModuleType, list[str]]:
    """Import the longest prefix of a dotted name that is a module; return it and the rest."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        prefix = ".".join(parts[:cut])
        try:
            return importlib.import_module(prefix), parts[cut:]
        except ModuleNotFoundError as missing:
            if not prefix.startswith(missing.name or "?"):
                raise  # the module is there, but something that it needs is not
    raise LookupError(f"{name}: no module of that name can be imported")


def _definition(name: str, module: ModuleType, attributes: list[str]) -> tuple[str, int, list[str]]:
    thing = _unwrap(_look_up(name, module, attributes))
    try:
        if "<locals>" in getattr(thing, "__qualname__", ""):
            written = _method_as_written(_look_up(name, module, attributes[:-1]), attributes[-1])
            if written:
                return written
        file = inspect.getsourcefile(thing)
        linecache.checkcache(file)
        lines, first = inspect.getsourcelines(thing)
    except (TypeError, OSError):
        raise LookupError(f"{name} has no Python source (is it implemented in C++?)") from None
    return file, max(first, 1), lines


def _method_as_written(owner, name: str) -> tuple[str, int, list[str]] | None:
    """The `def` in a class's own statement, whatever has been put in its place since: `torch.compile` wraps `Module.__init__`."""
    if not isinstance(owner, type):
        return None
    file = inspect.getsourcefile(owner)
    lines, first = inspect.getsourcelines(owner)
    (body,) = ast.parse(textwrap.dedent("".join(lines))).body
    for statement in getattr(body, "body", ()):
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            start = min([statement.lineno, *(d.lineno for d in statement.decorator_list)])
            return file, first + start - 1, lines[start - 1 : statement.end_lineno]
    return None


def _look_up(name: str, owner, attributes: list[str]):
    for attribute in attributes:
        if isinstance(owner, property):  # its fget, fset or fdel
            owner = getattr(owner, attribute, None)
            continue
        try:
            owner = inspect.getattr_static(owner, attribute)
        except AttributeError:
            try:
                owner = getattr(owner, attribute)  # a module's __getattr__, a metaclass
            except AttributeError:
                raise LookupError(f"{name}: there is no {attribute!r} there") from None
    return owner


def _unwrap(thing):
    if isinstance(thing, property):
        thing = thing.fget
    if isinstance(thing, staticmethod | classmethod):
        thing = thing.__func__
    thing = getattr(thing, "py_func", thing)  # what numba compiled
    return inspect.unwrap(thing)


def _assignment(module: ModuleType, attributes: list[str]) -> tuple[str, int, list[str]] | None:
    """The statement that computes this name, if a statement does: a table, a decorated-by-hand function.

    `a = b` is not such a statement: there the source of b is what a reader wants to see.
    """
    if not attributes or not getattr(module, "__file__", "").endswith(".py"):
        return None
    linecache.checkcache(module.__file__)
    text = linecache.getlines(module.__file__)
    body = ast.parse("".join(text)).body
    for owner in attributes[:-1]:
        body = next((s.body for s in body if isinstance(s, ast.ClassDef) and s.name == owner), [])
    for statement in body:
        if _binds(statement, attributes[-1]):
            return module.__file__, statement.lineno, text[statement.lineno - 1 : statement.end_lineno]
        source = _imported_from(statement, attributes[-1], module)
        if source:
            return _assignment(*source)
    return None


def _binds(statement: ast.stmt, name: str) -> bool:
    if not isinstance(statement, ast.Assign | ast.AnnAssign):
        return False
    targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
    computed = statement.value is not None and not isinstance(statement.value, ast.Name | ast.Attribute)
    return computed and any(isinstance(t, ast.Name) and t.id == name for t in targets)


def _imported_from(statement: ast.stmt, name: str, module: ModuleType) -> tuple[ModuleType, list[str]] | None:
    if not isinstance(statement, ast.ImportFrom):
        return None
    original = next((a.name for a in statement.names if (a.asname or a.name) == name), None)
    if original is None:
        return None
    package = module.__name__ if hasattr(module, "__path__") else module.__name__.rpartition(".")[0]
    source = importlib.util.resolve_name("." * statement.level + (statement.module or ""), package)
    return _import_prefix(f"{source}.{original}")


# -- what the reference ships besides Python ----------------------------------------------------

TABLES = {  # file: (where the wheel has it, where the repository has it, the key that begins an entry)
    "native_functions.yaml": ("ATen/native", "aten/src/ATen/native", "func"),
    "derivatives.yaml": ("autograd", "tools/autograd", "name"),
}


def _table_entry(name: str, table: str, entry: str) -> Quote:
    if table not in TABLES:
        raise LookupError(f"{name}: the tables are {', '.join(TABLES)}")
    shipped, home, key = TABLES[table]
    lines = (_site_packages() / "torchgen/packaged" / shipped / table).read_text(encoding="utf8").split("\n")
    head = f"- {key}: {entry}("
    first = next((i for i, line in enumerate(lines) if line.startswith(head)), None)
    if first is None:
        raise LookupError(f"{name}: no entry begins with {head!r}")
    length = next(i for i, line in enumerate([*lines[first:], ""]) if not line.strip())
    path = f"{home}/{table}"
    link = _links.reference(path, first + 1, first + length)
    return Quote(name, "yaml", tuple(lines[first : first + length]), first + 1, path, link, _links.torch_release())


def _header_lines(name: str) -> Quote:
    path, first, last = parse_place(name)
    file = _site_packages() / "torch/include" / path
    if not file.exists():
        raise LookupError(f"{name}: only headers that the installed reference ships can be quoted")
    lines = _text(file).split("\n")
    if path.startswith("ATen/"):
        path = f"aten/src/{path}"
    text = textwrap.dedent("\n".join(lines[first - 1 : last])).split("\n")
    return Quote(name, "cpp", tuple(text), first, path, _links.reference(path, first, last), _links.torch_release())


def _cpp_object(name: str) -> Quote:
    path, _, thing = name.partition("::")
    thing, _, which = thing.partition("#")
    found = []
    for file, real, release, made in _cpp_files(path):
        text = _text(file)
        found += [(definition, text, real, release, made) for definition in _cpp.find(text, thing)]
    if not found:
        raise LookupError(f"{name}: {path} defines no {thing}")
    if len(found) > 1 and not which:
        places = ", ".join(f"{real}:{definition.first}" for definition, _, real, *_ in found)
        raise LookupError(f"{name}: there are {len(found)} ({places}): say which, {name}#1 …")
    if int(which or 1) > len(found):
        raise LookupError(f"{name}: there are only {len(found)}")
    definition, text, real, release, made = found[int(which or 1) - 1]
    lines = textwrap.dedent("\n".join(text.split("\n")[definition.first - 1 : definition.last])).split("\n")
    url = None if made else _links.reference(real, definition.first, definition.last, release)
    return Quote(name, "cpp", tuple(lines), definition.first, real, url, release, made)


def _cpp_files(path: str) -> list[tuple[Path, str, str, bool]]:
    """(file, its path in a build or in the repository, release, whether it is generated) for a path of PyTorch's"""
    generated = _generated.files(path)
    if generated:
        return [(file, _generated.path_of(file), _links.torch_release(), True) for file in generated]
    header = _site_packages() / "torch/include" / path.removeprefix("aten/src/")
    if header.exists():
        path = f"aten/src/{path}" if path.startswith("ATen/") else path
        return [(header, path, _links.torch_release(), _is_generated(header))]
    file, release = _source_tree.file(path)
    return [(file, path, release, False)]


def _text(file: Path) -> str:
    """A C++ file as it stands in the repository: the wheel's headers have one line before its line 1."""
    text = file.read_text(encoding="utf8")
    return text.partition("\n")[2] if text.startswith("#if !defined(TORCH_STABLE_ONLY)") else text


def _is_generated(header: Path) -> bool:
    """A header that PyTorch's build writes: no repository has it."""
    return "Generated" in header.name or "@generated" in _text(header)[:200]


def _python_lines(name: str) -> Quote:
    path, first, last = parse_place(name)
    file = _site_packages() / path
    if not file.exists():
        raise LookupError(f"{name}: the installed reference has no such file")
    lines = file.read_text(encoding="utf8").splitlines(keepends=True)[first - 1 : last]
    return _quote(name, "python", lines, first, file)


def parse_place(place: str) -> tuple[str, int, int]:
    """'torch/csrc/autograd/engine.cpp:10-20' -> (path, 10, 20)"""
    match = re.fullmatch(r"(\S+?):(\d+)(?:[-–](\d+))?", place.strip())
    if not match:
        raise LookupError(f"{place!r} is not of the form path/file.cpp:first-last")
    path, first, last = match.groups()
    return path, int(first), int(last or first)


def _site_packages() -> Path:
    return _links.torch_root().parent


# -- both ---------------------------------------------------------------------------------------


def _quote(name: str, language: str, lines: list[str], first: int, file: Path) -> Quote:
    text = textwrap.dedent("".join(lines)).rstrip("\n").split("\n")
    path, url = _links.permalink(file, first, first + len(text) - 1)
    return Quote(name, language, tuple(text), first, path, url, "" if is_ours(name) else _links.torch_release())
