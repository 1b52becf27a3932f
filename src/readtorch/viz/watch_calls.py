"""Seeing every Python function that starts while something runs, and quoting its lines."""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
GENERATED = "<readtorch generated"
MOST_LINES = 40


def watch_calls(call, on_call):
    """Run ``call()`` and hand ``on_call`` the frame of every Python function that starts meanwhile."""

    def profile(frame, event, argument):
        if event == "call":
            on_call(frame)

    previous = sys.getprofile()
    sys.setprofile(profile)
    try:
        return call()
    finally:
        sys.setprofile(previous)


@dataclass
class SourceNote:
    """Lines of a function. ``file``: see ``file_name``; ``cut``: lines are missing at the end."""

    name: str
    file: str
    first: int
    lines: list
    cut: bool


def source_note(code) -> SourceNote:
    """The lines of a code object, read from its file, or from linecache when it was generated."""
    everything = linecache.getlines(code.co_filename)
    first = code.co_firstlineno
    last = max((line for _, _, line in code.co_lines() if line), default=first)
    lines = [line.rstrip("\n") for line in everything[first - 1 : last]]
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    shown = [line[indent:] for line in lines[:MOST_LINES]]
    return SourceNote(plain_name(code), file_name(code), first, shown, cut=len(lines) > MOST_LINES)


def plain_name(code) -> str:
    return code.co_qualname.replace(".<locals>", "")


def in_package(code) -> bool:
    return code.co_filename.startswith(GENERATED) or Path(code.co_filename).is_relative_to(PACKAGE)


def file_name(code) -> str:
    """``c10/device.py`` for a file of the package, "cell" in a notebook; otherwise the name alone."""
    if code.co_filename.startswith(GENERATED):
        return "generated"
    path = Path(code.co_filename)
    if path.parent.name.startswith("ipykernel_"):  # its files are named by a number
        return "cell"
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else path.name
