"""The operators that a graph's nodes can name: those of the dispatcher, and the primitives that only
TorchScript has.

    aten::add.Tensor(Tensor self, …)    the dispatcher's: see register_c10_ops.py
    aten::add.int(int a, int b) -> int  a primitive: Python's numbers, lists, dicts and strings inside a graph

In PyTorch: `torch/csrc/jit/runtime/operator.h`. Explained in the chapter "JIT: scripting".
"""

from readtorch.csrc.jit.frontend.function_schema_parser import parse_schema
from readtorch.csrc.jit.ir.type import evalTypeVariables, matchTypeVariables

_declared = {}  # name -> [(schema text, make_operation, takes_node)], not yet read
_operators = {}  # name -> [Operator], in the order in which they are tried
_sources = []  # (operators_of(name), names()) of registries that come first: the dispatcher's
_function_sources = []  # functions_of(name): operators that are written in TorchScript


class Operator:
    """A schema and what computes it.

    operation(node) gives the function that a node runs: it takes the values of the inputs, one by one, and
    returns the value of the output, a tuple of several, or None where there is no output.
    """

    def __init__(self, schema, operation):
        self.schema = schema
        self.operation = operation

    def __repr__(self):
        return f"<Operator {self.schema}>"


def prim(text):
    """Decorator: `function` computes the primitive operator whose schema is `text`, for any node."""

    def declare(function):
        _declare(text, lambda node: function)
        return function

    return declare


def prim_of_node(text):
    """Decorator: `make(node)` gives the function; for operators that read attributes or types of their
    node.
    """

    def declare(make):
        _declare(text, make)
        return make

    return declare


def _declare(text, operation):
    name = text.partition("(")[0].partition(".")[0]
    _declared.setdefault(name, []).append((text, operation))
    _operators.pop(name, None)


def add_source(operators_of, names):
    """Ask another registry before the primitives: `operators_of(name)` lists Operators, `names()` all their names."""
    _sources.append((operators_of, names))


def add_function_source(functions_of):
    """Ask `functions_of(name)` for the GraphFunctions that do the work of the operator `name`."""
    _function_sources.append(functions_of)


def getAllOperatorsFor(name):
    """All overloads of an operator, such as "aten::add", in the order in which they are tried."""
    if name not in _operators:
        found = [operator for operators_of, _ in _sources for operator in operators_of(name)]
        found += [Operator(parse_schema(text), operation) for text, operation in _declared.get(name, ())]
        _operators[name] = found
    return _operators[name]


def getAllBuiltinFunctionsFor(name):
    """The operators of that name that are written in TorchScript (frontend/builtin_functions.py), as GraphFunctions."""
    return [function for functions_of in _function_sources for function in functions_of(name)]


def all_names():
    """The names of all operators but those written in TorchScript."""
    return sorted({*_declared, *(name for _, names in _sources for name in names())})


def find_operator(node):
    """The first operator whose schema the node's inputs fit, or None."""
    return next((o for o in getAllOperatorsFor(node.kind()) if inputs_fit(o.schema, node.inputs())), None)


def inputs_fit(schema, inputs):
    """Whether `inputs` (Values) may be the arguments, all of them, of an operator with this schema."""
    if len(inputs) < len(schema.arguments) or (len(inputs) > len(schema.arguments) and not schema.is_vararg):
        return False
    env = {}
    for argument, value in zip(schema.arguments, inputs):
        formal = argument.type
        if formal.hasFreeVariables():
            if matchTypeVariables(formal, value.type(), env) is not None:
                return False
            formal = evalTypeVariables(formal, env)
        if not value.type().isSubtypeOf(formal):
            return False
    return True


def missing_operator(node):
    """The error for a node that names no operator."""
    types = ", ".join(v.type().str() for v in node.inputs())
    candidates = "".join(f"  {o.schema}\n" for o in getAllOperatorsFor(node.kind()))
    listed = f"candidates were:\n{candidates}" if candidates else "no candidates found\n"
    return RuntimeError(
        f"Schema not found for node. File a bug report.\nNode: {node}\nInput types:{types}\n{listed}"
        f"within the graph:\n{node.owningGraph()}"
    )
