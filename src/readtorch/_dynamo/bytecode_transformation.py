"""A function's instructions, and code that begins in the middle of it.

Note [ What depends on the version of Python ]
The interpreter has a method for each instruction, by its name; `dis` says what an instruction's argument means. What else a
version decides is here: which instructions mean nothing to the interpreter (`NOTHING`), which belong to a call and stand before
it (`BEFORE_CALL`), and how a function is entered in the middle (`prologue`: all jumps of 3.11 are relative, so its code can
stand behind one as it is). Another version is another row of these tables, and methods for the instructions that it adds.

In PyTorch: `torch/_dynamo/bytecode_transformation.py`.
"""

import dis
import functools

NOTHING = ("NOP", "RESUME", "PRECALL", "MAKE_CELL", "COPY_FREE_VARS", "CACHE", "EXTENDED_ARG")
BEFORE_CALL = {"CALL": ("PRECALL", "KW_NAMES")}  # the second only if the call has names

OP = dis.opmap
NAMES_A_CELL = {
    OP[name] for name in ("LOAD_CLOSURE", "LOAD_DEREF", "STORE_DEREF", "DELETE_DEREF", "LOAD_CLASSDEREF") if name in OP
}


@functools.cache
def cleaned_instructions(code):
    """(the instructions without caches and prefixes, offset -> number of the instruction that a jump there means)"""
    every = list(dis.get_instructions(code))
    kept = [i for i in every if i.opname not in ("CACHE", "EXTENDED_ARG")]
    numbers, at = {}, 0
    for instruction in every:
        while at < len(kept) and kept[at].offset < instruction.offset:
            at += 1
        numbers[instruction.offset] = at
    return kept, numbers


@functools.cache
def exception_table(code):
    """Its entries: start, end (not included), target, depth of the stack there, lasti."""
    return dis._parse_exception_table(code)


def handler_at(code, offset):
    """The entry of the innermost `try` or `with` around an instruction; None if there is none."""
    return next((entry for entry in exception_table(code) if entry.start <= offset < entry.end), None)


def handler_around(code, entry):
    """The entry of the `try` or `with` around that of another entry."""
    start = min(each.start for each in exception_table(code) if each.target == entry.target)
    return handler_at(code, start - 2)


def create_instruction(name, argument=0):
    """The bytes of one instruction."""
    prefixes = b""
    for shift in (24, 16, 8):
        if argument >> shift:
            prefixes += bytes([OP["EXTENDED_ARG"], argument >> shift & 255])
    return prefixes + bytes([OP[name], argument & 255])


def encode_varint(number, first=False):
    """A number in an exception table: six bits a byte, the highest first."""
    parts = [number & 63]
    while number := number >> 6:
        parts.append(number & 63 | 64)
    parts.reverse()
    parts[0] |= 128 if first else 0
    return bytes(parts)


def shifted_exception_table(code, units):
    """The table of the same code `units` instructions further on."""
    return b"".join(
        encode_varint(entry.start // 2 + units, True)
        + encode_varint((entry.end - entry.start) // 2)
        + encode_varint(entry.target // 2 + units)
        + encode_varint(entry.depth << 1 | entry.lasti)
        for entry in exception_table(code)
    )


def shifted_line_table(code, units):
    """The line table, with entries of no line for the instructions before."""
    entries = b""
    while units:
        entries += bytes([128 | 15 << 3 | min(units, 8) - 1])
        units -= min(units, 8)
    return entries + code.co_linetable


def renumbered_free_variables(code, count, more):
    """The code's bytes for a function with `more` local variables beyond the `count` that it has: free variables stand behind."""
    body = bytearray(code.co_code)
    if not more or not code.co_freevars:
        return bytes(body)
    is_prefixed = False
    for i in range(0, len(body), 2):
        if body[i] in NAMES_A_CELL and body[i + 1] >= count:
            if is_prefixed or body[i + 1] + more > 255:
                return None
            body[i + 1] += more
        is_prefixed = body[i] == OP["EXTENDED_ARG"]
    return bytes(body)
