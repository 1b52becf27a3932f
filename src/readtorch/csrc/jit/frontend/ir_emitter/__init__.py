"""The compiler: from a function's syntax tree to a graph.

It walks the tree once. For every expression it inserts nodes and returns what the expression means (a
SugaredValue); variables go through an Environment. The methods are grouped by what they compile:

    statements.py      one statement after another, return, raise, assert, with
    control_flow.py    if, while, for
    assignments.py     =, +=, unpacking
    conditions.py      and, or, not, is None, isinstance: conditions that refine types
    expressions.py     literals, operators, comprehensions
    subscripts.py      x[...]
    calls.py           calls that look at their arguments' trees

Then convert_to_ssa.py replaces variables by values, and cleanup_passes.py removes what is superfluous.

In PyTorch: `struct to_ir` in `torch/csrc/jit/frontend/ir_emitter.cpp`. Explained in the chapter "JIT:
scripting".
"""

from readtorch.csrc.jit.frontend.convert_to_ssa import ConvertToSSA
from readtorch.csrc.jit.frontend.error_report import CallStackGuard, ErrorReport
from readtorch.csrc.jit.frontend.script_type_parser import INFERRED, ScriptTypeParser
from readtorch.csrc.jit.frontend.sugared_value import SimpleValue
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.ir.type import NoneType

from .assignments import Assignments
from .calls import Calls
from .cleanup_passes import run_cleanup_passes
from .conditions import Conditions
from .control_flow import ControlFlow
from .environment import Environment, is_meaningful
from .expressions import Expressions
from .statements import Statements
from .subscripts import Subscripts


def compile_definition(function, definition, resolver, make_self=None, self_type=None):
    """Give `function` (a GraphFunction) the graph and the schema that `definition` spells.

    resolver: resolves the names that are not variables. Of a method: self_type, and make_self(value), the
    SugaredValue of `self`.
    """
    emitter = Emitter(function, definition, resolver)
    emitter.run(make_self, self_type)
    function.graph = emitter.graph
    function.setSchema(emitter.schema)
    ConvertToSSA(emitter.graph)
    run_cleanup_passes(emitter.graph)


def compile_lazily(unit, name, definition, resolver, make_self=None, self_type=None):
    """A new function of the CompilationUnit `unit` whose graph is made when it is first asked for."""

    def create(function):
        shown = function.name if self_type is None else f"{self_type.name()}.{function.name}"
        with CallStackGuard(shown, definition.range()):
            compile_definition(function, definition, resolver, make_self, self_type)

    return unit.create_function(name, None, create, mangle=self_type is None)


class Emitter(Statements, ControlFlow, Assignments, Conditions, Expressions, Subscripts, Calls):
    """Compiles one function. graph: what it makes; frame: the variables of the block that is being filled."""

    def __init__(self, function, definition, resolver):
        self.function = function
        self.definition = definition
        self.resolver = resolver
        self.text = definition.text
        self.types = ScriptTypeParser(self.text, resolver)
        self.graph = Graph()
        self.frame = Environment(self, self.graph.block())
        self.exit_blocks = set()  # blocks that return or raise: what follows in them is not compiled
        self.loop = None  # None, "loop" or "unrolled": what a `break` would leave
        self.declared_return = None  # the annotated type of the result
        self.merged_return = None  # what the return statements so far have in common
        self.temporaries = 0

    def range(self, node):
        return self.text.range(node)

    def temporary(self, prefix):
        """A name that no program can spell."""
        self.temporaries += 1
        return f"${prefix}{self.temporaries - 1}"

    def is_initializing(self, type):
        """Whether this is `__init__` of the class `type`."""
        inputs = self.graph.inputs()
        return self.function.name == "__init__" and bool(inputs) and inputs[0].type() is type

    # -------------------------------------------------------------------------------------- a definition

    def run(self, make_self, self_type):
        definition = self.definition
        parameters = list(definition.parameters)
        if self_type is not None and not parameters:
            raise ErrorReport(definition.range(), "methods must have a self argument")
        if definition.returns is not None:
            self.declared_return = self.types.type(definition.returns)
        arguments = []
        if self_type is not None:
            arguments.append(self._self_parameter(parameters.pop(0), make_self, self_type))
        arguments += [self._parameter(p) for p in parameters]
        self.statements(definition.body)
        self._maybe_no_return()
        # A placeholder: the values that are returned get here in exit_transforms.py.
        placeholder = self.graph.insertNode(self.graph.createUninitialized(self.merged_return)).output()
        self.graph.registerOutput(placeholder)
        self.schema = FunctionSchema(self.function.name, "", tuple(arguments), (Argument("", self.merged_return),))

    def _self_parameter(self, parameter, make_self, self_type):
        value = self.graph.addInput().setType(self_type).setDebugName(parameter.name)
        self.frame.set(
            self.range(parameter.node), parameter.name, make_self(value) if make_self else SimpleValue(value)
        )
        return Argument(parameter.name, self_type)

    def _parameter(self, parameter):
        type, length = INFERRED, None
        if parameter.annotation is not None:
            type = self.types.type(parameter.annotation)
            length = self.types.broadcast_length(parameter.annotation)
        value = self.graph.addInput().setType(type)
        if is_meaningful(parameter.name):
            value.setDebugName(parameter.name)
        self.frame.set_value(self.range(parameter.node), parameter.name, value)
        has_default = parameter.name in self.definition.defaults
        default = self._default(parameter, type, length) if has_default else None
        return Argument(parameter.name, type, length, default, parameter.keyword_only, has_default)

    def _default(self, parameter, type, length):
        from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue  # calls of functions, which hold graphs

        value = self.definition.defaults[parameter.name]
        if length is not None and isinstance(value, (int, float)):
            value = [value] * length
        converted = to_ivalue(value, type)
        if converted is REJECTED:
            raise RuntimeError(
                f'Expected a default value of type {type.annotation_str} on parameter "{parameter.name}".'
            )
        return converted

    def _maybe_no_return(self):
        """A function that may come to its end returns None."""
        if self.graph.block() in self.exit_blocks:
            if self.merged_return is None:
                self.merged_return = self.declared_return or NoneType.get()
            return
        if self.declared_return is not None and not isinstance(self.declared_return, NoneType):
            raise ErrorReport(
                self.definition.range(),
                "Function was not annotated as having type None, but does not return along all paths",
            )
        self.return_value(self.definition.range(), self.graph.insertConstant(None, None, self.definition.range()))
