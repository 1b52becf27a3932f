"""The programs of these tests where there is no PyTorch, say under another version of Python: compiled they do what they do as written.

python -m tests.dynamo.without_reference [--counts FILE] [--seeds N] [NAME …]

--counts: where the numbers of graphs, breaks, recompilations and functions left to Python are kept. If the file is there, made
by another Python, they are compared. --seeds: how many random programs of each kind.
"""

import argparse
import copy
import json
import logging
import sys
from pathlib import Path

import readtorch
from readtorch._dynamo import eval_frame
from tests.dynamo import (
    changing_programs,
    comprehension_programs,
    control_fuzz,
    fuzz,
    more_programs,
    shape_fuzz,
    table,
    world_fuzz,
)
from tests.dynamo.models import MODELS, run_of
from tests.jit import mutations


def programs():
    """name -> program(lib, compile, note)"""
    of_more = {
        name: lambda lib, compile, out, program=program: program(compile, out)
        for name, program in more_programs.PROGRAMS.items()
    }
    of_jit = {
        name: lambda lib, compile, out, program=program: out(program(lib, lambda f: compile_any(f, compile)))
        for name, program in mutations.PROGRAMS.items()
    }
    groups = {
        "table": table.PROGRAMS,
        "changing": changing_programs.PROGRAMS,
        "comprehension": comprehension_programs.PROGRAMS,
        "more": of_more,
        "jit": of_jit,
    }
    return {f"{group}.{name}": program for group, found in groups.items() for name, program in found.items()}


def compile_any(function, compile):
    """A module as one: its attributes stay within reach."""
    compiled = compile(function)
    is_module = isinstance(function, readtorch.nn.Module) and compiled is not function
    return eval_frame.OptimizedModule(function, backend="eager") if is_module else compiled


def model_differs(name):
    readtorch.manual_seed(0)
    model, arguments = MODELS[name]()
    mine = copy.deepcopy(model)
    compiled = eval_frame.optimize_call(mine, backend="eager")
    for seed in range(4):
        if seed == 3:
            model.eval(), mine.eval()
        expected, reached = run_of(model, model, arguments, seed), run_of(compiled, mine, arguments, seed)
        if not all(readtorch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(expected, reached, strict=True)):
            return True
    return False


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--counts", type=Path)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    counts, wrong = {}, []
    for name, program in programs().items():
        if options.names and not any(wanted in name for wanted in options.names):
            continue
        reached, counts[name] = table.compiled_here(program)
        if reached != table.as_written(program):
            wrong.append(name)
    if not options.names:
        wrong += [f"model {name}" for name in MODELS if model_differs(name)]
        for kind in (fuzz, world_fuzz, shape_fuzz, control_fuzz):
            wrong += [f"{kind.__name__} {seed}" for seed in range(options.seeds) if kind.differs(seed)]
    print(f"Python {sys.version.split()[0]}: {len(counts)} programs; not as they are written: {wrong or 'none'}")
    if options.counts:
        compare(counts, options.counts)
    sys.exit(bool(wrong))


def compare(counts, path):
    if not path.exists():
        path.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf8")
        return
    others = json.loads(path.read_text(encoding="utf8"))
    different = [name for name in counts if name in others and counts[name] != others[name]]
    for name in different:
        print(f"  {name}: {counts[name]}, there {others[name]}")
    print(f"{len(different)} of {len(counts)} have other numbers than in {path}")


if __name__ == "__main__":
    logging.disable(logging.CRITICAL)
    main()
