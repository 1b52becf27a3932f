"""The machine of scripted functions: its instructions are those of readtorch and of PyTorch, its results those of Python."""

import io
import linecache
import pickle
import warnings
import zipfile

import pytest
import torch

import readtorch as rt
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.viz.figures import script_machine
from readtorch.viz.figures.script_machine import PROGRAMS

REGISTERS = ("LOAD", "MOVE", "STORE", "STOREN", "DROPR")
EACH = pytest.mark.parametrize("program", PROGRAMS)


def functions_of(program):
    """The functions of a program, with a text that a compiler finds."""
    source = "\n".join(PROGRAMS[program][0]) + "\n"
    file, names = f"<script_machine {program}>", {"__name__": __name__}
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    exec(compile(source, file, "exec"), names)
    return names


def listed(code):
    """Instructions as the figure writes them, and what their operators are called."""
    lines = [line.split(" # ") for line in str(code).splitlines()]
    instructions = "; ".join(line[0].strip().split(" ", 1)[1] for line in lines)
    operators = [line[1].split("aten::")[1].split("(")[0] for line in lines if len(line) > 1 and "aten::" in line[1]]
    return instructions, operators


def meant(instructions, constants, operators, first):
    """With registers counted from `first`, and what is meant in place of its number: PyTorch's order is another one."""
    places = {
        "LOADC": lambda x: constants[x],
        "OP": lambda x: operators[x],
        **dict.fromkeys(REGISTERS, lambda x: x - first),
    }
    return [(name, places[name](x) if name in places else x, n) for name, x, n in instructions]


@EACH
def test_the_instructions_are_those_of_readtorch(program):
    functions = functions_of(program)
    for name, shown in PROGRAMS[program][1].items():
        code = Code(rt.jit.script(functions[name]).graph, name)
        assert (shown.instructions, shown.operators) == listed(code)
        assert shown.constants == list(code.constants) and shown.functions == [one.name for one in code.functions]


@pytest.mark.parametrize("program", ["doubled", "at_most"])
def test_the_instructions_are_those_of_pytorch(program):
    """A file for phones has them, of a method: register 1 is the module's, so n is in register 2, and in ours in 0."""
    source, functions = PROGRAMS[program]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        module = type(program, (torch.jit.ScriptModule,), {"__module__": __name__})()
        module.define(("\n".join(source) + "\n").replace(f"def {program}(", "def forward(self, "))
        written = module._save_to_buffer_for_lite_interpreter()
    _, (_, parts, _) = pickle.loads(zipfile.ZipFile(io.BytesIO(written)).read("archive/bytecode.pkl"))
    parts, ours = dict(parts), functions[program]
    operators = [name.removeprefix("aten::") for name, *_ in parts["operators"]]
    theirs = meant(parts["instructions"], parts["constants"], operators, first=2)
    assert theirs[:2] == [("STOREN", -1, 2), ("DROPR", -1, 0)]  # self and n
    assert [("STORE", 0, 0), *theirs[2:]] == meant(ours.parsed, ours.constants, ours.operators, first=0)


@EACH
@pytest.mark.parametrize("n", range(6))
def test_the_result_is_that_of_python_and_of_pytorch(program, n):
    function = functions_of(program)[program]
    wanted = getattr(torch.jit.CompilationUnit("\n".join(PROGRAMS[program][0]) + "\n"), program)(n)
    result = script_machine.FIGURE.result(program=program, n=n)
    assert result["steps"][-1]["stack"] == [str(wanted)] == [str(function(n))]
    assert not result["steps"][-1]["frames"] and len(result["steps"]) == len(result["say"])
