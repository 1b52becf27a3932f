"""Run one program with PyTorch and with readtorch and compare every line that it prints.

    def test_names():
        def program(T, show):
            net = T.nn.Linear(2, 3)
            show([n for n, _ in net.named_parameters()])
            show.error(lambda: net.nothing)
        same(program)

`show(*values)` records their text; `show.error(fn)` records type and text of the exception that `fn` raises;
`show.warnings(fn)` the warnings; `show.numbers(*tensors)` the elements, which are compared with a tolerance.
A tensor that is an argument of `show` itself is compared as it prints. Objects of readtorch call themselves `readtorch.…` where PyTorch's say `torch.…`.
"""

import difflib
import re
import warnings

import numpy as np
import torch

import readtorch
import readtorch.nn
import readtorch.optim
from tests.reference import FUSES


class Show:
    def __init__(self):
        self.lines = []
        self.arrays = []

    def __call__(self, *values):
        text = " ".join(str(v) for v in values)
        text = re.sub(r"\breadtorch\b", "torch", text)
        self.lines.append(re.sub(r" at 0x[0-9a-f]+", " at ADDRESS", text))

    def numbers(self, *tensors):
        for tensor in tensors:
            self(None if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}")
            self.arrays.append(np.array([] if tensor is None else tensor.detach().double().tolist()))

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
            if issubclass(w.category, RuntimeWarning):  # NumPy's remarks on inf and nan, which readtorch silences
                continue
            text = str(w.message).partition(" (Triggered internally")[0]  # a line of PyTorch's C++
            self(w.category.__name__ + ":", text)


def run(program, T):
    show = Show()
    T.manual_seed(0)
    program(T, show)
    return show


def same(program, rtol=1e-5):
    """Assert that `program(T, show)` shows the same for T = torch and T = readtorch, and shows something."""
    expected, ours = run(program, torch), run(program, readtorch)
    assert expected.lines
    difference = "\n".join(difflib.ndiff(expected.lines, ours.lines))
    assert not re.search("^[-+?]", difference, re.MULTILINE), difference
    rtol = rtol or (0 if FUSES else 1e-5)
    for theirs, mine in zip(expected.arrays, ours.arrays):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=rtol)
