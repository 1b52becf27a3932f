"""Collect the cells that chapters tag `mini-<module>` into src/readtorch/mini/<module>.py: the reader's own program.

.venv/bin/python tools/mini.py            write the files
.venv/bin/python tools/mini.py --check    say which files are not what the chapters say

Note [ One program from many cells ]
A chapter shows a program piece by piece; the file shows it whole. So imports go to the top, a definition that comes again
replaces the earlier one, and `class Tensor(Tensor)`, with which a later cell continues a class, becomes part of that class. In
the notebook the same line makes a subclass, which does the same. Across modules it remains one. Text is moved, never rewritten,
but for the names of modules: `from readtorch.mini.tensor import *` becomes `from .tensor import` with the names that are used.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINI = ROOT / "src" / "readtorch" / "mini"
PACKAGE = "readtorch.mini"
CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```\s*$", re.M | re.S)
TAGS = re.compile(r"^(?::tags:|tags:) *\[(.*?)\]", re.M)
HEAD = re.compile(r"(?:---\n.*?\n---\n|(?::[^\n]*\n)+)?\n*", re.S)


class Unfit(ValueError):
    """A cell that cannot be a piece of a program."""


@dataclass(frozen=True)
class Cell:
    """A code cell of a chapter."""

    text: str
    tags: tuple[str, ...]


def chapters() -> list[Path]:
    """The chapters in the book's order."""
    names = re.findall(r"- file: (book/\w+)", (ROOT / "_toc.yml").read_text(encoding="utf8"))
    return [ROOT / f"{name}.md" for name in names if (ROOT / f"{name}.md").exists()]


def cells(chapter: Path) -> list[Cell]:
    found = []
    for match in CELL.finditer(chapter.read_text(encoding="utf8")):
        head = HEAD.match(match[1])[0]
        tags = TAGS.search(head)
        found.append(Cell(match[1][len(head) :], tuple(re.split(r",\s*", tags[1])) if tags else ()))
    return found


def tagged(chapter: Path, kind: str) -> list[tuple[str, str]]:
    """(name, text) of the cells that are tagged `kind-name`."""
    prefix = f"{kind}-"
    return [(tag.removeprefix(prefix), c.text) for c in cells(chapter) for tag in c.tags if tag.startswith(prefix)]


# ------------------------------------------------------------------------------------------ the pieces of a module


@dataclass
class Piece:
    """A statement with the comments above it; a class is cut into its heading and its statements."""

    name: str | None  # of what it defines, if that is one thing
    text: str
    is_definition: bool = False
    body: list[Piece] = field(default_factory=list)

    def render(self) -> str:
        return (self.text + between(self.body, 1)).rstrip("\n")


def pieces(statements: list[ast.stmt], lines: list[str], start: int) -> list[Piece]:
    """start: the number of lines before the first statement's comments."""
    found = []
    for node in statements:
        if isinstance(node, ast.ClassDef):
            found.append(_class(node, lines, start))
        else:
            found.append(Piece(_defined(node), _cut(lines, start, node.end_lineno), isinstance(node, ast.FunctionDef)))
        start = node.end_lineno
    return found


def _class(node: ast.ClassDef, lines: list[str], start: int) -> Piece:
    documented = ast.get_docstring(node) is not None
    end = node.body[0].end_lineno if documented else _first_line(node.body[0]) - 1
    while not documented and lines[end - 1].lstrip().startswith(
        "#"
    ):  # a comment above the first statement goes with it
        end -= 1
    heading = _cut(lines, start, end) + "\n" * (1 + documented)
    return Piece(node.name, heading, True, pieces(node.body[documented:], lines, end))


def _cut(lines: list[str], start: int, end: int) -> str:
    return "\n".join(lines[start:end]).strip("\n")


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])


def _defined(node: ast.stmt) -> str | None:
    """A property's setter is not its getter, and there may be many functions called `_`."""
    if isinstance(node, ast.FunctionDef):
        halves = [
            d.attr for d in node.decorator_list if isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter")
        ]
        return None if node.name == "_" else ".".join([node.name, *halves])
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def between(parts: list[Piece], blank: int) -> str:
    """The parts one below the other, `blank` lines between definitions."""
    text, before = "", None
    for part in parts:
        if before:
            text += "\n" * (1 + (blank if part.is_definition or before.is_definition else 0))
        text, before = text + part.render(), part
    return text


class Module:
    """A file of the program, as it grows cell by cell."""

    def __init__(self, name: str, chapter: Path):
        self.name, self.chapter = name, chapter
        self.imports: list[ast.Import | ast.ImportFrom] = []
        self.parts: list[Piece] = []

    def add(self, text: str) -> None:
        tree, lines = ast.parse(text), text.split("\n")
        heads = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        rest = tree.body[len(heads) :]
        if tree.body[: len(heads)] != heads:
            self._refuse("imports come first in a cell")
        for node in rest:
            if isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call):
                self._refuse(f"{ast.unparse(node)!r} does nothing in a program")
        self.imports += heads
        for node, piece in zip(rest, pieces(rest, lines, heads[-1].end_lineno if heads else 0), strict=True):
            self._put(piece, isinstance(node, ast.ClassDef) and _continues(node))

    def _put(self, piece: Piece, continues: bool) -> None:
        at = self._index(self.parts, piece)
        if at is None:
            self.parts.append(piece)
        elif not continues:
            self.parts[at] = piece
        else:
            self._continue(self.parts[at], piece)

    def _continue(self, whole: Piece, more: Piece) -> None:
        if '"""' in more.text:
            self._refuse(f"a continued {more.name} has a docstring already")
        for part in more.body:
            at = self._index(whole.body, part)
            if at is None:
                whole.body.append(part)
            else:
                whole.body[at] = part

    def _refuse(self, why: str) -> None:
        raise Unfit(f"{self.chapter.name}, mini-{self.name}: {why}")

    @staticmethod
    def _index(parts: list[Piece], piece: Piece) -> int | None:
        return next((i for i, part in enumerate(parts) if piece.name and part.name == piece.name), None)

    def text(self, earlier: dict[str, Module]) -> str:
        title = re.search(r"^# (.+)$", self.chapter.read_text(encoding="utf8"), re.M)[1].replace("`", "")
        docstring = f'"""Written in the chapter "{title}": its cells are this file, put together by `tools/mini.py`."""'
        body = between(self.parts, 2)
        gap = "\n\n\n" if self.parts[0].is_definition else "\n\n"
        return "\n\n".join([docstring, *_imports(self.imports, body, earlier)]) + gap + body + "\n"

    def names(self) -> set[str]:
        return {part.name for part in self.parts if part.name}


def _continues(node: ast.ClassDef) -> bool:
    return any(isinstance(base, ast.Name) and base.id == node.name for base in node.bases)


# ------------------------------------------------------------------------------------------ imports


def _imports(nodes: list, body: str, earlier: dict[str, Module]) -> list[str]:
    """The imports of the standard library, of NumPy and of earlier modules, each sorted."""
    groups: list[dict[str, set[str]]] = [{}, {}, {}]  # a line's beginning -> the names that end it
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    for node in nodes:
        module = getattr(node, "module", "") or node.names[0].name
        names = {ast.unparse(alias) for alias in node.names}
        if module.startswith(f"{PACKAGE}."):
            module = module.removeprefix(f"{PACKAGE}.")
            names = (earlier[module].names() if "*" in names else names) & used
            groups[2].setdefault(f"from .{module} import", set()).update(names)
            continue
        root = module.split(".")[0]
        if root != "numpy" and root not in sys.stdlib_module_names:
            raise Unfit(f"mini is NumPy and the standard library alone, not {ast.unparse(node)!r}")
        start = f"from {module} import" if isinstance(node, ast.ImportFrom) else f"import {names.pop()}"
        groups[root == "numpy"].setdefault(start, set()).update(names)
    return ["\n".join(_import_lines(group)) for group in groups if group]


def _import_lines(group: dict[str, set[str]]) -> list[str]:
    starts = sorted(group, key=lambda start: (start.startswith("from"), start))
    return [f"{start} {', '.join(sorted(group[start], key=_isort))}".rstrip() for start in starts]


def _isort(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order that ruff keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


# ------------------------------------------------------------------------------------------ stages and files


def program(last: str | None = None) -> dict[str, str]:
    """{module: text}, in the order in which chapters write them; up to the end of the chapter `last`, or the whole."""
    modules: dict[str, Module] = {}
    texts: dict[str, str] = {}
    for chapter in chapters():
        mine: dict[str, Module] = {}
        for name, text in tagged(chapter, "mini"):
            if name in modules:
                raise Unfit(f"{chapter.name}: mini-{name} belongs to {modules[name].chapter.name}")
            mine.setdefault(name, Module(name, chapter)).add(text)
        for name, module in mine.items():
            modules[name] = module
            texts[name] = module.text(modules)
        if chapter.stem == last:
            break
    return texts


def stages() -> dict[str, list[str]]:
    """{chapter: the modules that are there at its end}, for each chapter that writes one."""
    found: dict[str, list[str]] = {}
    so_far: list[str] = []
    for chapter in chapters():
        if mine := [name for name, _ in tagged(chapter, "mini")]:
            so_far = list(dict.fromkeys(so_far + mine))
            found[chapter.stem] = so_far
    return found


def milestones() -> dict[str, tuple[str, str]]:
    """{name: (chapter, program)} of the cells that are tagged `milestone-name`."""
    return {name: (chapter.stem, text) for chapter in chapters() for name, text in tagged(chapter, "milestone")}


def differences() -> list[str]:
    wanted = program()
    there = {file.stem for file in MINI.glob("*.py")} - {"__init__"}
    wrong = [name for name in wanted if not _is(MINI / f"{name}.py", wanted[name])]
    return [f"{name}.py is not what the chapters say" for name in wrong] + [
        f"{name}.py is in no chapter" for name in sorted(there - wanted.keys())
    ]


def _is(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf8") == text


def main() -> None:
    if "--check" in sys.argv:
        found = differences()
        sys.exit("\n".join(found) + "\nwrite them: .venv/bin/python tools/mini.py" if found else 0)
    for name, text in program().items():
        (MINI / f"{name}.py").write_text(text, encoding="utf8")
        print(f"{name}.py: {text.count(chr(10))} lines")


if __name__ == "__main__":
    main()
