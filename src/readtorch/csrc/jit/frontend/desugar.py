"""Rewrites what Python has several spellings for, so that the compiler has fewer kinds of trees.

    a < b < c                (a < b) and (b < c)
    a and b and c            (a and b) and c
    x not in xs              not (x in xs)
    f"{x} of {n}"            "{} of {}".format(x, n)
    list(x for x in xs)      list([x for x in xs])

In PyTorch: part of `torch/jit/frontend.py`. Explained in the chapter "JIT: scripting".
"""

import ast
import functools


def desugar(body, text):
    """The statements, rewritten. text: for the ranges of errors."""
    rewriter = _Rewriter(text)
    return [rewriter.visit(statement) for statement in body]


def _at(new, *old):
    """`new` stands where `old` (its first to its last part) stood."""
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
        from .definition import NotSupportedError  # definitions are desugared

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
