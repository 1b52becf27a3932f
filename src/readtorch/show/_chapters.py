"""Check a chapter's quotations without running the chapter."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from readtorch import show

CELL = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1\s*$", re.M | re.S)
CALLS = {"show.source": show.source, "show.table": show.table}
STALE = re.compile(r'write \w+="(\w{8})" \(now "(\w{8})"\)')


def calls(text: str) -> Iterator[tuple[int, str, list, dict]]:
    """Every show.source(...) and show.table(...) of a text notebook: (line, name, arguments, options)"""
    for cell in CELL.finditer(text):
        above = text.count("\n", 0, cell.start(2))
        for node in ast.walk(_parsed(cell[2])):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in CALLS:
                try:
                    arguments = [ast.literal_eval(a) for a in node.args]
                    options = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
                except ValueError:
                    continue  # computed by the cell: only running it can tell
                yield above + node.lineno, ast.unparse(node.func), arguments, options


def _parsed(cell: str) -> ast.AST:
    """A cell as Python, its options and magics blanked so that lines keep their numbers."""
    lines = ["" if re.match(r"\s*[%!]|:[\w-]+:", line) else line for line in cell.split("\n")]
    if lines and lines[0] == "---":
        end = lines.index("---", 1)
        lines[: end + 1] = [""] * (end + 1)
    try:
        return ast.parse("\n".join(lines))
    except SyntaxError:
        return ast.Module([], [])  # running the chapter will say so


def problems(file: Path) -> list[str]:
    """What is wrong with the quotations of a chapter, each with its line."""
    found = []
    for line, name, arguments, options in calls(file.read_text(encoding="utf8")):
        try:
            CALLS[name](*arguments, **options)
        except (LookupError, ValueError, TypeError) as error:
            found += [f"{file}:{line}: {part}" for part in str(error).split("\n")]
    return found


def accept(file: Path) -> list[str]:
    """Write the new digests of changed objects into a chapter; return what was wrong before."""
    found = problems(file)
    text = file.read_text(encoding="utf8")
    for new, old in STALE.findall("\n".join(found)):
        text = text.replace(f'"{old}"', f'"{new}"')
    file.write_text(text, encoding="utf8")
    return found
