"""Law 9: a file is named as the PyTorch file whose work it does, and its docstring says which one that is."""

import ast
import re
from functools import cache
from pathlib import Path, PurePosixPath

import pytest
import torch

from readtorch.show._citations import files

PACKAGE = Path(__file__).parents[1] / "src" / "readtorch"
INSTALLED = Path(torch.__file__).parent
LONGEST_FUNCTION = 60  # lines
SAME_NAME = 0.70  # of the modules that have a counterpart carry its name

# Rooms and modules that PyTorch has not: nothing to be named after.
NO_COUNTERPART = (
    "viz",  # the widgets of the book
    "show",  # quotations in the book
    "mini",  # the reader's program: a module a chapter
    "c10/cuda/simulator",  # runs kernels without a GPU
    "__main__.py",  # `python -m readtorch`
    "_as_torch.py",  # `import torch` means readtorch
    "_inspect.py",  # what the book asks objects
    "_run.py",  # the command `readtorch`
)
SAYS_SO = "PyTorch has no such file"


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: source is read here, nothing is computed."""


@cache
def modules():
    """{path within the package: syntax tree} of all modules with a counterpart"""
    files = {file.relative_to(PACKAGE): file for file in sorted(PACKAGE.rglob("*.py"))}
    return {path: ast.parse(file.read_text(encoding="utf8")) for path, file in files.items() if has_counterpart(path)}


def has_counterpart(path):
    return not any(path.is_relative_to(room) for room in NO_COUNTERPART)


def cited(tree):
    """The files of PyTorch's repository that a module's docstring names."""
    return [path for path in map(PurePosixPath, files(ast.get_docstring(tree) or "")) if path.suffix]


def plain(name):
    """`ReduceOps`, `reduce_ops` and `_reduce_ops` are one name."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def carries_the_name(path, citations):
    """Whether a module, or a package that it is a part of, is named as a file that it cites."""
    own = {plain(part) for part in (path.stem, *path.parent.parts)}
    if path.stem == "__init__":
        own.add(plain(path.parent.name))
    return any(plain(file.stem) in own for file in citations)


def says_whose_work_it_does(path, tree):
    text = ast.get_docstring(tree) or ""
    folder = path.stem == "__init__" and bool(files(text))
    return folder or bool(cited(tree)) or SAYS_SO in " ".join(text.split())


def test_every_module_names_its_counterpart():
    silent = [str(path) for path, tree in modules().items() if not says_whose_work_it_does(path, tree)]
    assert silent == [], f"say in the docstring which file of PyTorch does this work, or '{SAYS_SO}', and why"


def test_most_modules_carry_its_name():
    same = [path for path, tree in modules().items() if carries_the_name(path, cited(tree))]
    others = [str(path) for path in modules() if path not in same]
    assert len(same) >= SAME_NAME * len(modules()), f"{len(same)} of {len(modules())}; not: {others}"


def test_what_is_cited_is_there():
    """Python files and headers, which the installed reference has. The rest of the repository is not at hand."""
    missing = [f"{path}: {file}" for path, tree in modules().items() for file in cited(tree) if not found(file)]
    assert missing == []


def found(file):
    if file.parts[:1] == ("torch",) and file.suffix == ".py":
        return (INSTALLED.parent / file).exists()
    if file.suffix in (".h", ".hpp", ".cuh") and file.parts[0] in ("torch", "c10", "aten"):
        shipped = PurePosixPath(*file.parts[2:]) if file.parts[:2] == ("aten", "src") else file
        places = (INSTALLED / "include", INSTALLED.parent / "torchgen" / "packaged")
        return any((place / shipped).exists() for place in places) or file.suffix == ".cuh"
    return True


def test_functions_are_short():
    long = [
        f"{path}:{node.lineno} {node.name}: {node.end_lineno - node.lineno + 1} lines"
        for path, tree in modules().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and node.end_lineno - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert long == []


# -- the reader of names reads them right -------------------------------------------------------


def test_names():
    tree = ast.parse(
        '"""Sums. In PyTorch: `aten/src/ATen/native/ReduceOps.{h,cpp}`, `torch/_torch_docs.py`, `torch/nn`."""'
    )
    assert [path.name for path in cited(tree)] == ["ReduceOps.h", "ReduceOps.cpp", "_torch_docs.py"]
    assert carries_the_name(Path("aten/native/reduce_ops.py"), cited(tree))
    assert carries_the_name(Path("aten/native/reduce_ops/sums.py"), cited(tree))
    assert not carries_the_name(Path("aten/native/sums.py"), cited(tree))
    assert found(cited(tree)[2]) and not found(PurePosixPath("torch/sums.py"))
    assert not found(PurePosixPath("c10/core/Sums.h")) and found(PurePosixPath("aten/src/ATen/Dispatch.h"))
