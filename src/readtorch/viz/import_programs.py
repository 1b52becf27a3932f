"""A small part of Python, one statement after the other, for the figure of imports: what its modules may say, and random ones."""

import re

from readtorch.viz.inputs import Refusal

KEYWORDS = (
    "False None True and as assert async await break class continue def del elif else except finally for from global if import "
    "in is lambda nonlocal not or pass raise return try while with yield"
).split()
BUILTINS = (
    "abs aiter all anext any ascii bin bool breakpoint bytearray bytes callable chr classmethod compile complex copyright credits "
    "delattr dict dir display divmod enumerate eval exec execfile exit filter float format frozenset getattr globals hasattr hash "
    "help hex id input int isinstance issubclass iter len license list locals map max memoryview min next object oct open ord pow "
    "print property quit range repr reversed round runfile set setattr slice sorted staticmethod str sum super tuple type vars zip "
    "Ellipsis NotImplemented"
).split()
ALLOWED = (
    "Known here are import, from … import, assignments, del, pass, print(…), def f(): and class A: with their body on the same "
    "line, return, calls without arguments, whole numbers, strings and lists."
)
TOKEN = re.compile(
    r""" *(?:(?P<comment>\#[^\n]*)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|(?P<int>0|[1-9][0-9]{0,8})|(?P<str>"[^"\\]*"|'[^'\\]*')"""
    r"""|(?P<sign>[.,;:=()\[\]*])) *"""
)


def tokens(line, refuse):
    """(kind, text) of the words of a line."""
    found, at = [], 0
    while at < len(line):
        match = TOKEN.match(line, at)
        if not match:
            refuse()
        kind = match.lastgroup
        if kind != "comment":
            found.append((kind, match[kind]))
        at = match.end()
    return found


class Parser:
    """Reads one line. where: what stands in front of a refusal."""

    def __init__(self, line, where):
        self.line, self.where = line, where
        self.at = 0
        self.tokens = tokens(line, self.refuse)

    def refuse(self, words=""):
        raise Refusal(f"{self.where}: {words or f'“{self.line[:60]}” is not known here. {ALLOWED}'}")

    # ---- words

    def next_is(self, *words):
        return (
            self.at < len(self.tokens)
            and self.tokens[self.at][0] in ("name", "sign")
            and self.tokens[self.at][1] in words
        )

    def take(self, *words):
        if not self.next_is(*words):
            return False
        self.at += 1
        return True

    def want(self, word):
        if not self.take(word):
            self.refuse()

    def name(self, attribute=False):
        kind, word = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind != "name" or word in KEYWORDS:
            self.refuse()
        if word.startswith("__") and word != "__all__":
            self.refuse(f"{word} is a name of Python's own.")
        if not attribute and word in BUILTINS:
            self.refuse(f"{word} is a name of Python's own.")
        self.at += 1
        return word

    def dotted(self):
        names = [self.name(True)]
        while self.take("."):
            names.append(self.name(True))
        return ".".join(names)

    # ---- expressions

    def expression(self):
        kind, word = self.tokens[self.at] if self.at < len(self.tokens) else ("", "")
        if kind in ("int", "str"):
            self.at += 1
            if kind == "int" and self.next_is("."):
                self.refuse()
            made = (kind, word if kind == "int" else word[1:-1])
        elif self.take("["):
            made = ("list", self.several("]"))
        else:
            made = ("name", self.name())
        while self.next_is(".", "("):
            if self.take("."):
                made = ("attribute", made, self.name(True))
            else:
                self.want("(")
                self.want(")")
                made = ("call", made)
        return made

    def several(self, end):
        """Expressions with commas between them, up to `end`."""
        found = []
        while not self.take(end):
            found.append(self.expression())
            if not self.next_is(end):
                self.want(",")
        return found

    # ---- statements

    def statements(self, inside=""):
        """Those of a line, or of a body in it."""
        found = []
        while self.at < len(self.tokens):
            if found and self.next_is("def", "class"):
                self.refuse()
            found.append(self.statement(inside))
            if self.at < len(self.tokens):
                self.want(";")
        return found

    def statement(self, inside):
        if inside != "class":
            for word in (
                "import",
                "from",
                *(() if inside else ("del", "def", "class")),
                *(("return",) if inside else ()),
            ):
                if self.take(word):
                    return getattr(self, f"read_{word}")(inside)
            if self.next_is("print") and self.tokens[self.at + 1 : self.at + 2] and self.tokens[self.at + 1][1] == "(":
                self.at += 2
                return ("print", self.several(")"))
        if self.take("pass"):
            return ("pass",)
        made = self.expression()
        if not self.take("="):
            if inside == "class":
                self.refuse()
            return ("expression", made)
        if made[0] not in ("name", "attribute") or (inside == "class" and made[0] != "name"):
            self.refuse()
        return ("set", made, self.expression())

    def read_import(self, inside):
        wanted = []
        while not wanted or self.take(","):
            name = self.dotted()
            wanted.append((name, self.name() if self.take("as") else ""))
        if any(not other and name.split(".")[0] in BUILTINS for name, other in wanted):
            self.refuse()
        return ("import", wanted)

    def read_from(self, inside):
        level = 0
        while self.take("."):
            level += 1
        name = "" if level and self.next_is("import") else self.dotted()
        self.want("import")
        if self.next_is("*") and not inside:
            self.at += 1
            return ("from", level, name, "*")
        wanted = []
        while not wanted or self.take(","):
            one = self.name()
            wanted.append((one, self.name() if self.take("as") else ""))
        return ("from", level, name, wanted)

    def read_del(self, inside):
        names = [self.name()]
        while self.take(","):
            names.append(self.name())
        return ("del", names)

    def read_return(self, inside):
        return ("return", self.expression())

    def read_def(self, inside):
        name = self.name()
        for sign in "():":
            self.want(sign)
        return ("def", name, self.body("def"))

    def read_class(self, inside):
        name, base = self.name(), None
        if self.take("(") and not self.take(")"):
            base = self.expression()
            self.want(")")
        self.want(":")
        return ("class", name, base, self.body("class"))

    def body(self, inside):
        return self.statements(inside) or self.refuse()


def parsed(module, words, longest):
    """[(line number, its statements)] of a module. Raises Refusal."""
    lines = words.split("\n")
    if len(lines) > longest:
        raise Refusal(f"{module} has more than {longest} lines.")
    found = []
    for number, line in enumerate(lines, 1):
        where = f"{module}, line {number}"
        if line.startswith((" ", "\t")) and line.strip(" \t"):
            raise Refusal(f"{where} begins with a space: here a body stands on the line of its def or class.")
        statements = Parser(line.rstrip(" "), where).statements()
        if statements:
            found.append((number, statements))
    return found


# ---- random modules

FAMILIES = ["a, b, c", "a, b", "p, p.b, p.c", "p, p.b, p._C, a", "p, p.q, p.q.r, a", "p, p.b, p.c, p._C", "a, _C"]
NAMES = ["x", "y", "f", "A"]


def random_path(random, modules):
    name = random.choice(NAMES)
    return random.choice([name, name, f"{random.choice(modules)}.{name}", f"{random.choice(modules)}.{name}.x"])


def random_value(random, modules):
    path = random_path(random, modules)
    return random.choice(
        ["1", "2", "'one'", '"it\'s"', path, path, f"{path}()", f"[1, {path}]", random.choice(modules)]
    )


def random_import(random, modules, inside=False):
    module, name, other = random.choice(modules), random.choice(NAMES), random.choice(NAMES)
    child = random.choice(modules).rpartition(".")[2]
    return random.choice(
        [
            f"import {module}",
            f"import {module}",
            f"import {module} as {other}",
            f"import {module}, {random.choice(modules)}",
            f"from {module} import {name}",
            f"from {module} import {name} as {other}, {random.choice(NAMES)}",
            f"from {module} import {child}",
            f"from . import {random.choice([name, child])}",
            f"from .{child} import {name}",
            f"from ..{random.choice(['', child])} import {name}",
            f"import {module}.{random.choice(['b', 'nothing'])}",
            *[f"from {module} import {'x' if inside else '*'}"] * 3,
        ]
    )


def random_line(random, modules, inside=False):
    name, other = random.choice(NAMES), random.choice(NAMES)
    kind = random.choice(
        ["import"] * 8
        + ["set"] * 5
        + ["attribute", "expression", "print"]
        + ["del", "def", "def", "class"] * (not inside)
    )
    if kind == "import":
        return random_import(random, modules, inside)
    if kind == "set":
        value = "1" if random.random() < 0.4 else random_value(random, modules)
        return f"{name if inside or random.random() < 0.95 else '__all__'} = {value}".replace(
            "__all__ = " + value, "__all__ = ['x', 'f']"
        )
    if kind == "attribute":
        return f"{random.choice([*modules, *NAMES])}.{name} = {random_value(random, modules)}"
    if kind == "expression":
        return random_value(random, modules)
    if kind == "print":
        return f"print({random_value(random, modules)}, {name})"
    if kind == "del":
        return f"del {name}"
    if kind == "def":
        body = "; ".join(random_line(random, modules, True) for _ in range(random.randint(0, 2)))
        return f"def {name}(): {body + '; ' if body else ''}return {random_value(random, modules)}"
    base = random.choice(["", "()", f"({random_path(random, modules)})"])
    return (
        f"class {name}{base}: {random.choice(['pass', f'{other} = 3', f'x = 1; f = {random_path(random, modules)}'])}"
    )


def random_text(random, modules):
    """Lines of which the first set names, mostly, so that the others find some."""
    firsts = ["x = 1", "y = 'y'", "def f(): return 2", "class A: x = 3"]
    count = random.choice([0, 2, 4, 4])
    lines = random.sample(firsts, count) + [
        random_line(random, modules) for _ in range(random.randint(1, random.choice([3, 6])))
    ]
    if random.random() < 0.3:
        random.shuffle(lines)
    return "\n".join(lines)


def sample(random):
    """Modules that import one another in every way, and a program of one to three lines."""
    names = random.choice(FAMILIES)
    modules = names.split(", ")
    texts = {slot: random_text(random, modules) for slot in ("one", "two", "three", "four")}
    starts = [f"import {random.choice(modules)}" for _ in range(random.randint(1, 3))]
    statements = [*starts, random_import(random, modules), random_value(random, modules)]
    program = "".join(random.choice(["; ", "\n", "\n"]) + statement for statement in statements)[1:].strip()
    switches = {"early": random.random() < 0.85, "removed": random.random() < 0.7}
    own = {} if random.random() < 0.03 else {"example": ""}
    return {"program": program, "names": names, **own, **switches, **texts}
