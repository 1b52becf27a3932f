"""Which globals a function reads: what remakes functions with other globals asks it."""

import dis
import functools
import types


@functools.lru_cache(1024)
def names_in(code):
    """All names that a function looks up outside itself, those in its lambdas and comprehensions too."""
    own = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return own.union(*(names_in(const) for const in code.co_consts if isinstance(const, types.CodeType)))
