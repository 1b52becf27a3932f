"""Short programs that a reader types into a figure: `h = x @ w + b; y = gelu(h)`.

A tree is a number, a name as text, or (operator, trees …). `static/models/line_programs.js` reads the same.
"""

import re
from typing import NamedTuple

from .inputs import Refusal

TOKEN = re.compile(r" *(?:([0-9]+(?:\.[0-9]+)?)|([A-Za-z_][A-Za-z0-9_]*)|([-+*/@=(),]))")


class Language(NamedTuple):
    """functions: name -> how many sizes it takes behind its operand. reserved: names that a line cannot give. allowed: what a refusal says."""

    functions: dict
    reserved: tuple
    most_operators: int
    allowed: str

    def unknown(self, what):
        said = f"Not known here: {what[:20]}." if what else "Something is missing at the end of a line."
        raise Refusal(f"{said} {self.allowed}")

    def read(self, program):
        """[(name, tree)], a line each. Raises Refusal."""
        lines = [Line(line, self).statement() for line in program.split(";") if line.strip(" ")]
        if not lines:
            self.unknown("")
        if sum(operators_of(tree) for _, tree in lines) > self.most_operators:
            raise Refusal(f"At most {self.most_operators} operators, please.")
        return lines


class Line:
    """Reads `name = expression`."""

    def __init__(self, line, language):
        self.words, self.language, at, line = [], language, 0, line.rstrip(" ")
        while at < len(line):
            found = TOKEN.match(line, at)
            if not found:
                language.unknown(line[at:].strip(" "))
            self.words.append(found[found.lastindex])
            at = found.end()

    def next(self):
        return self.words[0] if self.words else ""

    def take(self, word=None):
        if not self.words or word not in (None, self.words[0]):
            self.language.unknown(self.next())
        return self.words.pop(0)

    def statement(self):
        name = self.take()
        if not is_name(name) or name in self.language.functions or name in self.language.reserved:
            if "=" not in self.words:
                raise Refusal(f"A line gives its result a name: y = {name}…")
            raise Refusal(f"{name} is no name for a result here.")
        self.take("=")
        tree = self.sum()
        return (name, tree) if not self.words else self.language.unknown(self.next())

    def sum(self):
        return self.signs("+-", self.product)

    def product(self):
        return self.signs("*/@", self.unary)

    def signs(self, signs, part):
        tree = part()
        while self.next() and self.next() in signs:
            tree = (self.take(), tree, part())
        return tree

    def unary(self):
        if self.next() != "-":
            return self.atom()
        self.take()
        tree = self.unary()
        return -tree if is_number(tree) else ("neg", tree)

    def atom(self):
        if self.next() == "(":
            self.take()
            tree = self.sum()
            self.take(")")
            return tree
        word = self.take()
        if word[0].isdigit():
            return number(word)
        if not is_name(word):
            self.language.unknown(word)
        return self.call(word) if self.next() == "(" else word

    def call(self, name):
        if name not in self.language.functions:
            self.language.unknown(name)
        self.take("(")
        tree = [name, self.sum()]
        for _ in range(self.language.functions[name]):
            self.take(",")
            tree.append(self.unary())
        self.take(")")
        return tuple(tree)


def number(word):
    if len(word) > 6:
        raise Refusal(f"{word}: a number has at most five digits here.")
    return float(word) if "." in word else int(word)


def is_name(word):
    return word[0].isalpha() or word[0] == "_"


def is_number(tree):
    return isinstance(tree, int | float)


def operators_of(tree):
    return 1 + sum(map(operators_of, tree[1:])) if isinstance(tree, tuple) else 0


def names_in(tree):
    if isinstance(tree, tuple):
        return set().union(*map(names_in, tree[1:]))
    return {tree} if isinstance(tree, str) else set()
