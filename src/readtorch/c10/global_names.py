"""Which globals a function reads: for those who remake a function with other globals.

PyTorch has no such file: it compiles kernels from C++ source.
"""

import dis
import functools
import types


@functools.lru_cache(1024)
def names_in(code):
    """All names that a function looks up outside itself, those in its lambdas and comprehensions too."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*(names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)))


@functools.cache
def uses(function, module):
    """Whether a function names `module` as a global, by itself or in a function that it names."""
    named = [function.__globals__.get(name) for name in names_in(function.__code__)]
    return module in named or any([uses(n, module) for n in named if isinstance(n, types.FunctionType)])
