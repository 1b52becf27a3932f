"""Writes a group's loop as text for the CPU, and has numba compile it.

    flat_source     all operands lie flat and have one shape (or are single numbers): one loop
    rows_source     anything else, brought to rows by placement.py, and what ends in a reduction: two loops

The text is a module of its own. It is executed as it is written here; a file with it is kept to be read, and
the machine code beside it, so that a group is compiled once on a machine: `cache_directory()` says where.

In PyTorch: `torch/csrc/jit/tensorexpr/llvm_codegen.cpp` makes LLVM instructions directly; `torch.compile`
writes C++ text (`torch/_inductor/codegen/cpp.py`) and keeps it in the same manner.
"""

import functools
import hashlib
import linecache
import os
import pathlib
import sys
import threading
import types

from readtorch.aten.native import math as functions
from readtorch.c10 import cache_dir_utils
from readtorch.c10.global_names import uses

HEAD = '''"""A fused kernel, written by readtorch. See readtorch/csrc/jit/tensorexpr/llvm_codegen.py."""
from math import inf, nan  # noqa: F401

from numpy import bool_ as b1, empty, float32 as f32, float64 as f64, int32 as i32, int64 as i64  # noqa: F401
from numba import njit  # noqa: F401

from readtorch.aten.cpu.compile import kernel
from readtorch.csrc.jit.tensorexpr.cpu_functions import {names}
'''


def flat_source(nest, singles):
    """One loop over flat arrays. singles: numbers of the inputs that have one element for all."""
    loads = [_load(i, x, "[()]" if i in singles else "[i]") for i, x in enumerate(nest.inputs) if x.is_tensor]
    outside = [load for i, load in zip(_tensor_numbers(nest), loads) if i in singles]
    inside = [load for i, load in zip(_tensor_numbers(nest), loads) if i not in singles]
    outputs = [f"out{k}" for k in range(len(nest.outputs))]
    lines = [f"def fused({', '.join([x.name for x in nest.inputs] + outputs)}):"]
    lines += [f"    {line}" for line in outside] + [f"    for i in range({outputs[0]}.size):"]
    lines += [f"        {line}" for line in inside + _assignments(nest)]
    lines += [f"        {name}[i] = {output.name}" for name, output in zip(outputs, nest.outputs)]
    lines += [f"        {line}" for line in _remark(nest)]
    return module_text(nest, lines)


def rows_source(nest, layout):
    """Loops over `rows` rows of `n` elements. layout: for each tensor input "full", "row", "column" or
    "one"."""
    plain = {i: kind for i, kind in zip(_tensor_numbers(nest), layout)}
    outputs = [f"out{k}" for k in range(len(nest.outputs))]
    reduced = [k for k, output in enumerate(nest.outputs) if output.reduction]
    lines = [f"def fused({', '.join([x.name for x in nest.inputs] + outputs)}, rows, n):"]
    lines += [f"    {_load(i, nest.inputs[i], '[()]')}" for i, kind in plain.items() if kind == "one"]
    lines += [f"    part{k} = empty(min(n, STEP), {nest.outputs[k].code})" for k in reduced]
    lines += ["    for i in range(rows):"]
    lines += [f"        {_load(i, nest.inputs[i], '[i]')}" for i, kind in plain.items() if kind == "column"]
    lines += [f"        y{i} = x{i}[i]" for i, kind in plain.items() if kind == "full"]
    lines += [f"        y{i} = x{i}" for i, kind in plain.items() if kind == "row"]
    lines += [f"        line{k} = out{k}[i]" for k in range(len(outputs)) if k not in reduced]
    walked = [i for i, kind in plain.items() if kind in ("full", "row")]
    loads = [f"v{i} = y{i}[j]" for i in walked]
    if reduced:
        lines += _reducing(nest, reduced, walked, loads)
    else:
        lines += ["        for j in range(n):"] + [f"            {line}" for line in loads + _assignments(nest)]
        lines += [f"            line{k}[j] = {output.name}" for k, output in enumerate(nest.outputs)]
        lines += [f"            {line}" for line in _remark(nest)]
    return module_text(nest, lines, any(o.reduction for o in nest.outputs))


def _reducing(nest, reduced, walked, loads):
    """The inner loops of reductions: a piece of the row goes into `part`, then it is added up."""
    start = {"amax": "-inf"}
    lines = [f"        total{k} = {start.get(nest.outputs[k].reduction, '0.0')}" for k in reduced]
    lines += ["        for begin in range(0, n, STEP):", "            few = min(STEP, n - begin)"]
    lines += [f"            z{i} = y{i}[begin:begin + few]" for i in walked]
    lines += [
        f"            piece{k} = line{k}[begin:begin + few]" for k in range(len(nest.outputs)) if k not in reduced
    ]
    body = [load.replace("= y", "= z") for load in loads] + _assignments(nest)
    body += [f"{f'part{k}' if k in reduced else f'piece{k}'}[j] = {o.name}" for k, o in enumerate(nest.outputs)]
    body += _remark(nest)
    lines += ["            for j in range(few):"] + [f"                {line}" for line in body]
    for k in reduced:
        one = f"greatest_of(part{k}[:few])" if nest.outputs[k].reduction == "amax" else f"sum_of(part{k}[:few])"
        lines.append(
            f"            total{k} = "
            + (f"maximum(total{k}, f64({one}), ())" if "great" in one else f"total{k} + {one}")
        )
    return lines + [f"        out{k}[i] = total{k}" for k in reduced]


def _tensor_numbers(nest):
    return [i for i, x in enumerate(nest.inputs) if x.is_tensor]


def _load(i, x, index):
    return f"v{i} = {x.name}{index}"


def _assignments(nest):
    return [f"{a.target} = {a.text}  # {a.node.kind()}" for a in nest.assignments]


def _remark(nest):
    """The last line of a loop. See Note [ Several vectors at a time ]."""
    called = [getattr(functions, name, None) for name in nest.functions]
    use_math = any([uses(f, functions.math) for f in called if isinstance(f, types.FunctionType)])
    return ["interleave()"] if use_math else []


def module_text(nest, lines, reduces=False):
    """The text of a module with this function."""
    names = nest.functions | ({"sum_of", "greatest_of", "maximum", "STEP"} if reduces else set())
    names |= {"interleave"} if _remark(nest) else set()
    return HEAD.format(names=", ".join(sorted(names) or ["copy"])) + "\n\n@kernel\n" + "\n".join(lines) + "\n"


# -------------------------------------------------------------------------------------------------- compiling


_compiling = threading.RLock()


def cache_directory():
    """Where fused kernels are kept: READTORCH_FUSER_CACHE, or where all kernels are. None: nowhere."""
    chosen = bool(os.environ.get("READTORCH_FUSER_CACHE"))
    return (
        cache_dir_utils.cache_directory("READTORCH_FUSER_CACHE", itself=True)
        if chosen
        else cache_dir_utils.cache_directory()
    )


@functools.cache
def compiled(source):
    """The kernel that `source` defines. Equal texts are one kernel, in this process and on this machine."""
    from readtorch.c10.codecache import keep  # it imports numba

    name = f"fused_{hashlib.sha256((source + functions_stamp()).encode()).hexdigest()[:20]}"
    directory = cache_directory()
    file = f"<{name}>" if directory is None else str(directory / f"{name}.py")
    if directory is not None and not os.path.lexists(file):
        cache_dir_utils.write(file, source.encode())
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    module = sys.modules[name] = types.ModuleType(name)
    module.__file__ = file
    exec(compile(source, file, "exec"), vars(module))
    return keep(module.fused, functions_stamp, cache_directory, source)


def disable_compile(kernel):
    """Let calls for types that `kernel` has not been compiled for raise TypeError. (numba's `disable_compile` does that only
    after the first types.)"""
    with _compiling:  # another thread may be compiling it
        kernel._can_compile = False


def compile_for(kernel, arguments):
    """Compile for the types of these arguments. A call for other types that another thread makes meanwhile raises RuntimeError."""
    from numba import typeof

    with _compiling:
        kernel._can_compile = True
        try:
            kernel.compile(tuple([typeof(a) for a in arguments]))
        finally:
            kernel._can_compile = False


@functools.cache
def functions_stamp():
    """Changes when the scalar functions do, or what kernels import: then kernels are compiled anew."""
    from readtorch.aten.cpu.compile import shared_stamp  # it imports numba

    package = pathlib.Path(__file__).parents[3]
    parts = ("math.py", "cpu/loops.py", "cpu/sum_kernel.py")
    files = [package / "aten/native" / part for part in parts] + [package / "_inductor/codegen/numba_prefix.py"]
    texts = [file.read_text(encoding="utf8") for file in files]
    return repr(shared_stamp()) + "".join(texts)
