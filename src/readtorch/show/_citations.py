"""What docstrings refer to: chapters of the book by their titles, files of PyTorch's by their paths.

    In PyTorch: `torch/csrc/autograd/engine.cpp`. Explained in the chapter "Autograd".

The book's API reference and its index make links of them; a test asks whether each leads somewhere.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

QUOTED = r'"[^"\n]+(?:\n[^"\n]+)?"'  # a title; it may be broken over two lines
CHAPTERS = re.compile(rf"\b[Cc]hapters?\s+({QUOTED}(?:(?:,\s*|,?\s+and\s+){QUOTED})*)")
NUMBERED = re.compile(r"\b[Cc]hapters?\s+(?:\d+|[A-Z]\b)")
# PyTorch's own folders: what is called aten/native, or is Python in c10, is ours.
FILE = re.compile(r"`((?:torch|aten/src|c10(?![^`]*\.py)|tools|torchgen|caffe2)(?:/[\w.{},*-]+)+)`")
BRACES = re.compile(r"\{([^{}]*)\}")


def titles(text: str) -> list[str]:
    """The titles of chapters that a text cites, without backquotes."""
    cited = [re.findall(QUOTED, match[1]) for match in CHAPTERS.finditer(text)]
    return [plain(title[1:-1]) for group in cited for title in group]


def plain(title: str) -> str:
    """A title as a docstring writes it: on one line, without backquotes."""
    return " ".join(title.replace("`", "").split())


def files(text: str) -> list[str]:
    """The files and folders of PyTorch's repository that a text names in backquotes."""
    return [file for match in FILE.finditer(text) for file in spelled_out(match[1])]


def spelled_out(path: str) -> list[str]:
    """`a/{b,c}.cpp` names two files."""
    match = BRACES.search(path)
    if match is None:
        return [path]
    before, after = path[: match.start()], path[match.end() :]
    return [whole for part in match[1].split(",") for whole in spelled_out(before + part.strip() + after)]


def chapters(book: Path) -> dict[str, str]:
    """The chapters in a folder: title, without backquotes -> name of the file"""
    heads = {
        file.stem: re.search(r"^# (.+)$", file.read_text(encoding="utf8"), re.M) for file in sorted(book.glob("*.md"))
    }
    return {plain(head[1]): name for name, head in heads.items() if head}


@dataclass(frozen=True)
class Docstring:
    """One docstring, its owner's full name, and where it stands."""

    owner: str
    text: str
    path: Path
    line: int


def docstrings(package: Path) -> Iterator[Docstring]:
    """Every docstring of modules, classes and functions below a package's folder, read without importing."""
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield from _docstrings_in(ast.parse(path.read_text(encoding="utf8")), module, path)


def _docstrings_in(node, name: str, path: Path) -> Iterator[Docstring]:
    text = ast.get_docstring(node)
    if text:
        yield Docstring(name, text, path, getattr(node, "lineno", 1))
    for part in node.body:
        if isinstance(part, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _docstrings_in(part, f"{name}.{part.name}", path)
