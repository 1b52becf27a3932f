"""What a reader may change in a figure: the kinds of inputs, and the sentence that refuses a bad one.

An input reads a text that somebody typed, or a value that a program gives. ``static/_figure.js`` has the same
rules in JavaScript, and ``tests/viz/test_figures.py`` compares the two. What a bad text is told is written
here alone, as ``wanted``: the page gets it with the input.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields

INTEGER = re.compile(r"[+-]?[0-9]+")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?", re.IGNORECASE)
GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")  # not 12,5
ON, OFF = ("true", "on", "yes", "1"), ("false", "off", "no", "0")


class Refusal(ValueError):
    """Why there is no result for these inputs, as a sentence for the reader. The figure keeps its last result, or draws that
    of these inputs with some exchanged (`instead`)."""

    def __init__(self, sentence: str, instead: dict | None = None):
        super().__init__(sentence)
        self.instead = instead


@dataclass(frozen=True)
class Input:
    """One thing that the reader can change.

    name: of the value, in Python, in JavaScript and in addresses. label: what stands beside the field.
    default: the value at first. hint: said below the pointer. hidden: without a field; the drawing sets it.
    undone: whether undo goes back over a hidden one. only: (name, value, …) of the input that makes the model read this one;
    for values not named there addresses leave it out, and its field is disabled.
    """

    name: str
    label: str
    default: object
    hint: str = field(default="", kw_only=True)
    hidden: bool = field(default=False, kw_only=True)
    undone: bool = field(default=False, kw_only=True)
    only: tuple = field(default=(), kw_only=True)

    @property
    def wanted(self) -> str:
        """The sentence that refuses anything else."""
        raise NotImplementedError

    def read(self, value):
        """The value that a text or a value of JSON means. Raises Refusal."""
        raise NotImplementedError

    def sample(self, random):
        """A good value, for the test that compares the models. random: a random.Random"""
        raise NotImplementedError

    def described(self) -> dict:
        """The input as JSON, for the page."""
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"kind": type(self).__name__.lower(), **own, "wanted": self.wanted}

    def refuse(self):
        raise Refusal(self.wanted)


@dataclass(frozen=True)
class Number(Input):
    """A number between two bounds. slider: whether a slider stands beside the field. step: of slider and arrow keys.
    named: {text: number}, such as {"√2": 1.414}, which the field takes as well."""

    low: float
    high: float
    unit: str = ""
    step: float = 0.1
    slider: bool = False
    named: dict = field(default_factory=dict, kw_only=True)

    @property
    def wanted(self):
        names = f", or {', '.join(self.named)}" if self.named else ""
        return f"{capital(self.label)} takes a number from {self.low:,} to {self.high:,}{names}."

    def read(self, value):
        text = plain(value)
        text = str(self.named.get(text, text))
        if not NUMBER.fullmatch(text) or not self.low <= float(text) <= self.high:
            self.refuse()
        return float(text)

    def sample(self, random):
        return random.choice([self.low, self.high, *(random.uniform(self.low, self.high) for _ in range(6))])


@dataclass(frozen=True)
class Integer(Number):
    """A whole number between two bounds."""

    step: int = 1

    @property
    def wanted(self):
        return f"{capital(self.label)} takes a whole number from {self.low:,} to {self.high:,}."

    def read(self, value):
        text = plain(value)
        if not INTEGER.fullmatch(text) or not self.low <= int(text) <= self.high:
            self.refuse()
        return int(text)

    def sample(self, random):
        near = min(self.high, self.low + 20)
        return random.choice([self.low, self.high, random.randint(self.low, self.high), random.randint(self.low, near)])


@dataclass(frozen=True)
class Integers(Input):
    """A list of whole numbers: "3, 4", "(3, 4)" or "[3, 4]". shortest, longest: of the list"""

    low: int
    high: int
    longest: int
    shortest: int = 0

    @property
    def wanted(self):
        count = f"{self.shortest} to {self.longest}" if self.shortest < self.longest else f"{self.longest}"
        return f"{capital(self.label)} takes {count} whole numbers from {self.low:,} to {self.high:,}, such as {listed(self.default)}."

    def read(self, value):
        text = value.strip().strip("()[]") if isinstance(value, str) else listed(value)
        parts = [part for part in re.split(r"[,\s]+", text) if part]
        if not self.shortest <= len(parts) <= self.longest or not all(map(INTEGER.fullmatch, parts)):
            self.refuse()
        numbers = [int(part) for part in parts]
        if not all(self.low <= number <= self.high for number in numbers):
            self.refuse()
        return numbers

    def sample(self, random):
        return [random.randint(self.low, self.high) for _ in range(random.randint(self.shortest, self.longest))]


@dataclass(frozen=True)
class Choice(Input):
    """One of a few. options: values, or a dict {value: its text in the list}. Values are texts."""

    options: dict | list

    @property
    def wanted(self):
        return f"{capital(self.label)} is one of {', '.join(self.options)}."

    def read(self, value):
        return value if value in list(self.options) else self.refuse()

    def sample(self, random):
        return random.choice(list(self.options))

    def described(self):
        texts = self.options if isinstance(self.options, dict) else {value: value for value in self.options}
        return {**super().described(), "options": [[value, text] for value, text in texts.items()]}


@dataclass(frozen=True)
class Switch(Input):
    """On or off."""

    @property
    def wanted(self):
        return f"{capital(self.label)} is on or off."

    def read(self, value):
        text = str(value).strip().lower()
        return text in ON if text in ON + OFF else self.refuse()

    def sample(self, random):
        return random.random() < 0.5


@dataclass(frozen=True)
class Text(Input):
    """A short text. examples: offered to the reader, and what the test of the models draws from."""

    longest: int = 40
    examples: tuple = ()

    @property
    def wanted(self):
        return f"{capital(self.label)} takes at most {self.longest} characters."

    def read(self, value):
        text = str(value).strip()
        return text if len(text) <= self.longest else self.refuse()

    def sample(self, random):
        return random.choice([self.default, *self.examples])


@dataclass(frozen=True)
class Expression(Text):
    """A line of code, which the model reads and may refuse: set in a fixed width, with room for more.

    statements: shows a line for each, though the value is one line with semicolons.
    """

    longest: int = 120
    statements: bool = field(default=False, kw_only=True)


def plain(value) -> str:
    """A number's text without underscores and the commas between thousands. A comma elsewhere stays, and is refused."""
    text = str(value).strip().replace("_", "")
    return text.replace(",", "") if GROUPED.fullmatch(text) else text


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def listed(numbers) -> str:
    return ", ".join(map(str, numbers))
