"""Functions of Python: those that exist, those that the program makes, methods, generators.

In PyTorch: `torch/_dynamo/variables/functions.py`.
"""

import functools
import inspect
import types

from readtorch._dynamo import trace_rules
from readtorch._dynamo.bytecode_transformation import handler_at
from readtorch._dynamo.exc import ObservedException, unimplemented
from readtorch._dynamo.source import AttrSource, ConstantSource, GetItemSource, is_held

from .base import VariableTracker
from .constant import ConstantVariable
from .iter import IteratorVariable
from .misc import CellVariable

PLAIN_ATTRIBUTES = ("__name__", "__qualname__", "__module__", "__doc__", "__code__")


class UserFunctionVariable(ConstantVariable):
    """A function that exists. One with a closure may come back with other cells: it is guarded by its code."""

    def describe(self):
        return f"UserFunctionVariable({self.value.__qualname__})"

    def reconstruct(self, codegen):
        return codegen.writer.get(self.source) if self.source is not None else codegen.writer.hold(self.value)

    def call_bool(self, tx):
        return True

    @property
    def place(self):
        return self.source if self.source is not None else ConstantSource(self.value)

    def closure(self, tx):
        cells = self.value.__closure__ or ()
        if is_held(self.place):
            sources = [ConstantSource(cell) for cell in cells]
        else:
            sources = [GetItemSource(AttrSource(self.place, "__closure__"), i) for i in range(len(cells))]
        return [tx.output.wrap(cell, source).realize() for cell, source in zip(cells, sources)]

    def defaults(self, tx, name):
        value = getattr(self.value, name)
        if trace_rules.is_ours(self.value):
            return tx.constant(value) if value else None
        tx.output.wrap(value, AttrSource(self.place, name)).realize()  # that there are as many is guarded
        return tx.output.wrap(value, AttrSource(self.place, name)) if value else None

    def call_function(self, tx, args, kwargs):
        function = self.value
        if getattr(function, "_torchdynamo_disable", False):
            reason = getattr(function, "_torchdynamo_disable_msg", None)
            unimplemented(
                "Skip calling `torch.compiler.disable()`d function",
                f"Skip calling function `{function}` since it was wrapped with `torch.compiler.disable` (reason: {reason})",
                context=str(function),
            )
        original = getattr(function, "_torchdynamo_orig_callable", None)
        if original is not None:
            return tx.call(tx.held(original), args, kwargs)
        if getattr(function, "_dynamo_marked_constant", False):
            return tx.assumed_constant(function, args, kwargs)
        if tx.output.is_export and function in trace_rules.REORDERABLE_LOGGING_FUNCTIONS:
            return tx.constant(None)
        if not trace_rules.inlines(function):
            unimplemented(
                "Attempted to call function marked as skipped",
                f"Dynamo does not know how to trace the function `{function.__qualname__}`.",
                f"module: {function.__module__}, qualname: {function.__qualname__}",
            )
        if not trace_rules.is_ours(function):
            tx.output.guard("ID_MATCH", AttrSource(self.place, "__code__"), function.__code__)
        defaults, kwdefaults = self.defaults(tx, "__defaults__"), self.defaults(tx, "__kwdefaults__")
        parts = FunctionParts(function.__code__, function.__globals__, defaults, kwdefaults, self.closure(tx))
        return tx.inline_call(parts, args, kwargs)

    def var_getattr(self, tx, name):
        if name in PLAIN_ATTRIBUTES:
            return tx.output.read(getattr(self.value, name), AttrSource(self.place, name))
        if name in self.value.__dict__:
            return tx.output.read(self.value.__dict__[name], AttrSource(self.place, name))
        if name in ("__defaults__", "__kwdefaults__"):
            return tx.output.wrap(getattr(self.value, name), AttrSource(self.place, name))
        if name.startswith("__"):
            self.unknown(f"attribute {name}")
        tx.output.guard("NO_HASATTR", self.place, name)
        raise tx.error(AttributeError, f"'function' object has no attribute '{name}'")


class FunctionParts:
    """What a call needs of a function. defaults, kwdefaults: variables or None; closure: variables of cells."""

    def __init__(self, code, globals, defaults, kwdefaults, closure):
        self.code, self.globals, self.closure = code, globals, closure
        self.defaults, self.kwdefaults = defaults, kwdefaults


class NestedUserFunctionVariable(VariableTracker):
    """A function that the program has made."""

    def __init__(self, parts, annotations=None):
        self.parts, self.name, self.annotations = parts, parts.code.co_name, annotations
        self.attributes = {}

    def python_type(self):
        return types.FunctionType

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return tx.inline_call(self.parts, args, kwargs)

    def var_getattr(self, tx, name):
        if name in self.attributes:
            return self.attributes[name]
        if name in ("__name__", "__qualname__"):
            return tx.constant(self.name if name == "__name__" else self.parts.code.co_qualname)
        if name in ("__doc__", "__code__"):
            doc = self.parts.code.co_consts[0] if self.parts.code.co_consts else None
            return tx.constant(self.parts.code if name == "__code__" else doc if isinstance(doc, str) else None)
        if name == "__module__":
            return tx.constant(self.parts.globals.get("__name__"))
        self.unknown(f"attribute {name}")

    def var_setattr(self, tx, name, value):
        self.attributes[name] = value

    def reconstruct(self, codegen):
        hold, parts = codegen.writer.hold, self.parts
        cells = "".join(f"{codegen(cell)}, " for cell in parts.closure)
        defaults = codegen(parts.defaults) if parts.defaults is not None else "None"
        made = f"{hold(types.FunctionType)}({hold(parts.code)}, {hold(parts.globals)}, {self.name!r}, {defaults}, ({cells}))"
        name = codegen.temporary(made)
        codegen.made(self, name)
        if parts.kwdefaults is not None:
            codegen.line(f"{name}.__kwdefaults__ = {codegen(parts.kwdefaults)}")
        if self.annotations is not None:
            codegen.line(f"{name}.__annotations__ = {codegen(self.annotations)}")
        for attribute, value in self.attributes.items():
            codegen.line(f"{name}.{attribute} = {codegen(value)}")
        return name


class UserMethodVariable(VariableTracker):
    """A function bound to an object or a class."""

    def __init__(self, owner, function, source=None):
        self.owner, self.function, self.source = owner, function, source

    def describe(self):
        return f"UserMethodVariable({self.function.describe()})"

    def python_type(self):
        return types.MethodType

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return tx.call(self.function, [self.owner, *args], kwargs)

    def var_getattr(self, tx, name):
        if name == "__self__":
            return self.owner
        return self.function if name == "__func__" else self.function.realize().var_getattr(tx, name)

    def reconstruct(self, codegen):
        held = codegen.writer.hold(types.MethodType)
        return codegen.temporary(f"{held}({codegen(self.function)}, {codegen(self.owner)})")


class FunctoolsPartialVariable(VariableTracker):
    def __init__(self, function, args, kwargs, source=None):
        self.function, self.args, self.kwargs, self.source = function, args, kwargs, source

    def python_type(self):
        return functools.partial

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return tx.call(self.function, [*self.args, *args], {**self.kwargs, **kwargs})

    def var_getattr(self, tx, name):
        if name == "func":
            return self.function
        if name == "args":
            return tx.tuple_of(self.args)
        self.unknown(f"attribute {name}")

    def reconstruct(self, codegen):
        args = [codegen(self.function), *map(codegen, self.args)]
        args += [f"{name}={codegen(value)}" for name, value in self.kwargs.items()]
        return codegen.temporary(f"{codegen.writer.hold(functools.partial)}({', '.join(args)})")


class SkipFunctionVariable(ConstantVariable):
    """A function or class whose code is not read: a call of it breaks the graph."""

    def describe(self):
        return f"SkipFunctionVariable({getattr(self.value, '__qualname__', self.value)})"

    def call_function(self, tx, args, kwargs):
        if tx.output.is_export and self.value in trace_rules.REORDERABLE_LOGGING_FUNCTIONS:
            return tx.constant(None)
        unimplemented(
            "Attempted to call function marked as skipped",
            f"Dynamo does not know how to trace the builtin `{getattr(self.value, '__qualname__', self.value)}.`",
            f"module: {getattr(self.value, '__module__', None)}, qualname: {getattr(self.value, '__qualname__', None)}",
        )

    def var_getattr(self, tx, name):
        self.unknown(f"attribute {name}")

    def call_bool(self, tx):
        return True


class LocalGeneratorObjectVariable(IteratorVariable):
    """A generator that the program has made: a frame that stands at a `yield`. translator: None once it has ended."""

    def __init__(self, translator):
        self.translator, self.started = translator, False
        self.returned = None

    def python_type(self):
        return types.GeneratorType

    def next_variable(self, tx):
        return self.send(tx, tx.constant(None))

    def send(self, tx, value):
        """The next element; None at the end, and then `returned` is what the generator returned."""
        translator, self.translator = self.translator, None  # while it runs, it cannot be run again
        if translator is None:
            return None
        translator.push(value)
        if not self.started:
            self.started = True
            if not tx.is_none(value):
                raise tx.error(TypeError, "can't send non-None value to a just-started generator")
        ended, item = self.run_on(tx, translator)
        if ended:
            self.returned = item
            return None
        self.translator = translator
        return item

    def run_on(self, tx, translator):
        try:
            return translator.run_inlined()
        except ObservedException as error:
            if error.variable.cls is not StopIteration:
                raise
            ours = tx.error(RuntimeError, "generator raised StopIteration")
            ours.variable.chained = True
            raise ours from None

    def stands_in_a_try(self):
        """Python closes it when it is let go, and `finally` runs then."""
        if self.translator is None or not self.started:
            return False
        instruction = self.translator.instructions[max(self.translator.number - 1, 0)]
        return handler_at(self.translator.code, instruction.offset) is not None

    def throw(self, tx, error):
        """Raise `error` where the generator stands. Returns what it yields next."""
        translator, self.translator = self.translator, None
        if translator is None or not self.started:
            raise error
        translator.pending = error
        ended, item = self.run_on(tx, translator)
        if ended:
            self.returned = item
            raise tx.stop_iteration(item)
        self.translator = translator
        return item

    def call_method(self, tx, name, args, kwargs):
        if name == "send":
            item = self.send(tx, args[0])
            if item is None:
                raise tx.stop_iteration(self.returned)
            return item
        if name == "close":
            return self.close(tx)
        if name == "throw":
            return self.throw(tx, tx.raised(args[0].realize() if len(args) == 1 else args[1].realize()))
        return super().call_method(tx, name, args, kwargs)

    def close(self, tx):
        if self.translator is None or not self.started:
            self.translator = None
        else:
            unimplemented("Unsupported close() of a generator that has not ended")
        return tx.constant(None)


def bind_arguments(tx, parts, args, kwargs):
    """name -> variable, as a call binds them."""
    code = parts.code
    count, only_by_name = code.co_argcount, code.co_kwonlyargcount
    names, locals = code.co_varnames, dict(zip(code.co_varnames[:count], args))
    rest, more = args[count:], {}
    for name, value in kwargs.items():
        if name in names[code.co_posonlyargcount : count + only_by_name]:
            if name in locals:
                raise tx.error(TypeError, f"{code.co_qualname}() got multiple values for argument '{name}'")
            locals[name] = value
        else:
            more[name] = value
    defaults = parts.defaults.realize().items if parts.defaults is not None else []
    for name, value in zip(names[count - len(defaults) : count], defaults):
        locals.setdefault(name, value)
    by_name = parts.kwdefaults.realize().items if parts.kwdefaults is not None else {}
    for name in names[count : count + only_by_name]:
        if name not in locals and name in by_name:
            locals[name] = by_name[name]
    missing = [name for name in names[: count + only_by_name] if name not in locals]
    at = count + only_by_name
    if code.co_flags & inspect.CO_VARARGS:
        locals[names[at]], rest = tx.tuple_of(list(rest)), []
        at += 1
    if code.co_flags & inspect.CO_VARKEYWORDS:
        locals[names[at]], more = tx.dict_of(more), {}
    if missing or rest or more:  # Python writes the message
        unimplemented("failed to bind arguments when attempting to inline", f"arguments of {code.co_qualname}()")
    return locals


def cells_of(parts, locals):
    """The cells of a call: new ones for its own variables, those of the closure for the others."""
    cells = {name: CellVariable(locals.pop(name, None)) for name in parts.code.co_cellvars}
    return cells | dict(zip(parts.code.co_freevars, parts.closure))
