"""The variables of a program while it is compiled.

A variable that is a value of the graph is written with prim::Store and read with prim::Load, by name,
as the program does; `convert_to_ssa.py` replaces the names by the values later. What is no value of
the graph (a module, a function) is kept here. Each block has a frame of its own: what a branch assigns, the
other one does not see.

In PyTorch: `struct Environment` in `torch/csrc/jit/frontend/ir_emitter.cpp`. Explained in the chapter
"JIT: scripting".
"""

from readtorch.csrc.jit.frontend.error_report import ErrorReport
from readtorch.csrc.jit.frontend.schema_matching import try_convert_to_type
from readtorch.csrc.jit.frontend.script_type_parser import type_name
from readtorch.csrc.jit.frontend.sugared_value import (
    BuiltinFunction,
    Cast,
    ClassValue,
    EnumClassValue,
    ExceptionValue,
    MagicMethod,
    NamedTupleConstructor,
    PrintValue,
    SimpleValue,
    SpecialForm,
)
from readtorch.csrc.jit.ir.type import (
    BoolType,
    ClassType,
    EnumType,
    FloatType,
    IntType,
    ListType,
    StringType,
    TensorType,
    TupleType,
)


def is_meaningful(name):
    """Whether a variable's name is worth a value's: `_1` and `$tmp` are generated."""
    return bool(name) and name[0] != "$" and not (name[0] == "_" and name[1:].isdigit()) and name != "_"


class Environment:
    """The frame of one block. next: the frame around it."""

    def __init__(self, emitter, block, next=None):
        self.emitter = emitter
        self.block = block
        self.next = next
        self.types = {}  # of variables that are values of the graph
        self.sugared = {}  # all others
        self.errors = {} if next is None else next.errors  # variable -> why it has no value here

    # -------------------------------------------------------------------------------------------- read

    def find_here(self, name):
        if name in self.sugared:
            return self.sugared[name]
        return self._load(name, self.types[name]) if name in self.types else None

    def find(self, name):
        """The variable in this frame or one around it, or None."""
        frame = self
        while frame is not None:
            found = frame.find_here(name)
            if found is not None:
                return found
            frame = frame.next
        return None

    def find_outside(self, name):
        return None if self.next is None else self.next.find(name)

    def _load(self, name, type):
        graph = self.emitter.graph
        value = graph.insertNode(graph.createLoad(name, type)).output()
        if is_meaningful(name):
            value.setDebugName(name)
        return SimpleValue(value)

    def get(self, name, range):
        """What a name means: a variable, a built-in, or something that the resolver knows. Raises
        ErrorReport.
        """
        found = self.find(name) or GLOBALS.get(name) or self._resolve(name, range)
        if found is None:
            if name in self.errors:
                raise ErrorReport(range, f"{self.errors[name]}and was used here")
            raise ErrorReport(range, f"undefined value {name}")
        return found

    def _resolve(self, name, range):
        resolver = self.emitter.resolver
        type = resolver.resolve_type(name, range)
        if isinstance(type, TupleType) and type.fields is not None:
            return NamedTupleConstructor(type)
        found = resolver.resolve_value(name, self.emitter, range)
        if found is None and isinstance(type, ClassType):
            return ClassValue(type)
        if found is None and isinstance(type, EnumType):
            return EnumClassValue(type)
        return found

    def value(self, name, range):
        return self.get(name, range).as_value(range, self.emitter)

    # ------------------------------------------------------------------------------------------- write

    def set_value(self, range, name, value):
        self.set(range, name, SimpleValue(value))

    def set(self, range, name, sugared, annotated=None):
        """Assign. annotated: the type that the program gives the variable. Raises ErrorReport for another
        type than before.
        """
        value = sugared.value if isinstance(sugared, SimpleValue) else None
        if (
            value is not None
            and not value.hasDebugName()
            and is_meaningful(name)
            and value.node().owningBlock() is self.block
        ):
            value.setDebugName(name)
        outside = self.find_outside(name)
        if outside is not None:
            value = self._reassigned(range, name, sugared, outside, annotated)
        if value is None:
            self.sugared[name] = sugared
            return
        if annotated is not None:
            value = self._annotated(range, name, value, annotated)
        graph = self.emitter.graph
        graph.insertNode(graph.createStore(name, value)).setSourceRange(range)
        self.types[name] = value.type() if annotated is None else annotated
        self.sugared.pop(name, None)

    def _annotated(self, range, name, value, annotated):
        if not value.type().isSubtypeOf(annotated):
            raise ErrorReport(
                range,
                f"Variable '{name}' is annotated with type {annotated.annotation_str} but is being assigned "
                f"to a value of type {type_name(value.type())}",
            )
        return value

    def _reassigned(self, range, name, sugared, outside, annotated):
        """The value, as one of the type that the variable has outside of this block."""
        if annotated is not None:
            raise ErrorReport(
                range,
                f"Attempting to declare and annotate the type of variable '{name}' but it is already "
                "defined in an outer block",
            )
        advice = "is not a first-class value.  Only reassignments to first-class values are allowed"
        if not isinstance(sugared, SimpleValue):
            raise ErrorReport(
                range, f"Cannot re-assign '{name}' to a value of type {sugared.kind} because {name} {advice}"
            )
        if not isinstance(outside, SimpleValue):
            raise ErrorReport(
                range, f"Cannot re-assign '{name}' because it has type {sugared.kind} and {name} {advice}"
            )
        expected = outside.type()
        value = try_convert_to_type(range, self.emitter.graph, expected, sugared.value, True)
        if not value.type().isSubtypeOf(expected):
            hint = ""
            if isinstance(expected, ListType) and isinstance(value.type(), ListType):
                hint = (
                    "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to "
                    "create an empty "
                    "list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements "
                    "in the list "
                    "for Python 2)"
                )
            raise ErrorReport(
                range,
                f"Variable '{name}' previously had type {type_name(expected)} but is now being assigned to "
                f"a value of type {type_name(value.type())}{hint}\n",
            )
        return value

    def remove(self, name, range):
        """`del name`."""
        frame, removed = self, False
        while frame is not None:
            removed = frame.types.pop(name, None) is not None or frame.sugared.pop(name, None) is not None or removed
            frame = frame.next
        if not removed:
            raise ErrorReport(range, f"undefined value {name}")


def _operator(name, magic=None):
    function = BuiltinFunction(name)
    return MagicMethod(magic, function) if magic else function


def _cast(type, name, magic):
    return MagicMethod(magic, Cast(type.get(), name))


GLOBALS = {
    "print": PrintValue(),
    "float": _cast(FloatType, "aten::Float", "__float__"),
    "int": _cast(IntType, "aten::Int", "__int__"),
    "bool": _cast(BoolType, "aten::Bool", "__bool__"),
    "str": _cast(StringType, "aten::str", "__str__"),
    "_to_tensor": Cast(TensorType.get(), "prim::NumToTensor"),
    "AssertionError": ExceptionValue("AssertionError"),
    **{
        name: SpecialForm(name)
        for name in ("getattr", "hasattr", "isinstance", "tuple", "range", "zip", "enumerate", "list", "dict")
    },
    **{name: _operator(f"aten::{name}", f"__{name}__") for name in ("len", "hex", "oct", "round")},
    **{name: _operator(f"prim::{name}") for name in ("min", "max", "abs", "id", "rangelist")},
    **{
        name: _operator(f"aten::{name}")
        for name in ("hash", "all", "any", "divmod", "sum", "ord", "chr", "bin", "pow", "complex", "sorted")
    },
}
