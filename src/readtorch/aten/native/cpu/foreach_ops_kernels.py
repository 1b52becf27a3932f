"""A scalar function of `aten/native/math.py` as one loop over lists of tensors.

In PyTorch: `aten/src/ATen/native/ForeachOpsKernels.cpp`, which loops over the tensors' operators;
`ForeachBinaryOpScalar.cu` and others in `aten/src/ATen/native/cuda` have one kernel for the whole list.
"""

import functools

from numba import njit

from readtorch.aten.codegen import compile_function
from readtorch.aten.cpu.compile import COMMON, kernel
from readtorch.c10.codecache import keep

from .loops import cpu_form, stamp
from .multi_tensor_apply import elements, piece


@kernel
def add(addresses, ends, like, scalar, begin, end):
    """The same number to all: counts of steps."""
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            row = elements(addresses[0, i], b, e, like)
            for k in range(row.size):
                row[k] += scalar


@functools.cache
def loop_over_lists(function, lists, inplace):
    """The kernel of `function` for so many lists of inputs and a number for each place; the results go to the first list.

    For lerp_by_number in place it writes:

        def lerp_by_number(addresses, ends, like, numbers, begin, end):
            for i in range(ends.size):
                b, e = piece(ends, i, begin, end)
                if b < e:
                    rows = elements(addresses[0, i], b, e, like), elements(addresses[1, i], b, e, like)
                    one_tensor(*rows, numbers[i])

        def one_tensor(x0, x1, number):
            for k in range(x0.size):
                x0[k] = element(x0[k], x1[k], (number,))
    """
    rows = [f"x{j}" for j in range(lists if inplace else lists + 1)]
    inputs = ", ".join([f"{row}[k]" for row in rows[-lists:]])
    one = f"""def one_tensor({", ".join(rows)}, number):
    for k in range(x0.size):
        x0[k] = element({inputs}, (number,))
"""
    each = ", ".join([f"elements(addresses[{j}, i], b, e, like)" for j in range(len(rows))])
    source = f"""def {function.__name__}(addresses, ends, like, numbers, begin, end):
    for i in range(ends.size):
        b, e = piece(ends, i, begin, end)
        if b < e:
            one_tensor({each}, numbers[i])
"""
    names = {"element": cpu_form(function), "piece": piece, "elements": elements, "__name__": __name__}
    names["one_tensor"] = compiled("one_tensor", one, names, f"{function.__name__}: {one}")
    return compiled(function.__name__, source, names, one + source)


def compiled(name, source, names, whole):
    """A product is added to a number in one rounding, as by PyTorch's vectors. whole: all that the loop is made of."""
    loop = compile_function(name, source, names)
    loop.__code__ = loop.__code__.replace(co_filename=__file__)  # by which a compiled loop is found again
    return keep(njit(fastmath={"contract"}, **COMMON)(loop), stamp, source=whole)
