"""A Tracer that records `assert` and annotated assignments. In PyTorch: `torch/fx/experimental/rewriter.py`.

Python asks an `assert` for a truth value, which a Proxy has not. So the function's source is rewritten before it runs:
`assert x, m` becomes `torch._assert(x, m)`, which is recorded, and `y: T = x` becomes `y = annotate(x, T)`.
"""

import ast
import copy
import functools
import inspect
import textwrap
from types import FunctionType

from readtorch.fx._symbolic_trace import Tracer
from readtorch.nn import Module


class AST_Rewriter(ast.NodeTransformer):
    """Rewrites the source of a function. It must know `torch`, and `annotate` if it has annotated assignments."""

    def rewrite(self, fn):
        """The function of the rewritten source, with the globals of `fn`."""
        source = textwrap.dedent("".join(inspect.getsourcelines(fn)[0]))
        code = compile(ast.fix_missing_locations(self.visit(ast.parse(source))), "", "exec")
        names = dict(fn.__globals__)
        exec(code, names)
        [name] = names.keys() - fn.__globals__.keys() or [fn.__name__]
        made = names[name]
        new = FunctionType(made.__code__, fn.__globals__, made.__name__, made.__defaults__, made.__closure__)
        functools.update_wrapper(new, made)
        new.__kwdefaults__ = copy.copy(made.__kwdefaults__)
        return new

    def visit_Assert(self, node):
        call = ast.parse("torch._assert()", mode="eval").body
        call.args = [node.test, node.msg or ast.Constant("")]
        return ast.copy_location(ast.Expr(call), node)

    def visit_AnnAssign(self, node):
        call = ast.Call(ast.Name("annotate", ast.Load()), [node.value, node.annotation], [])
        return ast.Assign([node.target], call)


class RewritingTracer(Tracer):
    """A Tracer of rewritten functions and modules."""

    def trace(self, root, concrete_args=None):
        return super().trace(_rewrite(root), concrete_args)


def _rewrite(fn):
    """A function rewritten, or a module in which the `forward` of each module is."""
    if not isinstance(fn, Module):
        return AST_Rewriter().rewrite(fn)

    class RewrittenModule(Module):
        forward = AST_Rewriter().rewrite(fn.forward)

        def __init__(self, orig):
            super().__init__()
            for name, value in orig.__dict__.items():
                self.__dict__[name] = copy.copy(_rewrite(value) if isinstance(value, Module) else value)

    return RewrittenModule(fn)
