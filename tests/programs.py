"""Run one program with PyTorch and with readtorch and compare every line that it prints.

    def test_names():
        def program(T, show):
            net = T.nn.Linear(2, 3)
            show([n for n, _ in net.named_parameters()])
            show.error(lambda: net.nothing)
        same(program)

`show(*values)` records their text; `show.error(fn)` records type and text of the exception that `fn` raises;
`show.warnings(fn)` the warnings. Objects of readtorch call themselves `readtorch.…` where PyTorch's say `torch.…`.
"""
import difflib
import re
import warnings

import torch

import readtorch
import readtorch.nn
import readtorch.optim


class Show:
    def __init__(self):
        self.lines = []

    def __call__(self, *values):
        text = " ".join(str(v) for v in values)
        text = re.sub(r"\breadtorch\b", "torch", text)
        self.lines.append(re.sub(r" at 0x[0-9a-f]+", " at ADDRESS", text))

    def error(self, function):
        try:
            result = function()
        except Exception as e:
            self(type(e).__name__ + ":", e)
        else:
            self("no error:", type(result).__name__)

    def warnings(self, function):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            function()
        for w in caught:
            text = str(w.message).partition(" (Triggered internally")[0]  # a line of PyTorch's C++
            self(w.category.__name__ + ":", text)


def lines_of(program, T):
    show = Show()
    T.manual_seed(0)
    program(T, show)
    return show.lines


def same(program):
    """Assert that `program(T, show)` shows the same for T = torch and T = readtorch, and shows something."""
    expected = lines_of(program, torch)
    assert expected
    difference = "\n".join(difflib.ndiff(expected, lines_of(program, readtorch)))
    assert not re.search("^[-+?]", difference, re.MULTILINE), difference
