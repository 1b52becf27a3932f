"""A function's text as a syntax tree, and where in the text each part of the tree is.

The trees are Python's own (`ast`). What Python has several spellings for is rewritten, so that the compiler has fewer
kinds of trees:

    a < b < c                (a < b) and (b < c)
    a and b and c            (a and b) and c
    x not in xs              not (x in xs)
    f"{x} of {n}"            "{} of {}".format(x, n)
    list(x for x in xs)      list([x for x in xs])

In PyTorch: `torch/jit/frontend.py` builds trees of its own (`torch/csrc/jit/frontend/tree_views.h`), which the parser of
serialized code (`torch/csrc/jit/frontend/parser.cpp`) makes as well. Explained in the chapter "JIT: scripting".
"""

import ast
import bisect
import functools
import inspect
import re
import textwrap
from array import array
from dataclasses import dataclass, field
from itertools import accumulate

from .error_report import ErrorReport, report_text
from .source_range import Source, SourceRange


class Text:
    """A source, and the ranges of its trees. blanks: by how many characters the lines were dedented for `ast`."""

    def __init__(self, text, filename=None, first_line=1, blanks=0):
        self.source = Source(text, filename, first_line)
        self.blanks = blanks
        self.lines = text.split("\n")
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)
        self._columns = {}

    def position(self, line, column):
        """The character at a line (from 1) and a column, which `ast` counts in bytes."""
        if not self.lines[line - 1].isascii():
            column = bisect.bisect_left(self._columns_of(line), column)
        return self.starts[line - 1] + self.blanks + column

    def _columns_of(self, line):
        """Where each character of a line begins, in bytes. Made once: a line of an archive may hold a million trees."""
        if line not in self._columns:
            lengths = (len(character.encode()) for character in self.lines[line - 1][self.blanks :])
            self._columns[line] = array("Q", accumulate(lengths, initial=0))
        return self._columns[line]

    def range(self, node):
        """The SourceRange of a tree, as PyTorch's trees have it: closing brackets do not belong to it."""
        start = self.position(node.lineno, node.col_offset)
        return SourceRange(self.source, start, max(self.end(node), start + 1))

    def end(self, node):
        """Where the last part of a tree ends."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return self.position(node.lineno, node.col_offset) + len(node.value) + 1
        parts = _last_parts(node)
        if parts:
            return max(map(self.end, parts))
        if isinstance(node, (ast.List, ast.Tuple, ast.Dict)):
            return self.position(node.lineno, node.col_offset) + 1
        return self.position(node.end_lineno, node.end_col_offset)

    def first_word(self, node):
        """The range of the keyword that a statement begins with."""
        start = self.position(node.lineno, node.col_offset)
        end = start
        while end < len(self.source.text) and self.source.text[end].isidentifier():
            end += 1
        return SourceRange(self.source, start, max(end, start + 1))

    def first_character(self, node):
        """The range of an expression's first character."""
        start = self.position(node.lineno, node.col_offset)
        return SourceRange(self.source, start, start + 1)


def _last_parts(node):
    """The parts of a tree one of which ends last."""
    if isinstance(node, ast.Call):
        return [node.func, *node.args, *[k.value for k in node.keywords]]
    if isinstance(node, (ast.List, ast.Tuple)):
        return node.elts
    if isinstance(node, ast.Dict):
        return node.values
    if isinstance(node, (ast.BinOp, ast.Compare)):
        return [node.right if isinstance(node, ast.BinOp) else node.comparators[-1]]
    if isinstance(node, ast.BoolOp):
        return node.values[-1:]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.IfExp):
        return [node.orelse]
    if isinstance(node, (ast.Return, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr)):
        return [node.value] if node.value is not None else []
    body = getattr(node, "orelse", None) or getattr(node, "body", None)
    return body[-1:] if isinstance(body, list) else []


@dataclass
class Parameter:
    """annotation: a tree, or None."""

    name: str
    annotation: object
    keyword_only: bool
    node: object


@dataclass
class Definition:
    """One `def`. returns: the annotation's tree, or None. defaults: parameter name -> Python value."""

    name: str
    parameters: list
    returns: object
    body: list
    text: Text
    node: object
    defaults: dict = field(default_factory=dict)

    def range(self):
        return self.text.range(self.node)


_VARARGS = "Compiled functions can't take variable number of arguments or use keyword-only arguments with defaults"


def build_definition(node, text, name=None, defaults=None):
    """A Definition from an `ast.FunctionDef`. Raises ErrorReport for `*args` and `**kwargs`."""
    arguments = node.args
    for extra in (arguments.kwarg, arguments.vararg, *filter(None, arguments.kw_defaults)):
        if extra is not None:
            raise NotSupportedError(_starred(text, extra), _VARARGS)
    parameters = [Parameter(a.arg, a.annotation, False, a) for a in [*arguments.posonlyargs, *arguments.args]]
    parameters += [Parameter(a.arg, a.annotation, True, a) for a in arguments.kwonlyargs]
    definition = Definition(
        name or node.name, parameters, node.returns, desugar(node.body, text), text, node, defaults or {}
    )
    _take_type_comment(definition)
    return definition


def _starred(text, argument):
    """The range of `*args`: the tree begins behind the star."""
    range = text.range(argument)
    return SourceRange(range.source, range.start - (not isinstance(argument, ast.Constant)), range.end)


class NotSupportedError(Exception):
    """A part of Python that TorchScript does not support."""

    def __init__(self, range, message):
        super().__init__(report_text(range, message).lstrip())


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that TorchScript does not support."""


def definition_of(function, name=None):
    """The Definition of a Python function. Raises OSError if its source cannot be found, RuntimeError for a
    lambda.
    """
    text, tree = parse_object(function)
    if len(tree.body) != 1 or not isinstance(tree.body[0], ast.FunctionDef):
        raise RuntimeError(
            f"Expected a single top-level function: {text.source.filename}:{text.source.starting_line_no}"
        )
    signature = inspect.signature(function).parameters.values()
    defaults = {p.name: p.default for p in signature if p.default is not p.empty}
    return build_definition(tree.body[0], text, name or function.__name__, defaults)


def parse_object(obj):
    """(Text, tree) of a function or a class."""
    try:
        filename = inspect.getsourcefile(obj)
        lines, first_line = inspect.getsourcelines(obj)
    except (OSError, TypeError) as error:
        raise OSError(
            f"Can't get source for {obj}. TorchScript requires source access in order to carry out "
            "compilation, "
            "make sure original .py files are available."
        ) from error
    original = "".join(lines)
    dedented = textwrap.dedent(original)
    first, first_dedented = original.split("\n", 1)[0], dedented.split("\n", 1)[0]
    text = Text(original, filename, first_line, len(first) - len(first_dedented))
    return text, ast.parse(dedented)


def parse_text(source, filename=None, first_line=1):
    """(Text, tree) of TorchScript text that is in no Python object. Raises ErrorReport if it is not Python."""
    text = Text(source, filename, first_line)
    return text, _parsed(source, "exec", text)


def parse_expression(source, range=None):
    """The tree of an expression inside another text. range: of that text. Raises ErrorReport."""
    return _parsed(source.strip(), "eval", None, range).body


def _parsed(source, mode, text, range=None):
    try:
        # Python opens the file of that name to show a wrong line: no file has none.
        return ast.parse(source, "", mode)
    except SyntaxError as error:
        if text is not None and error.lineno:
            line = min(error.lineno, len(text.lines))
            start = min(text.starts[line - 1] + max((error.offset or 1) - 1, 0), text.starts[line] - 1)
            range = SourceRange(text.source, start, start + 1)
        raise ErrorReport(range, f"this is no Python: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError) as error:  # a null, brackets nested too deep
        raise ErrorReport(range, f"this is no Python: {error or 'it is nested too deep'}") from None


# ---------------------------------------------------------------------------------------------- type comments

_TYPE_COMMENT = re.compile(r"#\s*type:\s*(?!ignore)(.*)$")


def _take_type_comment(definition):
    """`# type: (Tensor, int) -> Tensor` stands for annotations; or one comment a parameter and `(...) ->
    Tensor`.
    """
    first = definition.node.lineno - 1
    last = definition.node.end_lineno
    found = [m[1].strip() for line in definition.text.lines[first:last] if (m := _TYPE_COMMENT.search(line))]
    signature = next((t for t in found if "->" in t), None)
    if signature is None:
        return
    before, _, after = signature.partition("->")
    if before.strip() == "(...)":
        before = f"({', '.join(t for t in found if '->' not in t)})"
    parameters = [p for i, p in enumerate(definition.parameters) if not (i == 0 and p.name == "self")]
    where = definition.range()
    annotations = parse_expression(f"({before.strip()[1:-1]},)" if before.strip() != "()" else "()", where).elts
    if len(annotations) != len(parameters):
        raise ErrorReport(
            definition.range(),
            f"Number of type annotations for function parameters ({len(annotations)}) does "
            f"not match the number of parameters on the function ({len(parameters)})!",
        )
    for parameter, annotation in zip(parameters, annotations):
        parameter.annotation = _positioned(annotation, parameter.node)
    definition.returns = _positioned(parse_expression(after, where), definition.node)


def _positioned(tree, where):
    """A tree from a comment, with the position of what it annotates."""
    for node in ast.walk(tree):
        for name in ("lineno", "end_lineno", "col_offset", "end_col_offset"):
            setattr(node, name, getattr(where, name))
    return tree


def desugar(body, text):
    """The statements, rewritten. text: for the ranges of errors."""
    rewriter = _Rewriter(text)
    return [rewriter.visit(statement) for statement in body]


def _at(new, *old):
    """Give `new` the position of `old` (from its first to its last part)."""
    first, last = old[0], old[-1]
    new.lineno, new.col_offset = first.lineno, first.col_offset
    new.end_lineno, new.end_col_offset = last.end_lineno, last.end_col_offset
    return new


class _Rewriter(ast.NodeTransformer):
    def __init__(self, text):
        self.text = text

    def visit_Compare(self, node):
        self.generic_visit(node)
        operands = [node.left, *node.comparators]
        return functools.reduce(_and, map(_comparison, operands, node.ops, operands[1:]))

    def visit_BoolOp(self, node):
        self.generic_visit(node)
        return functools.reduce(lambda a, b: _at(ast.BoolOp(node.op, [a, b]), a, b), node.values)

    def visit_GeneratorExp(self, node):
        self.generic_visit(node)
        return _at(ast.ListComp(node.elt, node.generators), node)

    def visit_JoinedStr(self, node):
        self.generic_visit(node)
        template, arguments = "", []
        for part in node.values:
            if isinstance(part, ast.Constant):
                template += part.value
                continue
            if part.conversion != -1:
                raise NotSupportedError(self.text.range(part), "Don't support conversion in JoinedStr")
            if part.format_spec is not None:
                raise NotSupportedError(self.text.range(part), "Don't support formatting in JoinedStr")
            template += "{}"
            arguments.append(part.value)
        function = _at(ast.Attribute(_at(ast.Constant(template), node), "format", ast.Load()), node)
        return _at(ast.Call(function, arguments, []), node)


def _comparison(left, op, right):
    if isinstance(op, ast.NotIn):
        inside = _at(ast.Compare(left, [ast.In()], [right]), left, right)
        return _at(ast.UnaryOp(ast.Not(), inside), left, right)
    return _at(ast.Compare(left, [op], [right]), left, right)


def _and(left, right):
    return _at(ast.BoolOp(ast.And(), [left, right]), left, right)
