"""The body of a method marked `@unused`: an exception.

In PyTorch: `get_jit_def` in `torch/jit/frontend.py`.
"""

import ast

from readtorch.csrc.jit.frontend.definition import build_definition, parse_object


def unused_definition(function, name):
    """The Definition of a function with its parameters and the type of its result, and a body that raises."""
    text, tree = parse_object(function)
    node = tree.body[0]
    body = ast.parse('raise RuntimeError("Cannot call @unused methods")').body
    for part in ast.walk(body[0]):
        ast.copy_location(part, node)
    node.body, node.decorator_list = body, []
    node.args.vararg = node.args.kwarg = None
    for argument in node.args.args + node.args.kwonlyargs:
        if argument.arg != "self":
            argument.annotation = ast.copy_location(ast.Name("Any", ast.Load()), argument)
    return build_definition(node, text, name)
