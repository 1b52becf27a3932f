"""Reads the constants of a printed graph: the inverse of constant_text.py.

In PyTorch: `IRParser::parseScalarLiteral` in `torch/csrc/jit/ir/irparser.cpp`, `parse_string_literal.h`.
"""
import re

import numpy as np

from ....c10 import scalar_type
from ....c10.device import device as Device
from ....c10.tensor_impl import wrap

_NUMBER = re.compile(r"-?(?:inf|nan|\d+\.?\d*(?:e[+-]?\d+)?)")
_NAMED = {"True": True, "False": False, "None": None}
_ESCAPES = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


def read_literal(text, position):
    """The value that begins at `position`, and where it ends."""
    c = text[position]
    if c == '"':
        return _string(text, position)
    if c in "[(":
        values, end = _sequence(text, position + 1, "]" if c == "[" else ")")
        return (values if c == "[" else tuple(values)), end
    if c == "{":
        return _dict(text, position + 1)
    for name, value in _NAMED.items():
        if text.startswith(name, position):
            return value, position + len(name)
    if text.startswith("torch.device(", position):
        name, end = _string(text, position + len("torch.device("))
        return Device(name), end + 1
    if c == "<":  # <Tensor>, [<Tensors>], <Graph>: not printed, so not known
        return None, text.index(">", position) + 1
    return _number(text, position)


def _number(text, position):
    match = _NUMBER.match(text, position)
    if match is None:
        return _word(text, position)
    value, end = _plain(match[0]), match.end()
    imaginary = _NUMBER.match(text, end + (text[end:end + 1] == "+"))
    if imaginary and text[imaginary.end():imaginary.end() + 1] == "j":
        return complex(value, float(imaginary[0])), imaginary.end() + 1
    return value, end


def _word(text, position):
    """An enum's value or an object: their text, which is all there is."""
    match = re.compile(r"[\w.]+(\(\w*\))?").match(text, position)
    if match is None:
        raise RuntimeError(f"Could not parse literal{text[position:]}")
    return match[0], match.end()


def _plain(text):
    return int(text) if text.lstrip("-").isdigit() else float(text)


def _string(text, position):
    parts, i = bytearray(), position + 1
    while text[i] != '"':
        if text[i] != "\\":
            parts += text[i].encode()
            i += 1
        elif text[i + 1].isdigit():
            parts.append(int(text[i + 1:i + 4], 8))
            i += 4
        else:
            parts += _ESCAPES[text[i + 1]].encode()
            i += 2
    return parts.decode(), i + 1


def _sequence(text, position, end):
    values = []
    while text[position] != end:
        if text[position] in ", ":
            position += 1
            continue
        value, position = read_literal(text, position)
        values.append(value)
    return values, position + 1


def _dict(text, position):
    found = {}
    while text[position] != "}":
        if text[position] in ", ":
            position += 1
            continue
        key, position = read_literal(text, position)
        value, position = read_literal(text, position + 2)
        found[key] = value
    return found, position + 1


# ---------------------------------------------------------------------------------------------------- tensors

def literal_tensor(text, position, type):
    """The tensor of type `type` whose text begins at `position`, and where it ends."""
    if text[position] == "{":
        end = text.index("}", position) + 1
        values = [_element(text[position + 1:end - 1])]
    elif text.startswith("<Tensor>", position):
        values, end = None, position + len("<Tensor>")
    else:
        bracket = re.compile(r"\[ \w+Type\{[\d,]*\} \]").search(text, position)
        shown = re.sub(r"\([\d,.]+\) =|Columns \d+ to \d+", " ", text[position:bracket.start()])
        factor = re.search(r"(\S+) \*", shown)
        scale = float(factor[1]) if factor else 1
        words = re.sub(r"\S+ \*", " ", shown).split()
        values, end = [_element(word) * scale for word in words], bracket.end()
    return _tensor(values, type), end


def _element(word):
    """In PyTorch, and so here, a complex tensor with several elements shows their real parts only."""
    if word.startswith("("):
        real, _, imaginary = word.strip("()").partition(",")
        return complex(float(real), float(imaginary))
    return _plain(word)


def _tensor(values, type):
    dtype = type.dtype() or scalar_type.float32
    sizes = tuple(type.concrete_sizes() or ())
    if values is None or (len(values) != np.prod(sizes) and type.concrete_sizes() is not None):
        return wrap(np.zeros(sizes, dtype.numpy))
    shape = sizes if type.concrete_sizes() is not None else (len(values),)
    return wrap(np.array(values).reshape(shape).astype(dtype.numpy))
