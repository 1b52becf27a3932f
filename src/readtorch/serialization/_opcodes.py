"""Pickles taken apart without running them: where they name a class or function.

A pickle is a program for a small stack machine: one byte says what to do, an argument may follow. To find the
instructions that matter the others have to be stepped over, not searched: any bytes may stand in a text.

In PyTorch: `get_globals_in_pkl` (`torch/_weights_only_unpickler.py`). Explained in the chapter "state_dict,
save and load".
"""

import re
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from pickle import UnpicklingError

# Instructions of protocols 0 to 3, by what follows them. Runs of the first kinds are stepped over at once.
_STEPPED_OVER = re.compile(
    rb"""(?:
    [()\]}012NQRabdelostu\x81\x85-\x89]+   # nothing
    | [Khq\x80\x82] .                      # one byte
    | [M\x83] .{2}
    | [Jjr\x84] .{4}
    | G .{8}
    | [FILPSVgp] [^\n]* \n                 # a line
)++""",
    re.DOTALL | re.VERBOSE,
)
# Instructions followed by a length, of so many bytes, and that many bytes.
_LENGTH_BYTES = {ord("U"): 1, ord("C"): 1, 0x8A: 1, ord("T"): 4, ord("B"): 4, ord("X"): 4, 0x8B: 4}
_GLOBAL = re.compile(rb"c([^\n]*)\n([^\n]*)\n")
_WITH_ARGUMENT = frozenset(b"Khq\x80\x82M\x83Jjr\x84GFILPSVgpc")  # those above that something follows
_STOP = ord(".")


def globals_in(data):
    """Yield (start, end, module, name) of every instruction that names a class or function.

    data: a pickle of protocol 0 to 3, bytes. Raises UnpicklingError for other instructions, EOFError if it
    breaks off.
    """
    for code, start, end, named in _landmarks(data):
        if named:
            yield start, end, named[1].decode(), named[2].decode()
        elif code != _STOP:
            raise UnpicklingError(f"Unsupported operand {code}")


def end_of_pickle(data):
    """Where the first pickle in `data` ends: behind the instruction that stops it, or the first that is unknown.

    Raises EOFError if it breaks off.
    """
    for _, _, end, _ in _landmarks(data):
        pass
    return end


def _landmarks(data):
    """Yield (code, start, end, match of the names) of the instructions that name something, and of the last one: that
    which stops the pickle, or the first unknown one. Raises EOFError if the pickle breaks off.
    """
    at = 0
    while True:
        run = _STEPPED_OVER.match(data, at)
        at = run.end() if run else at
        if at >= len(data):
            raise EOFError("the pickle breaks off")
        code = data[at]
        if code in _LENGTH_BYTES:
            width = _LENGTH_BYTES[code]
            at += 1 + width + int.from_bytes(data[at + 1 : at + 1 + width], "little")
        elif found := _GLOBAL.match(data, at):
            at = found.end()
            yield code, found.start(), at, found
        elif code in _WITH_ARGUMENT:
            raise EOFError("the pickle breaks off")
        else:
            yield code, at, at + 1, None
            return


def rename_globals(data, new_name):
    """The same pickle with every (module, name) replaced by `new_name(module, name)`."""
    pieces, at = [], 0
    for start, end, module, name in globals_in(data):
        renamed = new_name(module, name)
        if renamed != (module, name):
            pieces += data[at:start], b"c%s\n%s\n" % (renamed[0].encode(), renamed[1].encode())
            at = end
    return b"".join((*pieces, data[at:]))


def python3_name(module, name):
    """The present (module, name) of what a pickle of protocol 2 calls as Python 2 did: `__builtin__` was
    `builtins`.
    """
    if (module, name) in NAME_MAPPING:
        return NAME_MAPPING[module, name]
    return IMPORT_MAPPING.get(module, module), name
