"""The functions of the package that a program runs, each with its lines and the chapter that explains it.

PyTorch has no such file. See the page "The core", which lists them for a small training script; a test keeps that list from
growing unnoticed.

A function belongs to the chapter that its docstring cites; if that cites none, its class's, its module's or its package's.
Code that was generated belongs to the chapter of the module that has written it.
"""

from __future__ import annotations

import gc
import inspect
import linecache
from dataclasses import dataclass

from readtorch.show import _citations

from .docstrings import first_sentence
from .watch_calls import GENERATED, PACKAGE, file_name, in_package, plain_name, watch_calls

INLINED = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")  # part of the function that they stand in
WRITERS = {"aten": "aten.codegen", "csrc/autograd": "csrc.autograd.gen_variable_type"}


@dataclass(frozen=True)
class CoreFunction:
    """``file``: below ``src/readtorch``, or "generated". ``first``, ``last``: its lines there. ``about``: what the file is for."""

    file: str
    name: str
    first: int
    last: int
    chapter: str | None
    about: str

    @property
    def key(self) -> str:
        return f"{self.file} {self.name}"


def record_core(call, warm=2) -> list[CoreFunction]:
    """Run ``call()`` ``warm`` times, then once more: the functions of the package that this run enters, in their order.

    The runs before leave out what happens only once: writing functions, making schemas, filling caches.
    """
    for _ in range(warm):
        call()
    entered = {}

    def on_call(frame):
        if frame.f_code not in entered and frame.f_code.co_name not in INLINED and in_package(frame.f_code):
            entered[frame.f_code] = place(frame)

    gc.collect()
    collects = gc.isenabled()
    gc.disable()  # what it calls belongs to no line of the program
    try:
        watch_calls(call, on_call)
    finally:
        if collects:
            gc.enable()
    texts = Docstrings()
    functions = [
        CoreFunction(file, name, first, last, texts.chapter(module, name), texts.about(module))
        for file, name, first, last, module in entered.values()
    ]
    return list({function.key: function for function in functions}.values())


def place(frame):
    """(file, name, first line, last line, the module that explains it)"""
    code = frame.f_code
    if code.co_filename.startswith(GENERATED):
        lines = linecache.getlines(code.co_filename)
        return "generated", generated_name(frame, lines[0]), 1, len(lines), WRITERS[room_of_generated(frame)]
    lines, first = inspect.getsourcelines(code)
    file = file_name(code)
    return file, plain_name(code), first, first + len(lines) - 1, file.removesuffix(".py").replace("/", ".")


def generated_name(frame, definition):
    """A node's `apply` is known by its class, everything else by its signature: operators share texts."""
    if frame.f_code.co_name == "apply":
        return f"{type(frame.f_locals['self']).__name__}.apply"
    return definition.strip().removeprefix("def ").removesuffix(":")


class Docstrings:
    """What the package's docstrings say."""

    def __init__(self):
        self.texts = {d.owner: d.text for d in _citations.docstrings(PACKAGE)}

    def chapter(self, module, name) -> str | None:
        """The chapter that is cited next to a function, from the inside to the outside."""
        owner = f"{owner_of(module)}.{name}"
        while owner:
            cited = _citations.titles(self.texts.get(owner, ""))
            if cited:
                return cited[0]
            owner = owner.rpartition(".")[0]
        return None

    def about(self, module) -> str:
        return first_sentence(self.texts.get(owner_of(module), ""))


def owner_of(module) -> str:
    """ "utils.data.__init__" -> "readtorch.utils.data" """
    return f"{PACKAGE.name}.{module}".removesuffix(".__init__")


def room_of_generated(frame) -> str:
    """Calls and bindings are aten's; what notes or walks the graph was written by csrc/autograd."""
    return "csrc/autograd" if "NO_EDGE" in frame.f_globals else "aten"
