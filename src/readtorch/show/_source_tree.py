"""PyTorch's repository beside the book, for the `.cpp` and `.cu` files that no wheel ships.

`make pytorch-source` brings it (`tools/pytorch_source.py`), or READTORCH_PYTORCH_SOURCE names a checkout. Its release may be an
older one than the installed reference: a quotation says which.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from readtorch.show import _generated

SETTING = "READTORCH_PYTORCH_SOURCE"


@dataclass(frozen=True)
class Tree:
    """A folder with PyTorch's source, and the release that it is."""

    folder: Path
    release: str


class NoTree(LookupError):
    """A file that only PyTorch's repository has, and no repository here."""


@cache
def tree() -> Tree | None:
    """The checkout that the environment names, else the one that was brought; None without either."""
    named = os.environ.get(SETTING)
    folder = Path(named) if named else _generated.kept() / "source"
    try:
        text = (folder / "version.txt").read_text(encoding="utf8")
    except OSError:
        if named:
            raise LookupError(f"{SETTING}={named} has no version.txt: it should name a checkout of PyTorch") from None
        return None
    return Tree(folder, re.match(r"[\d.]+\d", text)[0])  # the tag v2.6.0 says 2.6.0a0


def file(path: str) -> tuple[Path, str]:
    """A file of the tree and the tree's release. NoTree without a tree, LookupError if this one has no such file."""
    found = tree()
    if found is None:
        raise NoTree(f"{path} is in PyTorch's repository only: `make pytorch-source` brings it")
    if not (found.folder / path).exists():
        raise LookupError(f"PyTorch {found.release} has no file {path}")
    return found.folder / path, found.release
