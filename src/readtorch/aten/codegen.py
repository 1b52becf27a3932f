"""Turns generated source text into functions that can be read, stepped through and quoted like any other.

In PyTorch: `torchgen` writes such functions to C++ files before the compiler runs; here they are made at import, or when
first needed. Explained in the chapter "One operator call".
"""
import linecache
from itertools import count

_numbers = count(1)  # functions share names, and a traceback must find the right text


def compile_function(name, source, names):
    """The function `name` that `source` defines, with `names` as its globals."""
    filename = f"<readtorch generated {next(_numbers)}: {name}>"
    exec(compile(source, filename, "exec"), names)
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    return names[name]
