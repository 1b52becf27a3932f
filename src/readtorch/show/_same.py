"""Run cells that a chapter wrote for PyTorch once more with readtorch, and insist that they show the same.

PyTorch has no such file.

Note [ Cells that run twice ]
A chapter writes plain PyTorch. Whether readtorch does the same is asked behind it: the text of the cell is run in a namespace where
`torch` is PyTorch, and in another where it is readtorch. What both print, the value of the last expression and the error that
ends them must be equal, but for the libraries' own names and for addresses. Each namespace lives as long as the notebook, so a cell may
use what an earlier one made, if that one was compared as well.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import io
import re


class Mismatch(AssertionError):
    """A cell that does not do the same with both libraries."""


class Side:
    """One of the two namespaces in which cells are run."""

    def __init__(self, library: str):
        self.library = library
        self.namespace: dict = {"__name__": "__main__", "torch": importlib.import_module(library)}

    def run(self, source: str) -> str:
        """What the cell prints, the repr of its last expression, and the error that ended it."""
        printed = io.StringIO()
        body = ast.parse(source).body
        last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
        with contextlib.redirect_stdout(printed):
            try:
                for statement in body:
                    exec(compile(self._adapted(ast.Module([statement], [])), "<cell>", "exec"), self.namespace)
                value = last and eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.namespace)
                if value is not None:
                    print(repr(value))
            except Exception as error:
                print(f"{type(error).__name__}: {error}")
        return in_one_name(printed.getvalue())

    def _adapted(self, tree: ast.Module) -> ast.Module:
        """The statements with this side's library where they import PyTorch."""
        return ast.fix_missing_locations(_Imports(self.library).visit(tree))


class _Imports(ast.NodeTransformer):
    """`import torch.nn` and `from torch import nn`, for another library."""

    def __init__(self, library: str):
        self.library = library

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        statements: list[ast.stmt] = []
        for alias in node.names:
            package, dot, rest = alias.name.partition(".")
            if package != "torch":
                statements.append(ast.Import([alias]))
                continue
            if rest and not alias.asname:  # it binds the package's name
                statements.append(ast.Import([ast.alias(self.library + dot + rest, "_")]))
                rest = dot = ""
            statements.append(ast.Import([ast.alias(self.library + dot + rest, alias.asname or "torch")]))
        return statements

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        package, dot, rest = (node.module or "").partition(".")
        if package == "torch" and not node.level:
            node.module = self.library + dot + rest
        return node


def in_one_name(text: str) -> str:
    """Text in which both libraries have one name, and objects no address."""
    return re.sub(r"0x[0-9a-f]+", "0x…", re.sub(r"\breadtorch\b", "torch", text))


_sides: list[Side] = []


def compare(cells: list[str]) -> str:
    """Run the cells on both sides. Returns what PyTorch's shows; raises Mismatch where readtorch's shows something else."""
    if not _sides:
        _sides.extend((Side("torch"), Side("readtorch")))
    shown = []
    for source in cells:
        theirs, ours = (side.run(source) for side in _sides)
        if theirs != ours:
            raise Mismatch(f"PyTorch shows\n{theirs}\nand readtorch\n{ours}")
        shown.append(theirs)
    return "".join(shown)


def cells_before(count: int) -> list[str]:
    """The text of the cells that ran before this one."""
    try:
        from IPython import get_ipython
    except ImportError:
        get_ipython = lambda: None
    shell = get_ipython()
    if shell is None:
        raise RuntimeError("show.same compares the cells before it: it works in a notebook")
    return shell.user_ns["In"][-1 - count : -1]


def how(cells: int) -> str:
    """What a comparison did, for the reader who opens its line."""
    if not cells:
        return "This cell asserted it, and would have failed otherwise."
    which = "The cell above has" if cells == 1 else f"The {cells} cells above have"
    return (
        f"{which} run once more, with <code>import readtorch as torch</code>. What both libraries print, the value of the last "
        "expression and the error are the same text; otherwise this cell would have failed."
    )
