"""torch.library: the same programs on both sides, and what they print. `T` is torch or readtorch."""

import re
import warnings

import pytest
import torch

import readtorch as rt
from tests.library_programs import PROGRAMS

SIDES = {"torch": torch, "readtorch": rt}


def said(T, program):
    """The lines that a program says: `say(f)` notes what f() gives, warnings and errors included."""
    lines = []

    def say(what):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                lines.append(repr(what() if callable(what) else what))
            except Exception as error:
                lines.append(f"{type(error).__name__}: {error}")
        lines.extend(f"{w.category.__name__}: {w.message}" for w in caught)

    program(T, say)
    return [alike(line) for line in lines]


def alike(line):
    """Without the libraries' names, places in files, addresses, and the keys that only PyTorch has."""
    line = line.replace("torch._tensor.Tensor", "torch.Tensor").replace("readtorch", "torch")
    line = re.sub(r"torch\._tensor\.Tensor", "torch.Tensor", line)
    line = re.sub(r"torch\.c10\.(scalar_type|device)\.", "torch.", line)
    line = re.sub(r" \(Triggered internally at .*?\)", "", line, flags=re.S)
    line = re.sub(r"<module '([\w.]+)' from '[^']*'>", r"<module '\1'>", line)
    line = re.sub(r"0x[0-9a-f]+", "0x", line)
    line = re.sub(r"<(torch\.autograd\.function\.)?(\w+) object", r"<\2 object", line)
    line = re.sub(r"(available for these backends: |Available functions are ).*", r"\1", line, flags=re.S)
    line = re.sub(r"The valid types are: dict_keys.*?\]\)", "The valid types are", line, flags=re.S)
    line = re.sub(r'^(\w+): .*INTERNAL ASSERT FAILED at "[^"]*":\d+, please report a bug to PyTorch\. ', r"\1: ", line)
    line = re.sub(r"(previous|new) kernel: .*", r"\1 kernel", line)
    return line


@pytest.fixture(autouse=True)
def every_warning_of_the_reference():
    torch.set_warn_always(True)  # as tests/conftest.py does for readtorch
    yield
    torch.set_warn_always(False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_say_the_same(name):
    assert said(rt, PROGRAMS[name]) == said(torch, PROGRAMS[name])
