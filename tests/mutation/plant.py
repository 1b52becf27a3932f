"""Bugs that can be planted into a Python file: every place of its syntax tree where one small change changes the program.

A bug replaces one piece of the source by another text; everything else stays as it is, to the letter.
"""

import ast
import dataclasses
import random

COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
}
SIGNS = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
}


@dataclasses.dataclass(frozen=True)
class Bug:
    """One change: the text from `start` to `end` (offsets into the file) becomes `text`."""

    kind: str
    line: int
    start: int
    end: int
    text: str

    def planted(self, source):
        return source[: self.start] + self.text + source[self.end :]


class Places(ast.NodeVisitor):
    """Collects the bugs of one file. Left out is what no program depends on, or nothing but a message: docstrings,
    annotations, decorators, default texts, the arguments of `raise`, `assert` and warnings, what is written to a log, imports,
    `__all__` and `__slots__`. A warning as a whole may be dropped.
    """

    def __init__(self, source):
        self.source, self.bugs = source, []
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = source.splitlines(keepends=True)
        self.visit(ast.parse(source))

    def offset(self, line, column):
        """`column` counts bytes of UTF-8, as the syntax tree does."""
        return self.starts[line - 1] + len(self.lines[line - 1].encode()[:column].decode())

    def span(self, node):
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno, node.end_col_offset)

    def text(self, node):
        start, end = self.span(node)
        return self.source[start:end]

    def add(self, kind, node, text, start=None, end=None):
        first, last = self.span(node)
        start, end = first if start is None else start, last if end is None else end
        self.bugs.append(Bug(kind, self.source.count("\n", 0, start) + 1, start, end, text))

    # ------------------------------------------------------------------------------------ what is left out

    def visit_FunctionDef(self, node):
        self.statements(node.body)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self.visit(default)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node):
        self.statements(node.body, droppable=False)

    def visit_Raise(self, node):
        pass

    visit_Assert = visit_Import = visit_ImportFrom = visit_JoinedStr = visit_Raise

    def visit_AnnAssign(self, node):
        if node.value is not None:
            self.visit(node.value)

    def visit_Assign(self, node):
        named = {target.id for target in node.targets if isinstance(target, ast.Name)}
        if not named & {"__all__", "__slots__"}:
            self.visit(node.value)

    # --------------------------------------------------------------------------------------- what can break

    def statements(self, body, droppable=True):
        """Every statement of a block; one that changes something and returns nothing could be dropped."""
        for statement in body:
            text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if text:
                continue
            changes = (
                isinstance(statement, ast.AugAssign)
                or isinstance(statement, ast.Expr)
                and isinstance(statement.value, ast.Call)
                or isinstance(statement, ast.Assign)
                and isinstance(statement.targets[0], (ast.Attribute, ast.Subscript))
            )
            if droppable and changes and not is_logged(getattr(statement, "value", None)):
                self.add("dropped statement", statement, "pass")
            self.visit(statement)

    def visit_Module(self, node):
        self.statements(node.body, droppable=False)

    def visit_If(self, node):
        self.guard(node)

    visit_IfExp = visit_While = visit_If

    def guard(self, node):
        raises = isinstance(node, ast.If) and all(isinstance(s, ast.Raise) for s in node.body)
        if not isinstance(node, ast.While):
            self.add("guard made false" if raises else "guard made true", node.test, "False" if raises else "True")
        self.visit(node.test)
        for block in ("body", "orelse"):
            inside = getattr(node, block)
            if isinstance(inside, list):
                self.statements(inside)
            else:
                self.visit(inside)

    def visit_For(self, node):
        self.visit(node.iter)
        self.statements(node.body)
        self.statements(node.orelse)

    def visit_With(self, node):
        for item in node.items:
            self.visit(item.context_expr)
        self.statements(node.body)

    def visit_Try(self, node):
        self.statements(node.body)
        for handler in node.handlers:
            self.statements(handler.body)
        self.statements(node.orelse)
        self.statements(node.finalbody)

    def visit_Constant(self, node):
        value = node.value
        if isinstance(value, bool):
            self.add("changed constant", node, str(not value))
        elif isinstance(value, int):
            self.add("changed constant", node, str(value + 1))
        elif isinstance(value, float):
            self.add("changed constant", node, repr(value * 1.1 if value else 0.1))

    def visit_Compare(self, node):
        if len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
            self.between("changed comparison", node, node.left, node.comparators[0], COMPARISONS[type(node.ops[0])])
        self.generic_visit(node)

    def visit_BinOp(self, node):
        texts = any(
            isinstance(side, (ast.JoinedStr, ast.List, ast.Tuple))
            or isinstance(side, ast.Constant)
            and isinstance(side.value, str)
            for side in (node.left, node.right)
        )
        if type(node.op) in SIGNS and not texts:
            self.between("changed sign", node, node.left, node.right, SIGNS[type(node.op)])
        self.generic_visit(node)

    def visit_BoolOp(self, node):
        if len(node.values) == 2:
            self.between("changed sign", node, *node.values, "or" if isinstance(node.op, ast.And) else "and")
        self.generic_visit(node)

    def visit_UnaryOp(self, node):
        if isinstance(node.op, (ast.USub, ast.Not)):
            self.add("changed sign", node, f"({self.text(node.operand)})")
        self.generic_visit(node)

    def between(self, kind, node, left, right, operator):
        """The operator stands between its operands, perhaps with parentheses and line ends around it."""
        start, end = self.span(left)[1], self.span(right)[0]
        around = self.source[start:end]
        opened = len(around) - len(around.lstrip(") \n\\"))
        closed = len(around.rstrip("( \n\\"))
        self.add(kind, node, f" {operator} ", start + opened, start + closed)

    def visit_Call(self, node):
        if is_logged(node) or called_name(node).startswith("warn"):
            return
        plain = [a for a in node.args if not isinstance(a, ast.Starred)]
        if len(plain) == len(node.args) >= 2 and self.text(plain[0]) != self.text(plain[1]):
            (start, first_end), (second, end) = self.span(plain[0]), self.span(plain[1])
            if self.source[first_end:second].strip() == ",":
                swapped = self.source[second:end] + self.source[first_end:second] + self.source[start:first_end]
                self.add("swapped arguments", node, swapped, start, end)
        self.generic_visit(node)


def called_name(call):
    """The last part of the name of what is called."""
    return getattr(call.func, "attr", getattr(call.func, "id", ""))


def is_logged(node):
    """Is this a call of a method of a log?"""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id in ("log", "logger")
        and node.func.attr in ("debug", "info", "warning", "error", "exception")
    )


def changes_the_program(bug, source):
    """Does it still parse, as another program?"""
    try:
        return ast.dump(ast.parse(bug.planted(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def draw(rooms, count, seed):
    """`count` triples (room, file, bug). The rooms take turns; in each all kinds of bug are equally likely, and all places of a
    kind. `rooms`: {name: files}.
    """
    chance, drawn = random.Random(seed), []
    places = {room: by_kind(files) for room, files in rooms.items()}
    while len(drawn) < count:
        room = list(rooms)[len(drawn) % len(rooms)]
        kind = chance.choice(sorted(kind for kind in places[room] if places[room][kind]))
        file, bug = places[room][kind].pop(chance.randrange(len(places[room][kind])))
        if changes_the_program(bug, file.read_text(encoding="utf8")):
            drawn.append((room, file, bug))
    return drawn


def by_kind(files):
    """{kind: [(file, bug), …]}"""
    places = {}
    for file in sorted(files):
        for bug in Places(file.read_text(encoding="utf8")).bugs:
            places.setdefault(bug.kind, []).append((file, bug))
    return places
