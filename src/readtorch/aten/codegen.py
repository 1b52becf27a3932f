"""Turns generated source text into functions that can be read, stepped through and quoted like any other.

In PyTorch: `torchgen/gen.py` writes such functions to C++ files before the compiler runs, from templates
(`torchgen/code_template.py`); here they are made at import, or when first needed.
Explained in the chapter "From a schema to code".
"""

import functools
import linecache
from itertools import count

_numbers = count(1)  # functions share names, and a traceback must find the right text


def compile_function(name, source, names):
    """The function `name` that `source` defines, with `names` as its globals."""
    exec(_compile(name, source), names)
    return names[name]


def compile_binding(name, source, names):
    """Like `compile_function` for a text that defines `binding`: hundreds of operators share the same few texts."""
    function = compile_function("binding", source, names)
    function.__name__ = function.__qualname__ = name
    return function


@functools.cache
def _compile(name, source):
    """The code of a text, and the text where `inspect` and tracebacks look for it. Equal texts are compiled once."""
    filename = f"<readtorch generated {next(_numbers)}: {name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return compile(source, filename, "exec")
