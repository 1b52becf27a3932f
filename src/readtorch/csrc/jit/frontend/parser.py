"""The part of Python that archives are written in.

Python's own parser reads their text; what it knows beyond PyTorch's is refused here, before anything is compiled:
decorators, lambdas, `import` in a function, two statements in a line, f-strings, `try` …

In PyTorch: `torch/csrc/jit/frontend/parser.cpp` and `lexer.h`. Explained in the chapter "JIT: scripting".
"""

import ast
import re

from .definition import parse_text
from .error_report import ErrorReport
from .source_range import SourceRange

_STATEMENTS = (
    ast.FunctionDef, ast.If, ast.While, ast.For, ast.With, ast.Return, ast.Raise, ast.Assert, ast.Break,
    ast.Continue, ast.Pass, ast.Delete, ast.Global, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr,
)  # fmt: skip
_EXPRESSIONS = (
    ast.Constant, ast.Name, ast.Attribute, ast.Subscript, ast.Slice, ast.Call, ast.UnaryOp, ast.BinOp, ast.BoolOp,
    ast.Compare, ast.IfExp, ast.ListComp, ast.DictComp, ast.List, ast.Tuple, ast.Dict, ast.Starred,
)  # fmt: skip
_IN_CLASSES = (ast.FunctionDef, ast.Assign, ast.AnnAssign)


def parse_archived(source, filename):
    """(Text, tree) of a file of an archive. Raises ErrorReport for what PyTorch's parser does not know."""
    text, tree = parse_text(source, filename)
    if text.lines[-1].strip():
        end = SourceRange(text.source, len(source) - 1, len(source))
        raise ErrorReport(end, "expected newline but found 'eof' here")
    _Grammar(text).module(tree)
    return text, tree


class _Grammar:
    def __init__(self, text):
        self.text = text

    def refuse(self, node, what):
        raise ErrorReport(self.text.range(node), f"Unexpected {what} in code import")

    def module(self, tree):
        for number, node in enumerate(tree.body):
            if isinstance(node, ast.ClassDef):
                self.class_(node)
            elif isinstance(node, ast.FunctionDef):
                self.part(node)
            elif not isinstance(node, ast.Import) and not (number == 0 and _is_version(node)):
                self.refuse(node, type(node).__name__)

    def class_(self, node):
        bases = [*node.bases, *node.keywords]
        if node.decorator_list or len(bases) > 1 or not all(isinstance(base, ast.Name) for base in bases):
            self.refuse(node, "kind of class")
        self.lines(node.body)
        for statement in node.body:
            if not isinstance(statement, _IN_CLASSES):
                self.refuse(statement, type(statement).__name__)
            if isinstance(statement, ast.Assign) and len(statement.targets) > 1:
                self.refuse(statement, "second target")
            self.part(statement)

    def part(self, tree):
        """A statement and all that is in it."""
        nodes = list(ast.walk(tree))
        minuses = [node for node in nodes if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub)]
        negative = {id(minus.operand) for minus in minuses}
        for node in nodes:
            if isinstance(node, (ast.stmt, ast.expr)) and not isinstance(node, _STATEMENTS + _EXPRESSIONS):
                self.refuse(node, type(node).__name__)
            if not _RULES.get(type(node), _anything)(node):
                self.refuse(node, f"kind of {type(node).__name__}")
            if not all(name.isascii() for name in _names_in(node)):
                self.refuse(node, "letter in a name")
            if isinstance(node, ast.Constant):
                self.constant(node, id(node) in negative)
            for block in (getattr(node, name, None) for name in ("body", "orelse")):
                if isinstance(block, list):
                    self.lines(block, may_follow=isinstance(node, ast.FunctionDef))

    def lines(self, block, may_follow=False):
        """Each statement begins a line; a function's only one may follow the colon."""
        for statement in [] if may_follow and len(block) == 1 else block:
            line = self.text.lines[statement.lineno - 1].encode()
            if line[: statement.col_offset].strip():
                self.refuse(statement, "statement that does not begin a line")

    def constant(self, node, is_negative):
        start = self.text.position(node.lineno, node.col_offset)
        spelled = self.text.source.text[start : self.text.position(node.end_lineno, node.end_col_offset)]
        if isinstance(node.value, str):
            escapes_known = all(map(_KNOWN_ESCAPE.fullmatch, _ESCAPE.findall(spelled)))
            if spelled[:1] not in "'\"" or not escapes_known:
                self.refuse(node, "spelling of a text")
        elif isinstance(node.value, bytes):
            self.refuse(node, "bytes")
        elif type(node.value) in (int, float, complex) and not _NUMBER.fullmatch(spelled):
            self.refuse(node, "spelling of a number")
        if type(node.value) is int and node.value >= 2**63 + is_negative:
            message = "Integral constant out of range (must fit in a signed 64 bit integer)"
            raise ErrorReport(self.text.range(node), message)


_ESCAPE = re.compile(r"\\(?:[0-7]{3}|.)", re.DOTALL)
_KNOWN_ESCAPE = re.compile(r"""\\(?:[\\'"\nabfnvt]|[0-3][0-7]{2})""")
_NUMBER = re.compile(r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?j?")


def _names_in(node):
    found = (getattr(node, field, None) for field in ("id", "attr", "arg", "name"))
    return [name for name in found if isinstance(name, str)]


def _is_version(node):
    """`op_version_set = 1`, with which files of PyTorch 1.0 begin."""
    is_name = isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    return is_name and node.targets[0].id == "op_version_set" and isinstance(node.value, ast.Constant)


def _anything(node):
    return True


def _different(names):
    """Whether all are names and no two the same: no `**kwargs` among keyword arguments."""
    names = list(names)
    return None not in names and len(set(names)) == len(names)


def _plain_comprehension(node):
    return len(node.generators) == 1 and not node.generators[0].ifs and not node.generators[0].is_async


# What more is asked of a kind of tree.
_RULES = {
    ast.FunctionDef: lambda node: not node.decorator_list,
    ast.arguments: lambda node: not (node.vararg or node.kwarg or node.posonlyargs),
    ast.While: lambda node: not node.orelse,
    ast.For: lambda node: not node.orelse,
    ast.Raise: lambda node: node.exc is not None and node.cause is None,
    ast.AugAssign: lambda node: not isinstance(node.op, (ast.FloorDiv, ast.MatMult)),
    ast.Call: lambda node: _different(keyword.arg for keyword in node.keywords),
    ast.Dict: lambda node: None not in node.keys,
    ast.Compare: lambda node: len(node.ops) == 1,
    ast.UnaryOp: lambda node: not isinstance(node.op, ast.UAdd),
    ast.ListComp: _plain_comprehension,
    ast.DictComp: _plain_comprehension,
}
