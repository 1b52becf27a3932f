"""A function's instructions, and code that begins in the middle of it.

Note [ What depends on the version of Python ]
The interpreter has a method for each instruction, by its name; `dis` says what an instruction's argument means. What else a
version decides is here. Instructions that mean nothing to the interpreter are `NOTHING`. What a later version writes as one
instruction is read as those of 3.11 that it stands for (`as_older`). `VERSIONS` has what no name tells: another version is another
row. All jumps are relative, so a function's code can stand behind a prologue as it is. Python 3.12 and later compile a comprehension
into the function around it: see Note [ A break in a comprehension ].

In PyTorch: `torch/_dynamo/bytecode_transformation.py`.
"""

import dis
import functools
import sys

# Whether NULL lies below a callable or above it; whether LOAD_ATTR can mean LOAD_METHOD; how many instructions the end of a
# loop jumps over (END_FOR, POP_TOP).
VERSIONS = {(3, 11): (True, False, 0), (3, 12): (True, True, 1), (3, 13): (False, True, 2)}
NULL_IS_BELOW, IS_METHOD_A_BIT, LOOP_END = VERSIONS.get(sys.version_info[:2], VERSIONS[3, 11])

NOTHING = ("NOP", "RESUME", "PRECALL", "COPY_FREE_VARS", "CACHE", "EXTENDED_ARG", "END_SEND")
BEFORE_CALL = ("PRECALL", "KW_NAMES")  # belong to the call behind them

TAKEN_APART = {
    "RETURN_CONST": lambda value: (("LOAD_CONST", value), ("RETURN_VALUE", None)),
    "LOAD_FAST_LOAD_FAST": lambda names: (("LOAD_FAST", names[0]), ("LOAD_FAST", names[1])),
    "STORE_FAST_LOAD_FAST": lambda names: (("STORE_FAST", names[0]), ("LOAD_FAST", names[1])),
    "STORE_FAST_STORE_FAST": lambda names: (("STORE_FAST", names[0]), ("STORE_FAST", names[1])),
    "BINARY_SLICE": lambda _: (("BUILD_SLICE", 2), ("BINARY_SUBSCR", None)),
    "STORE_SLICE": lambda _: (("BUILD_SLICE", 2), ("STORE_SUBSCR", None)),
}
INTRINSICS = {5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}
OF_A_CELL = {
    "LOAD_FAST": "LOAD_CLOSURE",
    "LOAD_FAST_AND_CLEAR": "LOAD_CLOSURE_AND_CLEAR",
    "STORE_FAST": "STORE_CLOSURE",
}

OP = dis.opmap
STOPITERATION_ERROR = bytes([OP["CALL_INTRINSIC_1"], 3]) if "CALL_INTRINSIC_1" in OP else None
# The fused ones name no free variable.
NAMES_A_VARIABLE = {opcode for opcode in (*dis.haslocal, *dis.hasfree) if dis.opname[opcode] not in TAKEN_APART}


def as_older(code, instruction):
    """The instructions that one is read as: itself, or others at the same place."""
    name = instruction.opname
    if name in TAKEN_APART:
        parts = TAKEN_APART[name](instruction.argval)
        return [instruction._replace(opname=name, arg=value, argval=value) for name, value in parts]
    if name == "LOAD_ATTR" and IS_METHOD_A_BIT and instruction.arg & 1:
        name = "LOAD_METHOD"
    elif name == "CALL_INTRINSIC_1":
        name = INTRINSICS.get(instruction.arg, name)
    elif name in OF_A_CELL and (instruction.argval in code.co_cellvars or instruction.arg >= code.co_nlocals):
        name = OF_A_CELL[name]
    return [instruction._replace(opname=name)]


def mixes_up_cells(code):
    """Whether the variable of a comprehension, in a cell, has the name of a free variable: CPython has one place for both.

    After `[lambda: i for i in xs]` the `i` of an enclosing function is the last element (3.12.1, 3.13.0): so it stays to Python.
    """
    return bool(set(code.co_cellvars) & set(code.co_freevars))


@functools.cache
def cleaned_instructions(code):
    """(the instructions without caches and prefixes, offset -> number of the instruction that a jump there means)"""
    kept, numbers = [], {}
    for instruction in dis.get_instructions(code):
        numbers[instruction.offset] = len(kept)
        if instruction.opname not in ("CACHE", "EXTENDED_ARG"):
            kept += as_older(code, instruction)
    return kept, numbers


@functools.cache
def exception_table(code):
    """Its entries: start, end (not included), target, depth of the stack there, lasti."""
    return dis._parse_exception_table(code)


def handler_at(code, offset):
    """The entry of the innermost `try` or `with` around an instruction; None if there is none."""
    entry = next((entry for entry in exception_table(code) if entry.start <= offset < entry.end), None)
    return None if entry is not None and is_end_of_generator(code, entry) else entry


def is_end_of_generator(code, entry):
    """Since 3.12 all of a generator stands in a `try` that turns a StopIteration into a RuntimeError."""
    return code.co_code[entry.target : entry.target + 2] == STOPITERATION_ERROR


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
        if body[i] in NAMES_A_VARIABLE and body[i + 1] >= count:
            if is_prefixed or body[i + 1] + more > 255:
                return None
            body[i + 1] += more
        is_prefixed = body[i] == OP["EXTENDED_ARG"]
    return bytes(body)
