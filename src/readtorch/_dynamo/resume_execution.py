"""Functions that go on after a graph break: the same bytecode, entered in the middle, with the locals and the stack as arguments.

    COPY_FREE_VARS n; RESUME; DELETE_FAST for locals without a value; LOAD_FAST for what is on the stack; JUMP_FORWARD there
    ⟨the function's own code, as it is⟩

A cell variable's argument is the cell itself: its MAKE_CELL is jumped over. Free variables stay free, or `super()` would not
find `__class__`. In PyTorch: `torch/_dynamo/resume_execution.py`.
"""

import inspect
import types

from readtorch._dynamo import trace_rules
from readtorch._dynamo.variables.base import NullVariable
from readtorch._dynamo.variables.functions import NestedUserFunctionVariable, UserFunctionVariable, UserMethodVariable
from readtorch._dynamo.variables.misc import UnknownVariable
from readtorch._dynamo.variables.nn_module import UnspecializedNNModuleVariable
from readtorch._dynamo.variables.tensor import TensorVariable

from .bytecode_transformation import (
    BEFORE_CALL,
    NULL_IS_BELOW,
    create_instruction,
    handler_at,
    renumbered_free_variables,
    shifted_exception_table,
    shifted_line_table,
)
from .exc import CannotGenerate

CONVERSIONS = ("", "str", "repr", "ascii")  # of a format: none, !s, !r, !a


def locals_of(code):
    """The names of a function's variables in the order of a resume function's arguments."""
    return (*code.co_varnames, *(name for name in code.co_cellvars if name not in code.co_varnames))


def make_resume_code(code, offset, stack, unbound):
    """`code` entered at `offset`, and by how many bytes it is shifted.

    stack: for each place whether NULL is there. unbound: the locals without a value. The arguments: `locals_of(code)`, then the
    values on the stack. Raises CannotGenerate.
    """
    names = locals_of(code)
    values = tuple(f"__stack{i}" for i, is_null in enumerate(stack) if not is_null)
    count = len(names) + len(values)
    body = renumbered_free_variables(code, len(names), len(values))
    if body is None:
        raise CannotGenerate("more than 255 variables")
    prologue = _prologue(code, offset, names, stack, unbound)
    units = len(prologue) // 2
    resumed = code.replace(
        co_code=prologue + body,
        co_exceptiontable=shifted_exception_table(code, units),
        co_linetable=shifted_line_table(code, units),
        co_varnames=names + values,
        co_nlocals=count,
        co_argcount=count,
        co_posonlyargcount=0,
        co_kwonlyargcount=0,
        co_stacksize=code.co_stacksize + len(stack) + 2,
        co_flags=code.co_flags & ~(inspect.CO_VARARGS | inspect.CO_VARKEYWORDS),
        co_name=f"torch_dynamo_resume_in_{code.co_name}_at_{_line_at(code, offset)}",
    )
    return resumed, len(prologue)


def _prologue(code, offset, names, stack, unbound):
    parts = [create_instruction("COPY_FREE_VARS", len(code.co_freevars))] if code.co_freevars else []
    parts.append(create_instruction("RESUME"))
    parts += [create_instruction("DELETE_FAST", names.index(name)) for name in unbound]
    at = len(names)
    for is_null in stack:
        if is_null:
            parts.append(create_instruction("PUSH_NULL"))
        else:  # the argument is deleted: `locals()` would show it
            parts += [create_instruction("LOAD_FAST", at), create_instruction("DELETE_FAST", at)]
            at += 1
    parts.append(create_instruction("JUMP_FORWARD", offset // 2))
    return b"".join(parts)


def _line_at(code, offset):
    return next((line for start, end, line in code.co_lines() if start <= offset < end and line), code.co_firstlineno)


class GraphBreak:
    """Writes what stands behind the graph where it breaks: the instruction itself, and a call of the rest.

    The instruction becomes text (a call, a branch, an assignment …); the rest is `Tail(resume function, arguments)`. Where it has no
    text here, the rest runs as it is written, with that instruction.
    """

    def __init__(self, tx, codegen, state, native_calls):
        self.tx, self.codegen, self.state, self.native_calls = tx, codegen, state, native_calls
        self.hold = codegen.writer.hold
        code = tx.code
        self.instruction = tx.instructions[tx.number]
        after = tx.number + 1
        self.after = tx.instructions[after].offset if after < len(tx.instructions) else None
        self.handler = handler_at(code, self.instruction.offset)
        self.bound, self.unbound = [], []
        for name in locals_of(state.origin):
            self.add_local(name)

    def add_local(self, name):
        if name in self.state.origin.co_cellvars:
            self.bound.append(self.codegen(self.tx.cells[name]))
        elif name in self.tx.locals:
            self.bound.append(self.codegen(self.tx.locals[name]))
        else:
            self.bound.append("None")
            self.unbound.append(name)

    # ------------------------------------------------------------------------------------------------ pieces of text

    def values(self, stack):
        """(for each place whether NULL is there, the texts of the others)"""
        nulls = tuple(isinstance(each, NullVariable) for each in stack)
        return nulls, [self.codegen(each) for each in stack if not isinstance(each, NullVariable)]

    def resume(self, offset, stack, how="tail"):
        """A statement that goes on at `offset`. how: "tail", or "native" for a rest that runs as it is written."""
        nulls, texts = stack
        line = getattr(self.instruction.positions, "lineno", None)
        target = self.state.resume_state(offset - self.state.shift, nulls, tuple(self.unbound), line)
        arguments = "".join(f"{text}, " for text in self.bound + texts)
        if how == "native":
            return f"return {self.hold(target)}.run_native(__closure, ({arguments}))"
        return f"return {self.hold(Tail)}({self.hold(target)}, __closure, ({arguments}))"

    def native(self):
        """The rest with this instruction, as it is written."""
        tx = self.tx
        number = tx.number
        while number and tx.instructions[number - 1].opname in BEFORE_CALL:
            number -= 1
        return [self.resume(tx.instructions[number].offset, self.values(tx.stack), "native")]

    def guarded(self, line):
        """A line whose exceptions the program may catch."""
        if self.handler is None:
            return [line]
        entry = self.handler
        nulls, texts = self.values(self.tx.stack[: entry.depth])
        if entry.lasti:
            nulls, texts = (*nulls, False), [*texts, "LASTI"]
        go_on = self.resume(entry.target, ((*nulls, False), [*texts, "error"]), "native")
        target = self.state.resume_state(entry.target - self.state.shift, (*nulls, False), tuple(self.unbound))
        lasti = (self.instruction.offset - self.state.shift + target.shift) // 2
        handler = "    " + go_on.replace("LASTI", str(lasti))
        return ["try:", f"    {line}", f"except {self.hold(BaseException)} as error:", handler]

    def result(self, popped, text):
        """The instruction takes `popped` values from the stack and puts one there."""
        nulls, texts = self.values(self.tx.stack[: len(self.tx.stack) - popped])
        go_on = self.resume(self.after, ((*nulls, False), [*texts, "result"]))
        return lambda: [*self.guarded(f"result = {text}"), go_on]

    def statement(self, popped, text):
        go_on = self.resume(self.after, self.values(self.tx.stack[: len(self.tx.stack) - popped]))
        return lambda: [*self.guarded(text), go_on]

    def top(self, count):
        return [self.codegen.as_owner(each) for each in self.tx.stack[-count:]]

    # -------------------------------------------------------------------------------------------------- instructions

    @classmethod
    def can_write(cls, tx, instruction):
        """Whether an instruction that has failed has a text. In PyTorch: `break_graph_if_unsupported`, `generic_jump`."""
        name, top = instruction.opname, tx.stack[-1].realize() if tx.stack else None
        if "JUMP" in name and "IF" in name:
            return isinstance(top, TensorVariable)
        if name in ("LOAD_ATTR", "LOAD_METHOD"):  # PyTorch follows more objects, arrays of NumPy among them
            return isinstance(top, UnknownVariable)
        return hasattr(cls, "write_" + name)

    def write(self):
        """A function that gives the lines. All values are made when `write` is called, so before the side effects."""
        if self.tx.handled:
            raise CannotGenerate("a graph break in an except block")
        name = self.instruction.opname
        if "JUMP" in name and "IF" in name:
            return self.branch(name)
        writer = getattr(self, "write_" + name, None)
        if writer is None:
            native = self.native()
            return lambda: native
        return writer()

    def branch(self, name):
        value, stack = self.top(1)[0], self.tx.stack
        condition = value if "TRUE" in name else f"not {value}"
        popped = self.values(stack[:-1])
        jump = self.resume(self.instruction.argval, self.values(stack) if name.endswith("OR_POP") else popped)
        go_on = self.resume(self.after, popped)
        return lambda: [*self.guarded(f"condition = {condition}"), f"if condition: {jump}", go_on]

    def write_CALL(self):
        parts = self.tx.stack[-self.instruction.arg - 2 :]
        return self.call_of(parts, self.tx.keyword_names, len(parts))

    def write_CALL_KW(self):
        *parts, names = self.tx.stack[-self.instruction.arg - 3 :]
        return self.call_of(parts, names.as_python_constant(), len(parts) + 1)

    def call_of(self, parts, names, popped):
        function, *args = self.tx.without_null(parts)
        positional = len(args) - len(names)
        texts = [self.codegen(arg) for arg in args[:positional]]
        texts += [f"{name}={self.codegen(arg)}" for name, arg in zip(names, args[positional:])]
        return self.call(function, texts, popped)

    def write_CALL_FUNCTION_EX(self):
        popped = 3 + (self.instruction.arg & 1)
        function, args, *names = self.tx.without_null(self.tx.stack[-popped:])
        texts = ["*" + self.codegen(args)] + ["**" + self.codegen(each) for each in names]
        return self.call(function, texts, popped)

    def call(self, function, texts, popped):
        function = function.realize()
        if self.looks_at_the_frame(function):
            native = self.native()
            return lambda: native
        text = self.codegen.as_owner(function)
        if self.is_compiled(function):
            text = f"{self.hold(self.state.compile_callee)}({text})"
        return self.result(popped, f"{text}({', '.join(texts)})")

    def looks_at_the_frame(self, function):
        value = getattr(function, "value", None)
        module = getattr(value, "__module__", None)
        is_known = isinstance(value, (type, types.BuiltinFunctionType)) and value in self.native_calls
        return is_known or isinstance(module, str) and module in ("inspect", "traceback", "sys", "warnings")

    def is_compiled(self, function):
        """Whether what is called is compiled by itself: a function whose code could be read, and broke somewhere."""
        inner = function.function.realize() if isinstance(function, UserMethodVariable) else function
        if isinstance(inner, UserFunctionVariable):
            return trace_rules.inlines(inner.value) and not getattr(inner.value, "_torchdynamo_disable", False)
        return isinstance(inner, (NestedUserFunctionVariable, UnspecializedNNModuleVariable))

    def write_LOAD_FAST_AND_CLEAR(self):
        """See Note [ A break in a comprehension ]."""
        tx, found = self.tx, self.tx.comprehension
        target = self.state.comprehension_state(found, tuple(self.unbound))
        arguments = "".join(f", {text}" for text in [*self.bound, self.codegen(tx.stack[-1])])
        hidden = [tx.value_in_place(each) for each in found.hides]
        nulls, texts = self.values([*tx.stack[:-1], *hidden])
        go_on = self.resume(found.end, ((*nulls, False), [*texts, "result"]))
        return lambda: [
            *self.guarded(f"result = {self.hold(drive)}({self.hold(target)}.run(__closure{arguments}))"),
            go_on,
        ]

    write_LOAD_CLOSURE_AND_CLEAR = write_LOAD_FAST_AND_CLEAR

    def write_COMPARE_OP(self):
        a, b = self.top(2)
        text = f"{a} {self.instruction.argval} {b}"
        return self.result(2, f"bool({text})" if self.instruction.argrepr.startswith("bool") else text)

    def write_BINARY_SUBSCR(self):
        a, b = self.top(2)
        return self.result(2, f"{a}[{b}]")

    def write_FORMAT_VALUE(self):  # in PyTorch: a `StringFormatVariable`, and what uses it breaks the graph
        how = self.instruction.arg
        convert = CONVERSIONS[how & 3]
        value, spec = self.top(2) if how & 4 else (*self.top(1), "''")
        return self.result(2 if how & 4 else 1, f"format({convert}({value}), {spec})")

    def write_CONVERT_VALUE(self):
        return self.result(1, f"{CONVERSIONS[self.instruction.arg]}({self.top(1)[0]})")

    def write_FORMAT_SIMPLE(self):
        return self.result(1, f"format({self.top(1)[0]})")

    def write_FORMAT_WITH_SPEC(self):
        return self.result(2, f"format({', '.join(self.top(2))})")

    def write_LOAD_ATTR(self):
        return self.result(1, f"{self.top(1)[0]}.{self.instruction.argval}")

    def write_LOAD_METHOD(self):
        text = f"{self.top(1)[0]}.{self.instruction.argval}"
        nulls, texts = self.values(self.tx.stack[:-1])
        go_on = self.resume(self.after, ((*nulls, NULL_IS_BELOW, not NULL_IS_BELOW), [*texts, "result"]))
        return lambda: [*self.guarded(f"result = {text}"), go_on]

    def write_GET_ITER(self):
        return self.result(1, f"iter({self.top(1)[0]})")

    def write_STORE_SUBSCR(self):
        value, owner, key = self.top(3)
        return self.statement(3, f"{owner}[{key}] = {value}")

    def write_DELETE_SUBSCR(self):
        owner, key = self.top(2)
        return self.statement(2, f"del {owner}[{key}]")

    def write_STORE_ATTR(self):
        value, owner = self.top(2)
        return self.statement(2, f"{owner}.{self.instruction.argval} = {value}")

    def write_DELETE_ATTR(self):
        return self.statement(1, f"del {self.top(1)[0]}.{self.instruction.argval}")


class Tail:
    """The rest of a call: `drive` runs it, so that breaks in a loop do not deepen the stack."""

    __slots__ = ("state", "closure", "args")

    def __init__(self, state, closure, args):
        self.state, self.closure, self.args = state, closure, args


def drive(result):
    while type(result) is Tail:
        result = result.state.run(result.closure, *result.args)
    return result
