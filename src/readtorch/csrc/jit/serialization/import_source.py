"""The classes and functions of an archive, compiled from its text when something first names them.

In PyTorch: `torch/csrc/jit/serialization/import_source.cpp`. Explained in the chapter "JIT: scripting".
"""

import ast
import enum
import math
import re

from readtorch.c10.device import device as Device
from readtorch.csrc.jit.api.compilation_unit import CompilationUnit
from readtorch.csrc.jit.frontend.definition import Text, build_definition, parse_expression
from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.ir_emitter import compile_lazily
from readtorch.csrc.jit.frontend.parser import parse_archived
from readtorch.csrc.jit.frontend.resolver import Resolver
from readtorch.csrc.jit.frontend.script_type_parser import ScriptTypeParser, dotted_name
from readtorch.csrc.jit.frontend.sugared_value import (
    BuiltinModule,
    ClassValue,
    EnumClassValue,
    FunctionValue,
    NamedTupleConstructor,
    SimpleValue,
    SpecialForm,
    SugaredValue,
)
from readtorch.csrc.jit.ir.constants import type_of_value
from readtorch.csrc.jit.ir.function_schema import Argument, FunctionSchema
from readtorch.csrc.jit.ir.type import ClassType, EnumType, InterfaceType, NoneType, TensorType, TupleType


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
        number = {"inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "nanj": complex(0, math.nan)}.get(
            name
        )
        return None if number is None else SimpleValue(emitter.graph.insertConstant(number, None, range))

    def resolve_type(self, name, range):
        return self.find_type(name) if name.startswith("__torch__") else None

    def find_type(self, name):
        """The type of that qualified name, or None."""
        tree = self._take(name, ast.ClassDef)
        if tree is not None:
            self._class(name, *tree)
        return self.unit.get_type(name)

    def type_of_text(self, text):
        """The type that an annotation in the archive's pickle spells."""
        return ScriptTypeParser(Text(text), self).type(parse_expression(text))

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
            text, tree = parse_archived(source, f"code/{qualifier.replace('.', '/')}.py")
            for node in tree.body:
                if isinstance(node, (ast.ClassDef, ast.FunctionDef)):
                    self.waiting[f"{qualifier}.{node.name}"] = text, node

    def _definition(self, text, node):
        names, values = [a.arg for a in node.args.args], node.args.defaults
        defaults = {n: self._constant(v, text) for n, v in zip(names[len(names) - len(values) :], values)}
        node.args.defaults = []
        return build_definition(node, text, defaults=defaults)

    def _constant(self, node, text):
        """The value of a literal in the text. Raises ErrorReport if it is none."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self._constant(node.operand, text)
            if type(value) in (int, float, complex):
                return -value
        elif isinstance(node, ast.Name) and node.id in ("inf", "nan"):
            return float(node.id)
        elif isinstance(node, (ast.Tuple, ast.List)):
            return (tuple if isinstance(node, ast.Tuple) else list)(self._constant(e, text) for e in node.elts)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values)
            return {self._key(key, text): self._constant(value, text) for key, value in pairs}
        elif isinstance(node, ast.Constant) and node.value is not Ellipsis:
            return node.value
        elif isinstance(node, ast.BinOp):  # 1.0+2.0j
            parts = self._constant(node.left, text), self._constant(node.right, text)
            sign = {ast.Add: 1, ast.Sub: -1}.get(type(node.op))
            if type(parts[0]) in (int, float) and type(parts[1]) is complex and sign:
                return parts[0] + sign * parts[1]
        elif isinstance(node, ast.Attribute) and dotted_name(node.value) == "CONSTANTS":
            return _table_entry(self.constants, node.attr, text.range(node))
        elif isinstance(node, ast.Call) and dotted_name(node.func) == "torch.device" and len(node.args) == 1:
            return Device(self._constant(node.args[0], text))
        raise ErrorReport(text.range(node), "Expected a literal")

    def _key(self, node, text):
        key = self._constant(node, text)
        if type(key) not in (int, float, bool, str):
            raise ErrorReport(text.range(node), "Expected a literal that can be a key")
        return key

    # ------------------------------------------------------------------------------------------- classes

    def _class(self, name, text, node):
        base = node.bases[0].id if node.bases else None
        if base in (None, "Module"):
            self._object_class(name, text, node, is_module=base == "Module")
        elif base == "NamedTuple":
            parser = ScriptTypeParser(text, self)
            _only(node, text, ast.AnnAssign, "NamedTuple body: only attribute annotations are currently supported.")
            fields = [(s.target.id, parser.type(s.annotation)) for s in node.body]
            defaults = {s.target.id: self._constant(s.value, text) for s in node.body if s.value is not None}
            self.unit.register_type(TupleType([t for _, t in fields], name, [n for n, _ in fields], defaults))
        elif base == "Enum":
            self._enum(name, text, node)
        elif base in ("Interface", "ModuleInterface"):
            self._interface(name, text, node, base == "ModuleInterface")
        else:
            raise ErrorReport(text.range(node), "Torchscript does not support class inheritance.")

    def _enum(self, name, text, node):
        _only(node, text, ast.Assign, "Enum body: only assignments are supported.")
        members = {s.targets[0].id: self._constant(s.value, text) for s in node.body}
        kinds = {type_of_value(value).annotation_str for value in members.values()}
        good = len(kinds) == 1 and kinds <= {"int", "float", "str"}
        if not good or any(name.startswith("_") or name == "mro" for name in members):
            raise ErrorReport(text.range(node), "an Enum has members with names, all int, all float or all str")
        value_type = type_of_value(next(iter(members.values())))
        self.unit.register_type(EnumType(name, value_type, members, enum.Enum(node.name, members)))

    def _interface(self, name, text, node, is_module):
        parser = ScriptTypeParser(text, self)
        _only(node, text, ast.FunctionDef, "interface: only methods are supported.")
        type = self.unit.register_type(InterfaceType(name, {}, is_module))
        for method in node.body:
            typed = [a.annotation for a in method.args.args[1:]] + [method.returns]
            if None in typed or not method.args.args:
                message = "a method of an interface has types of all arguments and of its result"
                raise ErrorReport(text.range(method), message)
            arguments = [Argument("self", type)]
            arguments += [Argument(a.arg, parser.type(a.annotation)) for a in method.args.args[1:]]
            returns = (Argument("", parser.type(method.returns)),)
            type.schemas[method.name] = FunctionSchema(method.name, "", tuple(arguments), returns)

    def _object_class(self, name, text, node, is_module):
        type = self.unit.register_type(ClassType(name, self.unit, is_module))
        _Attributes(self, type, text).read(node)
        methods = [s for s in node.body if isinstance(s, ast.FunctionDef)]
        names = [method.name for method in methods]
        if len(set(names)) < len(names):
            raise ErrorReport(text.range(node), f"Can't redefine a method on class: {name}")
        hooks = [_listed(node, text, f"__forward_{kind}__") for kind in ("hooks", "pre_hooks")]
        made = []
        for method in methods:
            function = compile_lazily(
                self.unit, f"{name}.{method.name}", self._definition(text, method), self, None, type
            )
            made.append(function)
            if method.name not in [*hooks[0], *hooks[1]]:
                type.addMethod(function)
        by_name = {function.name: function for function in made}
        for names, kept in zip(hooks, (type.hooks, type.pre_hooks)):
            if not set(names) <= set(by_name):
                raise ErrorReport(text.range(node), "a hook that is no method")
            kept += [by_name[each] for each in names]
        for function in sorted(made, key=lambda f: f.name != "__init__"):
            function.ensure_defined()


def _only(node, text, kind, where):
    """Raise ErrorReport if a class's body holds anything else than `kind`, of plain names."""
    for statement in node.body:
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        if not isinstance(statement, kind) or (target is not None and not isinstance(target, ast.Name)):
            raise ErrorReport(text.range(statement), f"Unexpected statement in {where}")


def _listed(node, text, name):
    """The names in `name = ["a", "b"]` of a class."""
    names = []
    for statement in node.body:
        if isinstance(statement, ast.Assign) and _target(statement) == name:
            parts = statement.value.elts if isinstance(statement.value, ast.List) else [None]
            if not all(isinstance(part, ast.Constant) and isinstance(part.value, str) for part in parts):
                raise ErrorReport(text.range(statement), f"{name} must be a list of names")
            names += [part.value for part in parts]
    return names


def _target(statement):
    """The name that an assignment gives a value to, or None."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
    return target.id if isinstance(target, ast.Name) else None


class _Attributes:
    """The attributes that the body of a class declares: `x : Tensor`, `__annotations__["0"] = T`, `n :
    Final[int] = 3`.
    """

    LISTS = "__parameters__", "__buffers__", "__annotations__", "__forward_hooks__", "__forward_pre_hooks__"

    def __init__(self, importer, type, text):
        self.importer = importer
        self.type = type
        self.text = text
        self.parser = ScriptTypeParser(text, importer)

    def read(self, node):
        self.parameters, self.buffers = (_listed(node, self.text, name) for name in self.LISTS[:2])
        for statement in node.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and _target(statement) not in self.LISTS:
                self.declaration(statement)

    def declaration(self, statement):
        name = _target(statement)
        if isinstance(statement, ast.Assign):
            name, annotation = _annotated(statement), statement.value
        else:
            annotation = statement.annotation
        if name is None:
            raise ErrorReport(self.text.range(statement), "Unexpected statement in module metadata")
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            if name in self.type.constants or self.type.hasAttribute(name):
                message = f"attempting to add constant '{name}' to {self.type.annotation_str}"
                raise ErrorReport(self.text.range(statement), f"{message} but a field of the same name already exists")
            self.type.constants[name] = self.constant(statement)
            return
        found = self.parser.type(annotation)
        holds_tensor = isinstance(found, TensorType) or not isinstance(found, NoneType)
        kinds = (name in names and holds_tensor for names in (self.parameters, self.buffers))
        self.type.addAttribute(name, found, *kinds)

    def constant(self, statement):
        """The value of `n : Final[int] = 3`."""
        annotation = statement.annotation
        if not isinstance(annotation, ast.Subscript) or dotted_name(annotation.value) != "Final":
            raise ErrorReport(self.text.range(annotation), "Expected subscripted type for class constant")
        declared, value = self.parser.type(annotation), self.importer._constant(statement.value, self.text)
        if not type_of_value(value).isSubtypeOf(declared):
            message = f"a class constant must be of its type {declared.annotation_str}"
            raise ErrorReport(self.text.range(statement.value), message)
        return value


def _annotated(statement):
    """The name in `__annotations__["0"] = T`, or None."""
    target = statement.targets[0]
    if isinstance(target, ast.Subscript) and dotted_name(target.value) == "__annotations__":
        key = target.slice
        return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None
    return None


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
        if self.namespace == "prim" and name in _MADE_BY_THE_COMPILER:
            raise ErrorReport(range, f"Unknown builtin op: prim::{name}")
        return super().attr(range, emitter, name)


# Their nodes say more than a call can.
_MADE_BY_THE_COMPILER = {"PythonOp", "TensorExprGroup", "tolist", "isinstance"}


class _Raise(SugaredValue):
    """`ops.prim.RaiseException("message", "builtins.ValueError")`."""

    def call(self, range, emitter, args, kwargs):
        values = [a.value(emitter.graph) for a in args]
        emitter.raise_exception(range, *values)
        return SimpleValue(emitter.graph.insertConstant(None, None, range))


def _table_entry(constants, name, range):
    """The constant that the text calls `CONSTANTS.c12`, by its name there, "c12". Raises ErrorReport if there is none."""
    if not re.fullmatch(".[0-9]+", name):
        raise ErrorReport(range, f"invalid constant specifier: {name}")
    i = min(int(name[1:20]), (1 << 63) - 1)  # more digits change nothing: no table is that long
    if i >= len(constants):
        raise ErrorReport(range, f"constant index {i} is out of bounds (constant table has {len(constants)} entries)")
    return constants[i]


class _Constants(SugaredValue):
    kind = "CONSTANTS"

    def __init__(self, constants):
        self.constants = constants

    def attr(self, range, emitter, name):
        value = emitter.graph.insertConstant(_table_entry(self.constants, name, range), None, range)
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
        special = name == "__new__" or self.type.findMethod(name) is not None
        function = None if special else self.importer.find_function(f"{self.type.qualified}.{name}")
        return FunctionValue(function) if function is not None else super().attr(range, emitter, name)
