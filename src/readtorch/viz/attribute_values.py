"""What the figure `attributes` reads: statements about a module `m` as trees, and the values that its expressions make.

A tree is a tuple: its kind, and its parts. The same in JavaScript: `static/models/attribute_values.js`.
"""

import re
from dataclasses import dataclass

from readtorch.viz.inputs import Refusal

REGISTER = ("register_buffer", "register_parameter", "add_module", "register_module")
STATEMENT = re.compile("(?:\"[^\"]*\"|'[^']*'|[^;])+")
TOKEN = re.compile(
    r"[ \t]*(?:(?P<text>\"[^\"\\\n]{0,24}\"|'[^'\\\n]{0,24}')"
    r"|(?P<number>(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{0,8})?(?:e-?[0-9]{1,2})?(?![A-Za-z0-9_.]))"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>[.=()\[\]{},:*+-]))"
)
CONSTANTS = {"None": "None", "True": "bool", "False": "bool"}
WORDS = (  # of Python's own that this figure does not read
    "and as assert async await break class continue def elif else except finally for from global if import in is lambda "
    "nonlocal not or pass raise return try while with yield"
).split()
MOST_TOKENS = 150
FACTORIES = ["ones", "zeros", "empty", "rand", "randn", "tensor"]
CLOSING = {"[": ("]", "list"), "(": (")", "tuple"), "{": ("}", "set")}

# the file in torch/nn/modules; how few and how many numbers it takes; its parameters; its buffers
LAYERS = {
    "Linear": ("linear", 2, 2, ["weight", "bias"], []),
    "Identity": ("linear", 0, 0, [], []),
    "Conv1d": ("conv", 3, 3, ["weight", "bias"], []),
    "Conv2d": ("conv", 3, 3, ["weight", "bias"], []),
    "BatchNorm1d": ("batchnorm", 1, 1, ["weight", "bias"], ["running_mean", "running_var", "num_batches_tracked"]),
    "BatchNorm2d": ("batchnorm", 1, 1, ["weight", "bias"], ["running_mean", "running_var", "num_batches_tracked"]),
    "LayerNorm": ("normalization", 1, 1, ["weight", "bias"], []),
    "Embedding": ("sparse", 2, 2, ["weight"], []),
    "Dropout": ("dropout", 0, 1, [], []),
    "Flatten": ("flatten", 0, 0, [], []),
    "ReLU": ("activation", 0, 0, [], []),
    "Tanh": ("activation", 0, 0, [], []),
    "Sigmoid": ("activation", 0, 0, [], []),
    "GELU": ("activation", 0, 0, [], []),
    "Module": ("module", 0, 0, [], []),
}
CONTAINERS = ["ModuleList", "Sequential", "ModuleDict"]
OPTIONAL_BIAS = ["Linear", "Conv1d", "Conv2d", "LayerNorm"]
DICT_METHODS = ["clear", "items", "keys", "pop", "update", "values"]  # of ModuleDict, beside those of Module
HOW = (
    "Statements: m.x = a value, m.x, del m.x, setattr, getattr and delattr of m, m.register_buffer(…), m.register_parameter(…), "
    "m.add_module(…), m.__init__(), m = nn.Module() and m = nn.Module.__new__(nn.Module). Values: numbers, texts, lists, "
    "dictionaries, None, m, m.y, torch.ones(2), nn.Parameter(…), nn.Buffer(…) and layers such as nn.Linear(3, 4)."
)


@dataclass(eq=False)
class Value:
    kind: str
    type: str  # as error messages name it
    text: str = ""  # as it is shown, for what has no number
    files: dict | None = None  # a module's dictionaries
    items: list | None = None  # of a list or tuple, and the values of a dictionary
    keys: list | None = None  # of a dictionary, as they were typed
    sizes: list | None = None  # of a tensor, where they are known
    requires_grad: bool = False
    grad_fn: bool = False
    number: int = 0  # tells one Parameter, Buffer or module from another

    @property
    def is_module(self):
        return self.files is not None

    @property
    def is_buffer(self):
        return self.kind in ("Buffer", "Buffer, not saved")

    @property
    def is_tensor(self):
        return self.is_buffer or self.kind in ("Parameter", "tensor")

    @property
    def is_none(self):
        return self.kind == "None"


# ---- statements as trees


def statements_of(program):
    """The statements as they were typed; a semicolon in a text is no end."""
    found = (one.strip(" \t") for one in STATEMENT.findall(program))
    return [one for one in found if one]


class Parser:
    """Reads one statement."""

    def __init__(self, statement):
        self.statement = statement
        self.tokens = []  # (kind, words)
        at = 0
        while at < len(statement):
            found = TOKEN.match(statement, at)
            if not found or found["name"] in WORDS:
                self.refuse()
            self.tokens.append((found.lastgroup, found[found.lastgroup]))
            at = found.end()
        if len(self.tokens) > MOST_TOKENS:
            raise Refusal(f"A statement has at most {MOST_TOKENS} words and signs here.")
        self.at = 0

    def refuse(self):
        raise Refusal(f"This figure cannot read “{self.statement}”. {HOW}")

    def peek(self, ahead=0):
        """The kind and the words of a token."""
        at = self.at + ahead
        return self.tokens[at] if at < len(self.tokens) else ("end", "")

    def accept(self, words):
        """Whether the next token is this one; then it is read."""
        found = self.peek()[1] == words
        self.at += found
        return found

    def expect(self, *words):
        for one in words:
            if not self.accept(one):
                self.refuse()

    def take(self, kind):
        found, words = self.peek()
        if found != kind:
            self.refuse()
        self.at += 1
        return words

    def attribute(self):
        name = self.take("name")
        if name in CONSTANTS or name == "del":
            self.refuse()
        return name

    def end(self, *tree):
        if self.at < len(self.tokens):
            self.refuse()
        return tree

    # ---- statements

    def parse(self):
        words = self.peek()[1]
        if self.accept("del"):
            self.expect("m", ".")
            return self.end("delete", self.attribute())
        if words in ("setattr", "getattr", "delattr"):
            return self.function(words)
        if words == "m" and self.peek(1)[1] == "=":
            return self.new_module()
        if words == "m" and self.peek(2)[1] == "__init__":
            self.expect("m", ".", "__init__", "(", ")")
            return self.end("initialize")
        if words == "m" and self.peek(2)[1] in REGISTER and self.peek(3)[1] == "(":
            return self.registration()
        tree = self.sum()
        if self.accept("="):
            if tree[:2] != ("attribute", ("m",)):
                self.refuse()
            return self.end("assign", tree[2], self.sum())
        return self.end("expression", tree)

    def function(self, which):
        """setattr(m, "a.b", value) and its kin."""
        self.expect(which, "(", "m", ",")
        name = self.take("text")[1:-1]
        value = ()
        if which == "setattr":
            self.expect(",")
            value = (self.sum(),)
        self.expect(")")
        if which == "getattr":
            return self.end("expression", ("attribute", ("m",), name))
        return self.end("assign" if value else "delete", name, *value)

    def new_module(self):
        self.expect("m", "=", "nn", ".", "Module")
        if self.accept("."):
            self.expect("__new__", "(", "nn", ".", "Module", ")")
            return self.end("new", False)
        self.expect("(", ")")
        return self.end("new", True)

    def registration(self):
        self.expect("m", ".")
        method = self.take("name")
        self.expect("(")
        name = self.take("text")[1:-1]
        self.expect(",")
        value, persistent = self.sum(), True
        if method == "register_buffer" and self.accept(","):
            self.expect("persistent", "=")
            persistent = self.flag()
        self.expect(")")
        return self.end("register", method, name, value, persistent)

    def flag(self):
        words = self.take("name")
        if words not in ("True", "False"):
            self.refuse()
        return words == "True"

    # ---- expressions

    def sum(self):
        """Only the kind of a result is asked for: * and + are the same."""
        tree = self.postfix()
        while self.accept("*") or self.accept("+"):
            tree = ("computed", tree, self.postfix())
        return tree

    def postfix(self):
        tree = self.primary()
        while True:
            if self.accept("."):
                name = self.attribute()
                if name in ("mul_", "add_") and self.accept("("):
                    tree = ("in place", tree, self.sum())
                    self.expect(")")
                else:
                    tree = ("attribute", tree, name)
            elif self.accept("["):
                tree = ("item", tree, int(self.integer()))
                self.expect("]")
            else:
                return tree

    def integer(self):
        words = self.take("number")
        if not re.fullmatch("[0-9]+", words):
            self.refuse()
        return words

    def primary(self):
        kind, words = self.peek()
        self.at += 1
        if kind == "text":
            return ("plain", "str", words)
        if kind == "number" or (kind == "sign" and words == "-"):
            number = words if kind == "number" else self.take("number")
            sort = "int" if re.fullmatch("[0-9]+", number) else "float"
            return ("plain", sort, number if kind == "number" else f"-{number}")
        if kind == "name" and words in CONSTANTS:
            return ("plain", CONSTANTS[words], words)
        if kind == "name" and words == "m":
            return ("m",)
        if kind == "name" and words in ("nn", "torch"):
            self.expect(".")
            return self.call(words, self.attribute())
        if kind == "sign" and words in CLOSING:
            return self.display(words)
        return self.refuse()

    def display(self, opening):
        """A list, a tuple, a dictionary or a set; or an expression in parentheses."""
        closing, kind = CLOSING[opening]
        items, keys, commas = [], [], 0
        while not self.accept(closing):
            if len(items) > commas:
                self.refuse()
            items.append(self.sum())
            if opening == "{" and items[-1][0] != "plain":
                self.refuse()
            if opening == "{" and self.accept(":"):
                keys.append(items[-1][2])
                items[-1] = self.sum()
            commas += self.accept(",")
        if opening == "(" and len(items) == 1 and not commas:
            return items[0]
        if opening == "{" and (keys or not items):
            if len(keys) != len(items):
                self.refuse()
            return ("items", "dict", items, keys)
        return ("items", kind, items, [])

    def call(self, library, function):
        self.expect("(")
        values, named, commas = [], {}, 0
        while not self.accept(")"):
            if len(values) + len(named) > commas:
                self.refuse()
            if self.peek(1)[1] == "=":
                name = self.attribute()
                self.expect("=")
                if name in named:
                    self.refuse()
                named[name] = self.sum()
            elif named:
                self.refuse()
            else:
                values.append(self.sum())
            commas += self.accept(",")
        known = FACTORIES if library == "torch" else ["Parameter", "Buffer", *LAYERS, *CONTAINERS]
        if function not in known:
            raise Refusal(f"This figure knows no {library}.{function}, only {library}.{', '.join(known)}.")
        return ("call", f"{library}.{function}", values, named)


# ---- values


def plain(kind, text):
    return Value(kind, "NoneType" if kind == "None" else kind, text)


def module(kind, file, parameters=(), buffers=(), bias=True):
    """A module with the parameters and buffers of these names. bias: False puts None in its place"""
    own = {
        name: Value("Parameter", "torch.FloatTensor", requires_grad=True)
        if bias or name != "bias"
        else plain("None", "None")
        for name in parameters
    }
    counted = {"num_batches_tracked": "torch.LongTensor"}
    held = {name: Value("tensor", counted.get(name, "torch.FloatTensor")) for name in buffers}
    return Value(kind, f"torch.nn.modules.{file}.{kind}", files={"_parameters": own, "_buffers": held, "_modules": {}})


def refuse_call(function, takes):
    raise Refusal(f"{function} takes {takes} here.")


def option(function, named, name, at_first):
    """A keyword argument that is True or False."""
    value = named.pop(name, None)
    if value is None:
        return at_first
    if value.kind != "bool":
        refuse_call(function, f"True or False as {name}")
    return value.text == "True"


def no_more(function, named):
    if named:
        raise Refusal(f"{function} takes no {list(named)[0]} here.")


def layer(name, values, named):
    file, fewest, most, parameters, buffers = LAYERS[name]
    function = f"nn.{name}"
    bias = option(function, named, "bias", True) if name in OPTIONAL_BIAS else True
    no_more(function, named)
    if not fewest <= len(values) <= most:
        refuse_call(function, f"{most} {'number' if most == 1 else 'numbers'}" if most else "no number")
    if name == "Dropout":
        if any(value.kind not in ("int", "float") or not 0 <= float(value.text) <= 1 for value in values):
            refuse_call(function, "a number from 0 to 1")
    elif any(value.kind != "int" or not 1 <= int(value.text) <= 999 for value in values):
        refuse_call(function, "whole numbers from 1 to 999")
    return module(name, file, parameters, buffers, bias)


def sizes_of(function, values):
    if len(values) == 1 and values[0].kind in ("list", "tuple"):
        values = values[0].items
    sized = all(value.kind == "int" and 0 <= int(value.text) <= 99 for value in values)
    if not (sized and 1 <= len(values) <= 4):
        refuse_call(function, "1 to 4 sizes, whole numbers up to 99,")
    return [int(value.text) for value in values]


def tensor_type(values):
    """Of torch.tensor of these numbers; None if this figure does not make it."""
    kinds = {value.kind for value in values}
    if kinds and kinds <= {"int", "float"}:
        return "torch.FloatTensor" if "float" in kinds else "torch.LongTensor"
    return "torch.BoolTensor" if kinds == {"bool"} else None


def tensor_of(function, values):
    if len(values) == 1:
        several = values[0].kind in ("list", "tuple")
        numbers = values[0].items if several else values
        if kind := tensor_type(numbers):
            return Value("tensor", kind, sizes=[len(numbers)] if several else [])
    return refuse_call(function, "a number, or a list of numbers that are all of a kind,")
