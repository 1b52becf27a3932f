"""The mutation table: each program as it is, compiled here, and compiled by PyTorch with backend="eager".

.venv/bin/python -m tests.dynamo.table [NAME …]     runs PyTorch's half anew and writes table.json
"""

import contextlib
import io
import json
import logging
import random
import sys
import warnings
from pathlib import Path

import numpy as np

import readtorch
from readtorch._dynamo import eval_frame
from readtorch._dynamo.exc import TorchDynamoException
from readtorch._dynamo.utils import counters
from tests.dynamo import further_programs, higher_order_programs, nasty_programs, searching_programs  # noqa: F401  their programs are among PROGRAMS
from tests.dynamo.programs import PROGRAMS

RECORD = Path(__file__).with_name("table.json")


def plain(value):
    """What is compared of a result."""
    if hasattr(value, "detach"):
        numbers = [complex(a) for a in value.detach().reshape(-1).tolist()]
        shown = [(round(z.real, 4), round(z.imag, 4)) for z in numbers]
        kind = str(value.dtype).removeprefix("readtorch").removeprefix("torch")
        return ["tensor", kind, list(value.shape), bool(value.requires_grad), shown]
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    return value


def play(program, lib, compile):
    """(the results that it notes, what it prints). An error ends it."""
    notes, text = [], io.StringIO()
    random.seed(0), np.random.seed(0), lib.manual_seed(0)
    with contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program(lib, compile, lambda value: notes.append(plain(value)))
        except Exception as error:
            notes.append(["ERROR", type(error).__name__, str(error)[:300]])
        finally:
            lib.set_grad_enabled(True)
            lib.set_default_dtype(lib.float32)
    return json.loads(json.dumps(notes, default=str)), text.getvalue()


def as_written(program, lib=readtorch):
    return play(program, lib, lambda f: f)


def compiled_here(program, fullgraph=False):
    """(notes, what was printed), and how many graphs, breaks and recompilations there were."""
    counters.clear()
    reached = play(program, readtorch, lambda f: eval_frame.optimize_call(f, backend="eager", fullgraph=fullgraph))
    return reached, {
        "graphs": counters["stats"]["unique_graphs"],
        "breaks": sum(counters["graph_break"].values()),
        "recompiles": sum(counters["recompiles"].values()),
        "as_written": sum(counters["skipped"].values()),
    }


def compiled_by_torch(program, fullgraph=False):
    import torch

    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    torch._dynamo.utils.clear_compilation_metrics()
    reached = play(program, torch, lambda f: torch.compile(f, backend="eager", fullgraph=fullgraph))
    found = torch._dynamo.utils.counters
    metrics = torch._dynamo.utils.get_compilation_metrics()
    return reached, {
        "graphs": found["stats"].get("unique_graphs", 0),
        "breaks": sum(found["graph_break"].values()),
        "recompiles": sum(bool(each.recompile_reason) for each in metrics),
    }


def raised_by_the_compiler(notes):
    """Whether a run with fullgraph=True ended by an error that the program itself has not."""
    return any(note[0] == "ERROR" and note[1] in COMPILER_ERRORS for note in notes if isinstance(note, list) and note)


COMPILER_ERRORS = {
    "Unsupported",
    "TorchRuntimeError",
    "InternalTorchDynamoError",
    "UserError",
    "FailOnRecompileLimitHit",
}
COMPILER_ERRORS |= {cls.__name__ for cls in TorchDynamoException.__subclasses__()} | {"AssertionError"}


def record(names):
    import torch

    rows = json.loads(RECORD.read_text(encoding="utf8")) if names else {}
    for name in names or PROGRAMS:
        program = PROGRAMS[name]
        expected = as_written(program, torch)
        reached, counts = compiled_by_torch(program)
        full, _ = compiled_by_torch(program, fullgraph=True)
        rows[name] = counts | {"equal": reached == expected, "fullgraph": not raised_by_the_compiler(full[0])}
        print(name, rows[name], file=sys.stderr)
    RECORD.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf8")


def rows():
    """(name, what PyTorch does, whether ours equals eager, our counts, whether ours passes with fullgraph)"""
    theirs = json.loads(RECORD.read_text(encoding="utf8"))
    for name, program in PROGRAMS.items():
        expected = as_written(program)
        reached, counts = compiled_here(program)
        full, _ = compiled_here(program, fullgraph=True)
        yield name, theirs[name], reached == expected, counts, not raised_by_the_compiler(full[0])


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    record(sys.argv[1:])
