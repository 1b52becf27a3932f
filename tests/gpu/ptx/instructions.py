"""The table of PTX's instructions: what each becomes in C.

A function of the table gets an `Instruction` and returns statements of C. Names that end in `_` are variables of these statements.
"""

import importlib
import re

from .module import FLOATS, SIZE, TYPES, Unsupported

TABLE = {}  # instruction -> function
_FAMILIES = ("control", "memory", "integers", "floating", "conversions", "warps")


def instruction(*names):
    def register(function):
        for name in names:
            TABLE[name] = function
        return function

    return register


class Instruction:
    """`mul.wide.s32 %rd1, %r2, 4`: name, modifiers, operands."""

    def __init__(self, function, text):
        found = re.match(r"([a-z][\w.:]*)\s*(.*)$", text, re.S)
        if not found:
            raise Unsupported(f"statement {text[:60]}")
        self.name, *self.modifiers = found[1].replace("::", "_").split(".")
        self.text, self.function = text, function
        self.operands = split(found[2])
        self.type = next((m for m in reversed(self.modifiers) if m in TYPES), None)
        self.bits = 8 * SIZE.get(self.type, 0)
        self.is_float = self.type in FLOATS

    def __contains__(self, modifier):
        return modifier in self.modifiers

    def one_of(self, *modifiers):
        return next((m for m in self.modifiers if m in modifiers), None)

    def raw(self, i):
        return self.function.raw(self.operands[i])

    def unsigned(self, i):
        """An operand's bits, in the instruction's width."""
        return f"(u{self.bits}){self.raw(i)}"

    def value(self, i, kind=None):
        """An operand as the instruction takes it; denormals are flushed where it says so."""
        value = self.function.value(self.operands[i], kind or self.type)
        return f"ftz({value})" if "ftz" in self and (kind or self.type) == "f32" else value

    def put(self, value, kind=None, to=0):
        return self.function.put(self.operands[to], kind or self.type, value)

    def put_bits(self, value, to=0):
        return self.put(value, f"b{self.bits}", to)

    def refuse(self):
        raise Unsupported(self.text)


def split(text):
    """Operands: what commas part that stand in no brackets."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "{[(") - (letter in "}])")
        if letter == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += letter
    return parts + [part.strip()] if part.strip() else parts


def translated(function, text):
    if not TABLE:
        for family in _FAMILIES:
            importlib.import_module(f"{__package__}.{family}")
    this = Instruction(function, text)
    if this.name not in TABLE:
        this.refuse()
    try:
        return TABLE[this.name](this)
    except (KeyError, IndexError, StopIteration, TypeError, ValueError) as error:
        raise Unsupported(f"{text}: {error!r}") from error
