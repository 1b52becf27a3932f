"""A scalar function of `aten/native/math.py` as a compiled loop over flat arrays of float32, or of 16-bit floats computed in float32.

    loop_over(f.elu, 1, 3)(x, negative, positive, inside, out)      out = f.elu(x, (negative, positive, inside))

The text of a scalar function is the same for all who call it. Here `aten/cpu/vec/vector_math.py` stands in the place of its
`math`, and its body in the place of the call, so that LLVM makes vector instructions of the loop.

In PyTorch: `cpu_kernel_vec` in `aten/src/ATen/native/cpu/Loops.h`, which is given every function twice: for one element, and
for a vector of them.
"""

import functools
import types

from numba import njit

from readtorch.aten.codegen import compile_function
from readtorch.aten.cpu import vec
from readtorch.aten.cpu.compile import COMMON, scalar, shared_stamp
from readtorch.aten.cpu.vec import vector_math
from readtorch.aten.cpu.vec.interleave import interleave
from readtorch.aten.cpu.vec.vec_convert import CONVERSIONS
from readtorch.aten.native import math as functions
from readtorch.c10.codecache import file_digest, keep
from readtorch.c10.cuda.compile import Intrinsic
from readtorch.c10.global_names import names_in, uses


@functools.cache
def loop_over(function, arrays, numbers=0, read=None, write=None):
    """The loop of `function` over so many arrays, with so many scalars; its last argument is the result.

    For elu it writes:

        def elu(x0, s0, s1, s2, out):
            for i in range(out.size):
                out[i] = element(x0[i], (s0, s1, s2,))
                interleave()

    The last line stands in loops whose function uses `math`: see Note [ Several vectors at a time ].
    read, write: "bfloat16" or "float16" if the arrays, or the result, are of it and given as np.uint16. Then it says
    `out[i] = to_bfloat16(element(from_bfloat16(x0[i]), …))`: one pass, and each element is rounded once.
    """
    xs, scalars = [f"x{k}" for k in range(arrays)], [f"s{k}" for k in range(numbers)]
    names = {"element": cpu_form(function), "interleave": interleave, "__name__": __name__}
    each = [f"from_{read}({x}[i])" if read else f"{x}[i]" for x in xs]
    numbers_of_all = f"({''.join([f'{s}, ' for s in scalars]).rstrip()})"
    value = f"element({', '.join([*each, numbers_of_all])})"
    lines = [f"out[i] = to_{write}({value})" if write else f"out[i] = {value}"]
    lines += ["interleave()"] * uses(function, functions.math)
    source = f"def {function.__name__}({', '.join([*xs, *scalars, 'out'])}):\n    for i in range(out.size):\n"
    source += "".join([f"        {line}\n" for line in lines])
    loop = compile_function(function.__name__, source, names | CONVERSIONS)
    loop.__code__ = loop.__code__.replace(co_filename=__file__)  # by which a compiled loop is found again
    return keep(njit(**COMMON)(loop), stamp, source=source)


def convert(x, scalars):
    """For a loop that only reads and writes."""
    return x


@functools.cache
def stamp():
    """Changes with the functions of elements, with this file, and with what the loops are compiled with."""
    return file_digest(functions.__file__), file_digest(__file__), shared_stamp()


@functools.cache
def cpu_form(function, compile=scalar):
    """`function`, and what it calls, for compiled loops. compile: what makes a numba function of a plain one."""
    used = names_in(function.__code__) & function.__globals__.keys()
    names = {name: _value(function.__globals__[name], compile) for name in used}
    remade = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    remade.__module__ = __name__
    return compile(remade)


def _value(value, compile):
    if value is functions.math:
        return vector_math
    if value is functions.logistic:
        return vec.sigmoid  # with a quicker exp: 1 + eˣ feels no difference
    if isinstance(value, Intrinsic):
        return value.simulated  # a function of NumPy
    return cpu_form(value, compile) if isinstance(value, types.FunctionType) else value
