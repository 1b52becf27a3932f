"""The language of the graph explorer's programs: small arrays, and a parser that knows where each operand stands."""

import math
import re

from .broadcasting import broadcast, count_of, places
from .inputs import Refusal

LARGEST = 1e9
SIZES = 6  # elements of a leaf
ALLOWED = (
    "Allowed: a = torch.tensor([1., 2.], requires_grad=True), torch.ones(2) or torch.zeros(2); b = … of names, numbers, +, *, "
    "parentheses, .exp(), .sin(), .tanh(), .relu(), .sum(), .clone(), .detach(), .data, .view(2, 3), [1] and [1:]; b += …; "
    "b *= …; b.exp_() and the others; b.data += …; b.backward()."
)

MAKERS = ("torch.tensor", "torch.ones", "torch.zeros")
POINTWISE = ("exp", "sin", "tanh", "relu")
INPLACE = ("exp_", "sin_", "tanh_", "relu_")


# ---- arrays: a shape and its numbers in a row


def array(shape, values):
    if not all(abs(value) < LARGEST for value in values):
        raise Refusal("A number grows beyond 1,000,000,000: this figure draws smaller ones.")
    return {"shape": list(shape), "values": list(values)}


def zipped(a, b, function):
    shape = broadcast(a["shape"], b["shape"])
    left, right = places(a["shape"], shape), places(b["shape"], shape)
    return array(shape, [function(a["values"][i], b["values"][j]) for i, j in zip(left, right)])


def add(a, b):
    return zipped(a, b, lambda x, y: x + y)


def mul(a, b):
    return zipped(a, b, lambda x, y: x * y)


def exp(a):
    return array(a["shape"], [math.exp(min(x, 50)) for x in a["values"]])


def circular(function, a):
    if any(abs(x) > 100 for x in a["values"]):
        raise Refusal(
            "A sine of more than 100 depends on digits that float32 does not have: this figure takes smaller ones."
        )
    return array(a["shape"], [function(x) for x in a["values"]])


def sin(a):
    return circular(math.sin, a)


def cos(a):
    return circular(math.cos, a)


def tanh(a):
    return array(a["shape"], [math.tanh(x) for x in a["values"]])


def relu(a):
    return array(a["shape"], [x if x > 0 else 0 for x in a["values"]])


def summed_to(a, shape):
    """The sum of `a` over what was broadcast."""
    values = [0] * count_of(shape)
    for place, value in zip(places(shape, a["shape"]), a["values"]):
        values[place] += value
    return array(shape, values)


def put(whole, first, part):
    values = [*whole["values"]]
    values[first : first + len(part["values"])] = part["values"]
    return {"shape": whole["shape"], "values": values}


def number_text(x):
    """At most four digits behind the point, in the same letters as JavaScript's."""
    rounded = math.floor(x * 1e4 + 0.5) / 1e4 + 0
    return str(int(rounded)) if rounded == int(rounded) else repr(rounded)


def array_text(a):
    parts = [number_text(x) for x in a["values"]]
    for size in reversed(a["shape"]):
        parts = [f"[{', '.join(parts[i : i + size])}]" for i in range(0, len(parts), size)]
    return parts[0]


def listed(parts):
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


# ---- the program as text

TOKEN = re.compile(
    r" *(?:([0-9]+\.?[0-9]*|\.[0-9]+)|(torch\.(?:tensor|ones|zeros)\b|[a-z][a-z0-9_]*|True|False)|(\+=|\*=|[-+*=().,:\[\]]))"
)


class Parser:
    """Reads one line. What it gives is a tuple: the kind, its parts, and where it begins and ends in the line."""

    def __init__(self, line, at):
        self.line, self.at, self.tokens = line, at, []
        end = 0
        while end < len(line.rstrip(" ")):
            match = TOKEN.match(line, end)
            if not match:
                self.refuse(line[end:].strip(" "))
            number, name, sign = match.groups()
            kind = "number" if number else "name" if name else "sign"
            self.tokens.append((kind, number or name or sign, match.end() - len(number or name or sign), match.end()))
            end = match.end()
        self.left = [*self.tokens, ("end", "", end, end)]

    def refuse(self, what=None):
        what = self.left[0][1] if what is None else what
        near = f"not known here: {what[:20]}" if what else "something is missing at the end"
        raise Refusal(f"Line {self.at + 1}, {near}. {ALLOWED}")

    def next(self, *words):
        return self.left[0][1] in words and self.left[0][0] in ("sign", "name")

    def take(self, *words):
        if not self.next(*words):
            self.refuse()
        return self.left.pop(0)

    def kind(self, kind):
        if self.left[0][0] != kind:
            self.refuse()
        return self.left.pop(0)

    @property
    def end(self):
        """Of what has been read."""
        return self.tokens[len(self.tokens) - len(self.left)][3]

    def statement(self):
        start = self.left[0]
        if start[0] == "name" and start[1] not in MAKERS and self.left[1][1] in ("=", "+=", "*="):
            name, sign = self.left.pop(0)[1], self.left.pop(0)[1]
            value = self.leaf() if sign == "=" and self.next(*MAKERS) else self.sum()
            found = ("set" if sign == "=" else "add" if sign == "+=" else "mul", name, value)
        elif [token[1] for token in self.left[1:3]] == [".", "data"] and self.left[3][1] in ("+=", "*="):
            name, _, _, (_, sign, _, _) = self.left[0][1], *self.left[1:4]
            del self.left[:4]
            found = ("data add" if sign == "+=" else "data mul", name, self.sum())
        else:
            found = self.call(self.sum())
        if self.left[0][0] != "end":
            self.refuse()
        return found

    def call(self, value):
        """A line that is no assignment: what it calls last."""
        if value[0] == "method" and value[1] == "backward":
            return ("backward", value[2], value[3])
        if value[0] == "method" and value[1] in ("add_", "mul_", *INPLACE) and value[2][0] == "name":
            return (value[1][:-1], value[2][1], value[3])
        raise Refusal(f"Line {self.at + 1} is not one that this figure follows. {ALLOWED}")

    def leaf(self):
        maker = self.take(*MAKERS)[1]
        self.take("(")
        values, shape = [], []
        if maker != "torch.tensor":
            shape = [int(self.whole())]
            values = ["1." if maker == "torch.ones" else "0."] * shape[0]
        elif self.next("["):
            self.take("[")
            values.append(self.signed())
            while self.next(","):
                self.take(",")
                values.append(self.signed())
            self.take("]")
            shape = [len(values)]
        else:
            values.append(self.signed())
        flag = self.next(",")
        if flag:
            for word in (",", "requires_grad", "="):
                self.take(word)
            flag = self.take("True", "False")[1] == "True"
        self.take(")")
        if shape and shape[0] < 1:
            raise Refusal(f"Line {self.at + 1}: a tensor has at least one element here.")
        if not any("." in value for value in values):
            raise Refusal(f"Line {self.at + 1}: write a point, as in [1., 2.]; without one the tensor has integers.")
        if len(values) > SIZES:
            raise Refusal(f"Line {self.at + 1}: a tensor has at most {SIZES} elements here.")
        return ("leaf", array(shape, [float(value) for value in values]), flag)

    def signed(self):
        minus = "-" if self.next("-") else ""
        if minus:
            self.take("-")
        return minus + self.kind("number")[1]

    def sum(self):
        return self.binary("+", self.product)

    def product(self):
        return self.binary("*", self.chain)

    def binary(self, sign, part):
        start = self.left[0][2]
        value = part()
        while self.next(sign):
            self.take(sign)
            value = ("add" if sign == "+" else "mul", value, part(), start, self.end)
        return value

    def chain(self):
        start = self.left[0][2]
        if self.next("("):
            self.take("(")
            inner = self.sum()
            self.take(")")
            value = ("group", inner, start, self.end)
        elif self.left[0][0] == "name":
            if self.left[0][1] in (*MAKERS, "True", "False"):
                self.refuse()
            value = ("name", self.left.pop(0)[1], start, self.end)
        else:
            value = ("number", float(self.signed()), start, self.end)
        while self.next(".", "["):
            value = (*(self.method(value) if self.next(".") else self.index(value)), start, self.end)
        return value

    def method(self, value):
        self.take(".")
        name = self.kind("name")[1]
        if name == "data":
            return ("data", value)
        self.take("(")
        argument = None
        if name == "view":
            argument = [int(self.whole())]
            while self.next(","):
                self.take(",")
                argument.append(int(self.whole()))
        elif name in ("add_", "mul_"):
            argument = self.sum()
        elif name == "backward":
            argument = self.next("retain_graph")
            if argument:
                self.take("retain_graph")
                self.take("=")
                argument = self.take("True", "False")[1] == "True"
        elif name not in ("sum", "clone", "detach", *POINTWISE, *INPLACE):
            self.refuse(f".{name}()")
        self.take(")")
        return ("method", name, value, argument)

    def whole(self):
        number = self.signed()
        if "." in number or len(number) > 3:
            self.refuse(number)
        return number

    def index(self, value):
        self.take("[")
        first = None if self.next(":") else int(self.whole())
        if self.next("]"):
            self.take("]")
            return ("select", value, first)
        self.take(":")
        last = None if self.next("]") else int(self.whole())
        self.take("]")
        if first is None and last is None:
            raise Refusal(f"Line {self.at + 1}: [:] takes everything. {ALLOWED}")
        return ("slice", value, first, last)


def place(tree):
    """Of an expression in its line: whether .detach() can stand right behind it, and where it begins and ends."""
    return (tree[0] not in ("add", "mul"), tree[-2], tree[-1])
