"""Write what the dispatch calculator knows of both libraries' tables: `src/readtorch/viz/static/models/dispatch_tables.js`.

    .venv/bin/python tools/dispatch_tables.py [--check]

The rows are read from what `_dispatch_dump_table` prints on both sides. The figure's models, in Python and in JavaScript, read the file
that this writes. --check: exit with 1 if the file is not what would be written. Of readtorch's kernels it has the files and no lines, so
that it changes when kernels come, go or move to another file.
"""

import json
import re
import sys
from pathlib import Path

import torch

import readtorch.jit  # noqa: F401  it registers the kernels at Tracer
from readtorch.aten.dispatcher import registry

FILE = Path(__file__).resolve().parents[1] / "src/readtorch/viz/static/models/dispatch_tables.js"
HEAD = "// Rows of both libraries' dispatch tables. Written by tools/dispatch_tables.py, also read by figures/dispatch_calculator.py.\n"

# Keys of a row, in this order.
KEYS = (
    "Undefined CPU CUDA Meta SparseCPU BackendSelect Python Conjugate Negative ADInplaceOrView AutogradCPU AutogradCUDA "
    "AutogradMeta Tracer AutocastCPU AutocastCUDA PythonTLSSnapshot"
).split()

# The operators of the figure: arguments for a call by torch.ops; x is a matrix, v a vector.
OPERATORS = {
    "add.Tensor": "x, x",
    "add_.Tensor": "x, x",
    "add.out": "x, x, out=x",
    "sub.Tensor": "x, x",
    "mul.Tensor": "x, x",
    "mul_.Tensor": "x, x",
    "div.Tensor": "x, x",
    "pow.Tensor_Scalar": "x, 2",
    "square": "x",
    "exp": "x",
    "exp_": "x",
    "relu": "x",
    "relu_": "x",
    "sigmoid": "x",
    "neg": "x",
    "abs": "x",
    "cos": "x",
    "cos_": "x",
    "eq.Tensor": "x, x",
    "view": "x, [4]",
    "reshape": "x, [4]",
    "transpose.int": "x, 0, 1",
    "t": "x",
    "select.int": "x, 0, 0",
    "slice.Tensor": "x, 0, 0, 1",
    "expand": "x, [2, 2]",
    "detach": "x",
    "sum": "x",
    "sum.dim_IntList": "x, [1]",
    "mean": "x",
    "max": "x",
    "cumsum": "x, 0",
    "softmax.int": "x, 1",
    "_softmax": "x, 1, False",
    "mm": "x, x",
    "matmul": "x, x",
    "addmm": "x, x, x",
    "linear": "x, x",
    "dot": "v, v",
    "conv2d": "x[None, None], x[None, None]",
    "dropout": "x, 0.5, True",
    "cat": "[x, x]",
    "clone": "x",
    "copy_": "x, x",
    "contiguous": "x",
    "conj": "x",
    "resolve_conj": "x",
    "zero_": "x",
    "item": "x[0, 0]",
    "empty.memory_format": "[2]",
    "ones": "[2]",
    "randn": "[2]",
    "arange": "3",
}
KINDS = {
    "kernel": "K",
    "default backend kernel": "D",
    "math kernel": "M",
    "autograd kernel": "A",
    "backend fallback": "B",
}


def rows(dump):
    """{operator: {key: [kind, place]}} from a function that prints an operator's table; kinds as in KINDS, fallthrough is F."""
    found = {}
    for name in OPERATORS:
        text = dump(f"aten::{name}")
        if text is not None:
            lines = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
            found[name] = {key: entry(lines[key]) for key in KEYS if key in lines}
    return found


def entry(text):
    kind = "F" if text.startswith("fallthrough") else KINDS[re.search(r"\[([^]]*)\]$", text)[1]]
    return [kind, re.sub(r".*registered at \S*?([\w.]+:\d+) \[.*|.*", r"\1", text).removesuffix(":0")]


def composites():
    """{operator: the operators that its composite kernel calls}, as PyTorch's profiler reports them."""
    return {
        name: calls
        for name, row in rows(torch._C._dispatch_dump_table).items()
        if row.get("CPU", "?")[0] in "MD" and (calls := calls_of(name))
    }


def calls_of(name):
    packet, _, overload = name.partition(".")
    x = torch.ones(2, 2)
    scope = {"x": x, "v": x[0], "f": getattr(getattr(torch.ops.aten, packet), overload or "default")}
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        eval(f"f({OPERATORS[name]})", scope)
    [root] = [event for event in profile.events() if event.cpu_parent is None and event.name == f"aten::{packet}"]
    return [child.name for child in root.cpu_children if child.name.startswith("aten::")]


def text():
    tables = {
        "keys": KEYS,
        "calls": OPERATORS,
        "inner": composites(),
        "fused": fused(),
        "torch": rows(torch._C._dispatch_dump_table),
        "readtorch": rows(ours),
    }
    places = sorted(
        {place for side in ("torch", "readtorch") for row in tables[side].values() for _, place in row.values()}
    )
    for side in ("torch", "readtorch"):
        for name, row in tables[side].items():
            tables[side][name] = " ".join(
                f"{row[key][0]}{places.index(row[key][1])}" if key in row else "-" for key in KEYS
            )
    return f"{HEAD}const DISPATCH_TABLES = {json.dumps(tables | {'places': places}, indent=1)};\n"


def ours(name):
    """The table of an operator of readtorch, without line numbers; None if there is no such operator."""
    return re.sub(r"(\.py):\d+", r"\1:0", registry[name].dump_table()) if name in registry else None


def fused():
    """Compositions that have one kernel for the work of all parts, which serves where nobody would see the parts."""
    found = [registry[f"aten::{name}"] for name in OPERATORS if f"aten::{name}" in registry]
    return [one.name.removeprefix("aten::") for one in found if one.composite is not None and one.kernels]


def main():
    written = text()
    if "--check" in sys.argv:
        sys.exit(
            0
            if FILE.read_text(encoding="utf8") == written
            else f"{FILE.name} is out of date: run tools/dispatch_tables.py"
        )
    FILE.write_text(written, encoding="utf8")


if __name__ == "__main__":
    main()
