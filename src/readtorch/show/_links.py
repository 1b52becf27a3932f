"""Permalinks: lines of a file, at the tag or commit that is quoted, on the web."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

import readtorch

PYTORCH = "https://github.com/pytorch/pytorch"


def permalink(file: Path, first: int, last: int) -> tuple[str, str | None]:
    """-> (path from the repository's root, URL of the lines or None)"""
    file = file.resolve()
    if file.is_relative_to(our_root()):
        path = f"src/{file.relative_to(our_root().parent).as_posix()}"
        return path, ours(path, first, last)
    packages = torch_root().parent
    if file.is_relative_to(packages):
        path = file.relative_to(packages).as_posix()
        return path, reference(path, first, last)
    return file.name, None


def our_root() -> Path:
    return Path(next(iter(readtorch.__path__))).resolve()


def checkout() -> Path:
    """The folder of the repository; of an installed package, the folder with what its wheel took along of it."""
    folder = our_root().parents[1]
    return folder if (folder / "_config.yml").exists() else our_root() / "_checkout"


# -- the reference ------------------------------------------------------------------------------


def reference(path: str, first: int, last: int, release: str | None = None) -> str:
    """The lines in PyTorch's repository, at the installed release if no other is named."""
    tag = torch_tag() if release in (None, torch_release()) else f"v{release}"
    return f"{PYTORCH}/blob/{tag}/{path}{_fragment(first, last)}"


def reference_file(path: str) -> str:
    return f"{PYTORCH}/blob/{torch_tag()}/{path}"


def torch_root() -> Path:
    return Path(_torch().__file__).resolve().parent


def torch_release() -> str:
    return _torch().__version__.split("+")[0]


@cache
def torch_tag() -> str:
    """The release's tag; for a build between releases its commit."""
    release = torch_release()
    return f"v{release}" if re.fullmatch(r"\d+\.\d+\.\d+", release) else _torch().version.git_version


def _torch():
    try:
        import torch
    except ModuleNotFoundError:
        raise LookupError("quoting PyTorch's source needs PyTorch installed: pip install torch==2.13.0") from None
    return torch


# -- ours ---------------------------------------------------------------------------------------


def ours(path: str, first: int, last: int) -> str | None:
    home = repository()
    return home and f"{home}/blob/{_commit()}/{path}{_fragment(first, last)}"


@cache
def repository() -> str | None:
    """Where this checkout is published: as the environment or GitHub's runner says, or where it was cloned from."""
    if "READTORCH_REPOSITORY" in os.environ:
        return os.environ["READTORCH_REPOSITORY"] or None
    if "GITHUB_REPOSITORY" in os.environ:
        return f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{os.environ['GITHUB_REPOSITORY']}"
    remote = _git("remote", "get-url", "origin")
    match = re.fullmatch(r"(?:https://|git@)github\.com[:/]([\w.-]+/[\w.-]+?)(?:\.git)?/?", remote)
    return f"https://github.com/{match[1]}" if match else None


@cache
def _commit() -> str:
    return os.environ.get("GITHUB_SHA") or _git("rev-parse", "HEAD") or "main"


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=our_root(), capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip()


def _fragment(first: int, last: int) -> str:
    return f"#L{first}-L{last}" if last > first else f"#L{first}"
