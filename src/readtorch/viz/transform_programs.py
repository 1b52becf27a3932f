"""The language of the figure of nested transforms: a function of x, tensors as lists, and how PyTorch prints them."""

import math
import re
import struct

from .inputs import Refusal

ALLOWED = "Allowed: x, numbers, +, -, *, parentheses, sin, cos, exp and sum (x.sin() or torch.sin(x)), torch.dot(a, b)."
TOKEN = re.compile(
    r" *([0-9]{1,3}(?:\.[0-9]{0,3})?(?![0-9.])|torch\.(?:dot|sin|cos|exp|sum)\(|\.(?:sin|cos|exp|sum)\(\)|x|\*\*|[-+*(),])"
)
NUMBER = re.compile(r"-?[0-9]{1,3}(\.[0-9]{0,3})?")


class Parser:
    """Reads an expression as Python would: ("add", a, b), ("sin", a), ("x",), ("number", 2.0)."""

    def __init__(self, program):
        self.left, end, program = [], 0, program.rstrip(" ")
        while end < len(program):
            match = TOKEN.match(program, end)
            if not match:
                raise Refusal(f"Not known here: {program[end:].strip(' ')[:20]}. {ALLOWED}")
            self.left.append(match[1])
            end = match.end()
        self.left.append("")

    def whole(self):
        tree = self.sum()
        if self.left[0]:
            self.refuse()
        return tree

    def refuse(self):
        raise Refusal(
            f"Not known here: {self.left[0]}. {ALLOWED}"
            if self.left[0]
            else f"Something is missing at the end. {ALLOWED}"
        )

    def take(self, word):
        if self.left[0] != word:
            self.refuse()
        return self.left.pop(0)

    def sum(self):
        return self.binary({"+": "add", "-": "sub"}, self.product)

    def product(self):
        return self.binary({"*": "mul"}, self.signed)

    def binary(self, signs, part):
        tree = part()
        while self.left[0] in signs:
            tree = (signs[self.left.pop(0)], tree, part())
        return tree

    def signed(self):
        """A minus before a number belongs to the number; before anything else it is an operator."""
        if self.left[0] != "-" or NUMBER.fullmatch(self.left[1]):
            return self.chain()
        self.take("-")
        return ("neg", self.signed())

    def chain(self):
        word = self.left[0]
        if word == "(":
            self.take("(")
            tree = self.sum()
            self.take(")")
        elif word == "torch.dot(":
            self.take(word)
            first = self.sum()
            self.take(",")
            tree = ("dot", first, self.sum())
            self.take(")")
        elif word.startswith("torch."):
            self.take(word)
            tree = (word[6:-1], self.sum())
            self.take(")")
        elif word == "x":
            self.take("x")
            tree = ("x",)
        else:
            sign = self.left.pop(0) if word == "-" else ""
            if not NUMBER.fullmatch(self.left[0]):
                self.refuse()
            word = self.left.pop(0)
            tree = ("number", float32(float(sign + word)))
        while self.left[0].startswith(".") and self.left[0].endswith("()"):
            tree = (self.left.pop(0)[1:-2], tree)
        return tree


# ---- tensors as lists


def float32(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def numbers_of(text, name):
    """Numbers with commas between."""
    parts = [part.strip(" ") for part in text.strip("[] ").split(",")]
    if not all(NUMBER.fullmatch(part) for part in parts):
        raise Refusal(f"{name} is numbers with commas between, such as 1, 0.5.")
    return [float32(float(part)) for part in parts]


def nested(text, name):
    """(shape, numbers) of a list such as [[1, 2], [3, 4]], or a number."""
    words = re.findall(r"[\[\],]|[^\[\], ]+", text)
    shape, values = items(words, name)
    if words:
        refuse_list(name)
    return shape, values


def items(words, name):
    if not words:
        refuse_list(name)
    word = words.pop(0)
    if NUMBER.fullmatch(word):
        return [], [float32(float(word))]
    if word != "[":
        refuse_list(name)
    parts = [items(words, name)]
    while words and words[0] == ",":
        words.pop(0)
        parts.append(items(words, name))
    if not words or words.pop(0) != "]" or any(shape != parts[0][0] for shape, _ in parts):
        refuse_list(name)
    return [len(parts), *parts[0][0]], [value for _, values in parts for value in values]


def refuse_list(name):
    raise Refusal(f"{name} is a list of numbers, or of lists of one length, such as [[1, 2], [3, 4]].")


# ---- printing


def printed(shape, values):
    """A tensor of float32 as PyTorch prints it."""
    form = format_of(values)
    texts = [form(value) for value in values]
    if not shape:
        return f"tensor({texts[0].strip(' ')})"
    width = max(map(len, texts))
    rows = [text.rjust(width) for text in texts]
    for depth, size in enumerate(reversed(shape)):
        between = ", " if depth == 0 else "," + "\n" * depth + " " * (7 + len(shape) - depth)
        rows = [f"[{between.join(rows[i : i + size])}]" for i in range(0, len(rows), size)]
    return f"tensor({rows[0]})"


def format_of(values):
    sizes = [abs(value) for value in values if value != 0]
    whole = all(value == math.floor(value) for value in values)
    most, least = max(sizes, default=0), min(sizes, default=0)
    if sizes and (most / least > 1000 or most > 1e8 or (not whole and least < 1e-4)):
        return lambda value: f"{value:.4e}"
    return (lambda value: f"{value:.0f}.") if whole else (lambda value: f"{value:.4f}")


def shape_text(shape):
    return f"[{', '.join(map(str, shape))}]"
