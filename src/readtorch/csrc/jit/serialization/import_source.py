"""The classes and functions of an archive, compiled from its text when something first names them.

In PyTorch: `torch/csrc/jit/serialization/import_source.cpp`. Explained in the chapter "JIT: scripting".
"""

import ast
import enum
import math

from ....c10.device import device as Device
from ..api.compilation_unit import CompilationUnit
from ..frontend.callables import ClassValue, EnumClassValue, FunctionValue, NamedTupleConstructor, SpecialForm
from ..frontend.definition import build_definition, parse_text
from ..frontend.error_report import ErrorReport
from ..frontend.ir_emitter import compile_lazily
from ..frontend.resolver import BuiltinModule, Resolver
from ..frontend.script_type_parser import ScriptTypeParser
from ..frontend.sugared_value import SimpleValue, SugaredValue
from ..ir.function_schema import Argument, FunctionSchema
from ..ir.type import ClassType, EnumType, InterfaceType, NoneType, TensorType, TupleType


class SourceImporter(Resolver):
    """sources(name): the text of the file for a qualified name such as `__torch__.nets`, or None. constants:
    CONSTANTS.c0, …
    """

    allows_closures = True  # the bodies of forks

    def __init__(self, sources, constants):
        self.unit = CompilationUnit()
        self.sources = sources
        self.constants = constants
        self.read = set()  # files
        self.waiting = {}  # qualified name -> (Text, tree) that has not been compiled
        self.names = {
            "torch": BuiltinModule("aten"),
            "ops": _Operators(),
            "CONSTANTS": _Constants(constants),
            "__torch__": _Namespace("__torch__", self),
            **{name: SpecialForm(name) for name in ("fork", "annotate", "unchecked_cast", "uninitialized")},
        }

    # ----------------------------------------------------------------------------------- names in the text

    def resolve_value(self, name, emitter, range):
        if name in self.names:
            return self.names[name]
        number = {
            "inf": math.inf,
            "nan": math.nan,
            "infj": complex(0, math.inf),
            "nanj": complex(0, math.nan),
        }.get(name)
        return None if number is None else SimpleValue(emitter.graph.insertConstant(number, None, range))

    def resolve_type(self, name, range):
        return self.find_type(name) if name.startswith("__torch__") else None

    def find_type(self, name):
        """The type of that qualified name, or None."""
        tree = self._take(name, ast.ClassDef)
        if tree is not None:
            self._class(name, *tree)
        return self.unit.get_type(name)

    def find_function(self, name):
        tree = self._take(name, ast.FunctionDef)
        if tree is not None:
            compile_lazily(self.unit, name, self._definition(*tree), self).ensure_defined()
        return self.unit.find_function(name)

    def _take(self, name, kind):
        """What is waiting under that name, if it is a `kind`."""
        self._read_file(name.rpartition(".")[0])
        if name in self.waiting and isinstance(self.waiting[name][1], kind):
            return self.waiting.pop(name)
        return None

    def _read_file(self, qualifier):
        if not qualifier or qualifier in self.read:
            return
        self.read.add(qualifier)
        source = self.sources(qualifier)
        if source is not None:
            text, tree = parse_text(source, f"code/{qualifier.replace('.', '/')}.py")
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.waiting[f"{qualifier}.{node.name}"] = text, node

    def _definition(self, text, node):
        names, values = [a.arg for a in node.args.args], node.args.defaults
        defaults = {n: self._constant(v) for n, v in zip(names[len(names) - len(values) :], values)}
        node.args.defaults = []
        return build_definition(node, text, defaults=defaults)

    def _constant(self, node):
        """The value of a literal in the text."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -self._constant(node.operand)
        if isinstance(node, ast.Name):
            return {"inf": math.inf, "nan": math.nan}[node.id]
        if isinstance(node, (ast.Tuple, ast.List)):
            return (tuple if isinstance(node, ast.Tuple) else list)(map(self._constant, node.elts))
        if isinstance(node, ast.Dict):
            return dict(zip(map(self._constant, node.keys), map(self._constant, node.values)))
        if (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "CONSTANTS"
        ):
            return self.constants[int(node.attr[1:])]
        if isinstance(node, ast.Call):  # torch.device("cpu")
            return Device(self._constant(node.args[0]))
        return ast.literal_eval(node)

    # ------------------------------------------------------------------------------------------- classes

    def _class(self, name, text, node):
        base = node.bases[0].id if node.bases else None
        if base in (None, "Module"):
            self._object_class(name, text, node, is_module=base == "Module")
        elif base == "NamedTuple":
            parser = ScriptTypeParser(text, self)
            fields = [(s.target.id, parser.type(s.annotation)) for s in node.body]
            defaults = {s.target.id: self._constant(s.value) for s in node.body if s.value is not None}
            self.unit.register_type(TupleType([t for _, t in fields], name, [n for n, _ in fields], defaults))
        elif base == "Enum":
            members = {s.targets[0].id: self._constant(s.value) for s in node.body}
            from ..ir.constants import type_of_value

            value_type = type_of_value(next(iter(members.values())))
            self.unit.register_type(EnumType(name, value_type, members, enum.Enum(node.name, members)))
        elif base in ("Interface", "ModuleInterface"):
            self._interface(name, text, node, base == "ModuleInterface")
        else:
            raise ErrorReport(text.range(node), "Torchscript does not support class inheritance.")

    def _interface(self, name, text, node, is_module):
        parser = ScriptTypeParser(text, self)
        type = self.unit.register_type(InterfaceType(name, {}, is_module))
        for method in node.body:
            arguments = [Argument("self", type)]
            arguments += [Argument(a.arg, parser.type(a.annotation)) for a in method.args.args[1:]]
            returns = (Argument("", parser.type(method.returns)),)
            type.schemas[method.name] = FunctionSchema(method.name, "", tuple(arguments), returns)

    def _object_class(self, name, text, node, is_module):
        type = self.unit.register_type(ClassType(name, self.unit, is_module))
        _Attributes(self, type, text).read(node)
        methods = [s for s in node.body if isinstance(s, ast.FunctionDef)]
        hooks = _listed(node, "__forward_hooks__"), _listed(node, "__forward_pre_hooks__")
        made = []
        for method in methods:
            function = compile_lazily(
                self.unit, f"{name}.{method.name}", self._definition(text, method), self, None, type
            )
            made.append(function)
            if method.name not in [*hooks[0], *hooks[1]]:
                type.addMethod(function)
        for names, kept in zip(hooks, (type.hooks, type.pre_hooks)):
            kept += [next(f for f in made if f.name == each) for each in names]
        for function in sorted(made, key=lambda f: f.name != "__init__"):
            function.ensure_defined()


def _listed(node, name):
    """The names in `name = [...]` of a class."""
    for statement in node.body:
        if (
            isinstance(statement, ast.Assign)
            and isinstance(statement.targets[0], ast.Name)
            and statement.targets[0].id == name
        ):
            return ast.literal_eval(statement.value)
    return []


class _Attributes:
    """The attributes that the body of a class declares: `x : Tensor`, `__annotations__["0"] = T`, `n :
    Final[int] = 3`.
    """

    def __init__(self, importer, type, text):
        self.importer = importer
        self.type = type
        self.parser = ScriptTypeParser(text, importer)

    def read(self, node):
        parameters, buffers = _listed(node, "__parameters__"), _listed(node, "__buffers__")
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.type.constants[statement.target.id] = self.importer._constant(statement.value)
                continue
            if isinstance(statement, ast.AnnAssign):
                name, annotation = statement.target.id, statement.annotation
            elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
                name, annotation = statement.targets[0].slice.value, statement.value
            else:
                continue
            found = self.parser.type(annotation)
            holds_tensor = isinstance(found, TensorType) or not isinstance(found, NoneType)
            self.type.addAttribute(
                name, found, name in parameters and holds_tensor, name in buffers and holds_tensor
            )


# -------------------------------------------------------------------------------------------- what names mean


class _Operators(SugaredValue):
    """`ops.prim.min`: operators of any namespace."""

    kind = "ops"

    def attr(self, range, emitter, name):
        return _Namespaced(name)


class _Namespaced(BuiltinModule):
    def attr(self, range, emitter, name):
        if self.namespace == "prim" and name == "RaiseException":
            return _Raise()
        return super().attr(range, emitter, name)


class _Raise(SugaredValue):
    """`ops.prim.RaiseException("message", "builtins.ValueError")`."""

    def call(self, range, emitter, args, kwargs):
        values = [a.value(emitter.graph) for a in args]
        emitter.raise_exception(range, *values)
        return SimpleValue(emitter.graph.insertConstant(None, None, range))


class _Constants(SugaredValue):
    kind = "CONSTANTS"

    def __init__(self, constants):
        self.constants = constants

    def attr(self, range, emitter, name):
        i = int(name[1:]) if name[1:].isdigit() else -1
        if not 0 <= i < len(self.constants):
            raise ErrorReport(
                range,
                f"constant index {i} is out of bounds (constant table has {len(self.constants)} entries)",
            )
        value = emitter.graph.insertConstant(self.constants[i], None, range)
        if isinstance(value.type(), TensorType):
            value.setType(TensorType.get())
        return SimpleValue(value)


class _Namespace(SugaredValue):
    """`__torch__.nets.Net`: a part of a qualified name, up to a class or function."""

    kind = "Class Namespace"

    def __init__(self, name, importer):
        self.name = name
        self.importer = importer

    def attr(self, range, emitter, name):
        full = f"{self.name}.{name}"
        type = self.importer.find_type(full)
        if isinstance(type, ClassType):
            return _ImportedClass(type, self.importer)
        if isinstance(type, TupleType):
            return NamedTupleConstructor(type)
        if isinstance(type, EnumType):
            return EnumClassValue(type)
        function = self.importer.find_function(full)
        return FunctionValue(function) if function is not None else _Namespace(full, self.importer)


class _ImportedClass(ClassValue):
    """A class; a function may be named after it: what was a static method."""

    def __init__(self, type, importer):
        super().__init__(type)
        self.importer = importer

    def attr(self, range, emitter, name):
        function = self.importer.find_function(f"{self.type.qualified}.{name}") if name != "__new__" else None
        return FunctionValue(function) if function is not None else super().attr(range, emitter, name)
