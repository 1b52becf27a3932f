"""The real C++ stack of a call: PyTorch prints it with any error when TORCH_SHOW_CPP_STACKTRACES is set.

Nothing of it is written down in a chapter: the program runs when the page is built, and what it prints is shown.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache

FRAME = re.compile(r"^#\d+ (.*) from (\S*?)(?::(\d+))?$", re.M)
PROGRAM = """
import torch
try:
{}
except Exception as error:
    print(error)
else:
    raise SystemExit("the program raises no error, and only errors show their stack")
"""
# Frames that every stack has and nobody asks about: how an error is made, how the dispatcher unwraps a functor, the C library.
PLUMBING = re.compile(
    r"^(?:c10::Error::|c10::detail::torchCheckFail|std::|_start$|__libc_start|c10::impl::wrap_kernel_functor|c10::impl::make_boxed"
    r"|c10::detail::torchInternalAssertFail|c10::(\w*Error)::\1$)"
)
PYTHON = re.compile(
    r"^(?:_?Py[A-Z]\w*|pymain_\w+|run_\w+|do_call_core|cfunction_\w+|method_vectorcall\w*|binary_op1|main|slot_tp_call|vectorcall_\w+)$"
)


class NoNames(LookupError):
    """Nothing on this machine turns addresses into the names of functions."""


@dataclass(frozen=True)
class Frame:
    """One function of a stack, without its arguments."""

    name: str  # as a reader would write it: torch::autograd::Engine::execute
    full: str  # as the symbol says it, arguments and all


@cache
def frames(program: str, python: bool = False) -> tuple[Frame, ...]:
    """The stack in which a program's error arises, the outermost call first.

    program: statements; `torch` is imported. python: whether the interpreter's own functions are among the frames.
    Raises LookupError where PyTorch prints no stack (a build without symbols), NoNames without the program `addr2line`,
    which PyTorch runs to learn the names of functions that only their own file knows.
    """
    if shutil.which("addr2line") is None:
        raise NoNames("the stack of this call is shown where the program addr2line (of GNU binutils) is installed")
    body = "\n".join(f"    {line}" for line in program.strip().splitlines())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body)],
        capture_output=True,
        text=True,
        env=os.environ | {"TORCH_SHOW_CPP_STACKTRACES": "1"},
    )
    if done.returncode:
        raise LookupError(f"{program!r}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    found = [Frame(plain(match[1]), match[1]) for match in FRAME.finditer(done.stdout)]
    kept = [f for f in found if f.name and not PLUMBING.match(f.name) and (python or not PYTHON.match(f.name))]
    if not kept:
        raise LookupError("this build of PyTorch prints no C++ stack")
    return tuple(reversed(kept))


def plain(symbol: str) -> str:
    """A function's name: without return type, template arguments, parameters and the marks of clones.

    `at::(anonymous namespace)::wrapper_CPU_add_Tensor(at::Tensor const&, …) [clone .isra.0]` is `at::wrapper_CPU_add_Tensor`.
    """
    symbol = (
        re.sub(r"\s*\[clone [^]]*\]", "", symbol)
        .replace("(anonymous namespace)::", "")
        .replace("::operator()", "::operator_call")
    )
    symbol = _without(symbol, "<", ">")
    symbol = _without(symbol, "(", ")").strip()
    symbol = re.sub(r"\s+(?:const|noexcept)$", "", symbol)
    return symbol.split(" ")[-1].replace("::operator_call", "::operator()")


def _without(text: str, opening: str, closing: str) -> str:
    """The text without what stands in brackets."""
    kept, depth = [], 0
    for i, letter in enumerate(text):
        if letter == opening and not text[:i].endswith("operator"):
            depth += 1
        elif letter == closing and depth and text[i - 1] != "-":
            depth -= 1
        elif not depth:
            kept.append(letter)
    return "".join(kept)


def check(names: tuple[Frame, ...], expected: list[str]) -> None:
    """ValueError unless these functions are on the stack, in this order."""
    rest = iter(names)
    for name in expected:
        if not any(f"::{frame.name}".endswith(f"::{name}") for frame in rest):
            stack = ", ".join(frame.name for frame in names)
            raise ValueError(f"{name} is not on the stack, or not in this order: {stack}")
