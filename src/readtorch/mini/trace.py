"""Written in the chapter "Dynamo": its cells are this file, put together by `tools/mini.py`."""

import builtins
import dis
import inspect
import math
import operator
import sys
import types
from keyword import iskeyword

from .autograd import Tensor, add, exp, log, matmul, mul, thread


class Break(Exception):
    """An instruction that is left to Python."""


class Known:
    """A value that Python has. source: how to read it again."""

    def __init__(self, value, source=None):
        self.value, self.source = value, source


class Traced:
    """A tensor. name: in the text; example: this call's own."""

    def __init__(self, name, example):
        self.name, self.example = name, example


NULL = Known(None)  # CPython keeps a place below a function
NUMBERS = {"inf": math.inf, "nan": math.nan}  # as repr says
LITERALS = int, float, str, bool, types.NoneType
FIXED = (types.ModuleType, types.FunctionType, type, range,
         types.BuiltinFunctionType, types.MethodDescriptorType)
OPERATORS = [add, mul, exp, log, matmul, Tensor.transpose,
             Tensor.reshape, Tensor.expand, Tensor.permute]
# the same arguments, the same result: simply called
FOLDED = [range, len, min, max, abs, int, float, isinstance]


def facts(t):
    """What operators decide by, all but the elements."""
    return t.shape, t.strides, str(t.dtype), t.requires_grad


def is_free(name):
    """Not L, G, t0 and what else the text is made of."""
    taken = {"MISS", "entry", *dir(builtins)}
    return (name.isidentifier() and not iskeyword(name)
            and len(name) > 1 and not name[1:].isdigit()
            and name not in taken)


def is_literal(value):
    parts = value if type(value) is tuple else [value]
    return all(type(part) in LITERALS for part in parts)


def is_fixed(value):
    """Whether the same object always means the same value."""
    return (is_literal(value) or type(value) in FIXED or
            any(value is each for each in OPERATORS))


class Capture:
    """What one run of the interpreter finds out."""

    def __init__(self):
        self.guards, self.graph, self.inputs = [], [], {}
        self.held = {"facts": facts, "thread": thread, **NUMBERS}
        self.guard(f"thread.excluded == {thread.excluded}")

    def hold(self, value):
        """A name for an object, in the new function."""
        name = str(getattr(value, "__name__", None) or
                   getattr(value, "name", ""))
        if getattr(builtins, name, None) is value:
            return name
        for other, held in self.held.items():
            if held is value:
                return other
        if name in self.held or not is_free(name):
            name = f"held_{len(self.held)}"
        self.held[name] = value
        return name

    def guard(self, condition):
        if condition not in self.guards:
            self.guards.append(condition)

    def read(self, value, source):
        """The program reads this value, and has its source."""
        if not issubclass(type(value), Tensor):
            return Known(value, source)
        if source not in self.inputs:
            kind = self.hold(type(value))
            self.guard(f"type({source}) is {kind}")
            self.guard(f"facts({source}) == {facts(value)}")
            self.inputs[source] = Traced(source, value)
        return self.inputs[source]

    def look(self, known):
        """The program depends on what this value is."""
        value, source = known.value, known.source
        if not is_fixed(value):
            raise Break(f"a {type(value).__name__} may change")
        if source and type(value) in LITERALS:
            kind = self.hold(type(value))
            self.guard(f"type({source}) is {kind}")
            if value == value:
                self.guard(f"{source} == {value!r}")
            else:  # nan, which equals nothing
                self.guard(f"{source} != {source}")
        elif source:
            self.guard(f"{source} is {self.hold(value)}")
        return value

    def node(self, function, args):
        """A line of the graph."""
        examples = [a.example if isinstance(a, Traced)
                    else self.look(a) for a in args]
        if not all(isinstance(a, Traced) or is_literal(a.value)
                   for a in args):
            raise Break("an argument that cannot be written")
        texts = [a.name if isinstance(a, Traced)
                 else repr(a.value) for a in args]
        result = function(*examples)
        if not isinstance(result, Tensor):
            raise Break(f"a {type(result).__name__} of a tensor")
        name = f"t{len(self.graph)}"
        call = f"{self.hold(function)}({', '.join(texts)})"
        self.graph.append(f"{name} = {call}")
        return Traced(name, result)


class Frame:
    """The interpreter: a method for each instruction."""

    def __init__(self, capture, function, locals):
        self.capture, self.locals = capture, locals
        self.globals, self.G = function.__globals__, "G"
        self.stack, self.at, self.depth = [], 0, 0
        self.steps = list(dis.get_instructions(function))
        self.number = {s.offset: i
                       for i, s in enumerate(self.steps)}

    def run(self):
        while True:
            step = self.steps[self.at]
            if step.opname == "RETURN_VALUE":
                return self.stack.pop()
            before = list(self.stack), len(self.capture.graph)
            self.at += 1
            try:
                getattr(self, step.opname, self.unknown)(step)
            except Break:
                self.stack, count = before
                del self.capture.graph[count:]
                self.at -= 1
                raise

    def unknown(self, step):
        raise Break(step.opname)

    def nothing(self, step):
        pass

    RESUME = PRECALL = NOP = EXTENDED_ARG = nothing

    def pop(self, count):
        at = len(self.stack) - count
        popped, self.stack[at:] = self.stack[at:], []
        return popped

    def LOAD_CONST(self, step):
        self.stack.append(Known(step.argval))

    def LOAD_FAST(self, step):
        if step.argval not in self.locals:
            raise Break(f"{step.argval} has no value")
        self.stack.append(self.locals[step.argval])

    def STORE_FAST(self, step):
        self.locals[step.argval] = self.stack.pop()

    def POP_TOP(self, step):
        self.stack.pop()

    def PUSH_NULL(self, step):
        self.stack.append(NULL)

    def LOAD_GLOBAL(self, step):
        if step.arg & 1:
            self.PUSH_NULL(step)
        name = step.argval
        if name in self.globals:
            source = f"{self.G}[{name!r}]"
            found = self.capture.read(self.globals[name], source)
        elif hasattr(builtins, name):  # and no global hides it
            self.capture.guard(f"{name!r} not in {self.G}")
            found = Known(getattr(builtins, name))
        else:
            raise Break(f"no {name}")
        self.stack.append(found)

    def LOAD_ATTR(self, step):
        (owner,), name = self.pop(1), step.argval
        if isinstance(owner, Traced):
            if name not in ("shape", "requires_grad"):
                raise Break(f"attribute {name} of a tensor")
            found = Known(getattr(owner.example, name))
        else:
            found = self.attribute(owner, name)
        self.stack.append(found)

    def attribute(self, owner, name):
        value, source = owner.value, owner.source
        if runs_code(value, name):
            raise Break(f"attribute {name} runs code")
        if source and isinstance(value, types.ModuleType):
            self.capture.look(owner)
        elif source:
            kind = self.capture.hold(type(value))
            self.capture.guard(f"type({source}) is {kind}")
        path = f"{source or self.capture.hold(value)}.{name}"
        return self.capture.read(getattr(value, name), path)

    def LOAD_METHOD(self, step):
        owner = self.stack[-1]
        if isinstance(owner, Traced):
            method = getattr(type(owner.example), step.argval)
            self.stack[-1:] = [Known(method), owner]
        else:
            self.LOAD_ATTR(step)
            self.stack.insert(-1, NULL)

    def BINARY_OP(self, step):
        a, b = self.pop(2)
        symbol = step.argrepr
        if isinstance(a, Traced) and symbol.endswith("="):
            raise Break("a write to a tensor")
        if symbol.rstrip("=") not in SYMBOLS:
            raise Break(f"the operator {symbol}")
        self.compute(SYMBOLS[symbol.rstrip("=")], [a, b])

    def COMPARE_OP(self, step):
        self.compute(SYMBOLS[step.argval], self.pop(2))

    def BINARY_SUBSCR(self, step):
        self.compute(operator.getitem, self.pop(2))

    def compute(self, function, args):
        """In the graph if a tensor takes part, else now."""
        if any(isinstance(a, Traced) for a in args):
            found = self.capture.node(function, args)
        else:
            values = [self.capture.look(a) for a in args]
            found = Known(function(*values))
        self.stack.append(found)

    def POP_JUMP_FORWARD_IF_FALSE(self, step):
        if not self.truth():
            self.at = self.number[step.argval]

    def POP_JUMP_FORWARD_IF_TRUE(self, step):
        if self.truth():
            self.at = self.number[step.argval]

    def truth(self):
        (condition,) = self.pop(1)
        if isinstance(condition, Traced):
            raise Break("a branch on a tensor's elements")
        return bool(self.capture.look(condition))

    def JUMP_FORWARD(self, step):
        self.at = self.number[step.argval]

    JUMP_BACKWARD = JUMP_FORWARD

    def GET_ITER(self, step):
        values = self.capture.look(*self.pop(1))
        if not isinstance(values, (range, tuple)):
            raise Break(f"a loop over a {type(values).__name__}")
        self.stack.append(Known(iter(values)))

    def FOR_ITER(self, step):
        item = next(self.stack[-1].value, NULL)
        if item is NULL:
            self.pop(1)
            self.at = self.number[step.argval]
        else:
            self.stack.append(Known(item))

    def CALL(self, step):
        below, function, *args = self.pop(step.arg + 2)
        if below is not NULL:  # a method, and its object
            function, args = below, [function, *args]
        self.call(function, args)

    def call(self, function, args):
        value = getattr(function, "value", None)
        if any(value is each for each in OPERATORS):
            self.capture.look(function)
            self.stack.append(self.capture.node(value, args))
        elif any(value is each for each in FOLDED):
            self.capture.look(function)
            self.compute(value, args)
        elif isinstance(value, types.FunctionType):
            self.inline(function, args)
        else:
            name = getattr(value, "__name__", "an object")
            raise Break(f"a call of {name}")

    def inline(self, function, args):
        """Interpret what is called, in a frame of its own."""
        code = self.capture.look(function).__code__
        if (code.co_argcount != len(args) or not is_plain(code)
                or self.depth == 50):  # an endless recursion?
            raise Break(f"a call of {code.co_name}")
        locals = dict(zip(code.co_varnames, args))
        inner = Frame(self.capture, function.value, locals)
        inner.depth = self.depth + 1
        if inner.globals is not self.globals:
            inner.G = self.capture.hold(inner.globals)
        self.stack.append(inner.run())


def runs_code(owner, name):
    """Whether this attribute is more than a value."""
    kind = type(owner)
    own = types.FunctionType is type(kind.__getattribute__)
    if own or hasattr(kind, "__getattr__"):
        return True
    if issubclass(kind, types.ModuleType):
        return name not in vars(owner)
    classes = [*kind.__mro__, *getattr(owner, "__mro__", ())]
    written = [vars(each)[name] for each in classes
               if name in vars(each)]
    return any(hasattr(type(each), "__get__")
               and type(each) not in PLAIN for each in written)


PLAIN = (types.FunctionType, types.MethodDescriptorType,
         types.MemberDescriptorType)  # methods, and __slots__
SIGNS = ("+ add - sub * mul / truediv // floordiv % mod ** pow "
         "< lt <= le > gt >= ge == eq != ne").split()
SYMBOLS = {sign: getattr(operator, name)
           for sign, name in zip(SIGNS[::2], SIGNS[1::2])}


def is_plain(code):
    """No closure, generator, *args or try; and Python 3.11."""
    usual = (inspect.CO_OPTIMIZED | inspect.CO_NEWLOCALS
             | inspect.CO_NESTED)
    other = code.co_flags & ~usual
    return sys.version_info[:2] == (3, 11) and not (
        other or code.co_freevars or code.co_cellvars or
        code.co_kwonlyargcount or code.co_exceptiontable)


MISS = object()
LIMIT = 8  # entries, as in PyTorch


class Compiled:
    """A function, and the new functions made of it so far."""

    def __init__(self, function):
        self.function, self.code = function, function.__code__
        self.__name__ = function.__name__
        self.entries, self.texts, self.resumes = [], [], {}

    def __call__(self, *args, **more):
        code, G = self.code, self.function.__globals__
        if more or len(args) != code.co_argcount:
            return self.function(*args, **more)  # as written
        L = dict(zip(code.co_varnames, args))
        for entry in self.entries:
            result = entry(L, G)
            if result is not MISS:
                return result
        if is_plain(code) and len(self.entries) < LIMIT:
            self.entries.append(self.translate(L))
            result = self.entries[-1](L, G)
            if result is not MISS:
                return result
        return self.function(*args)

    def translate(self, L):
        """A new function for calls like this one."""
        capture = Capture()
        frame = Frame(capture, self.function, {
            name: capture.read(value, f"L[{name!r}]")
            for name, value in L.items()})
        try:
            ending = [f"return {write(capture, frame.run())}"]
        except Break as reason:
            ending = self.after_break(frame, reason)
        guards = "\n            and ".join(capture.guards)
        text = "\n    ".join([
            "def entry(L, G):", "try:",
            f"    if not ({guards or True}):",
            "        return MISS",
            "except Exception:", "    return MISS",
            *capture.graph, *ending])
        names = {**capture.held, "MISS": MISS}
        exec(text, names)
        self.texts.append(text)
        return names["entry"]

    def left_to_python(self, frame, reason):
        """The whole call, as it is written."""
        frame.capture.graph.clear()
        function = frame.capture.hold(self.function)
        return [f"return {function}(*L.values())  # {reason}"]

    def after_break(self, frame, reason):
        """Python does the call; a resume function goes on."""
        try:
            return self.call_and_resume(frame, reason)
        except Break as reason:
            return self.left_to_python(frame, reason)

    def call_and_resume(self, frame, reason):
        step = frame.steps[frame.at]
        if step.opname != "CALL":
            raise reason

        def written(variables):
            return [write(frame.capture, v)
                    for v in variables if v is not NULL]

        at = len(frame.stack) - step.arg - 2
        stack, called = frame.stack[:at], frame.stack[at:]
        function, *args = written(called)
        values = [frame.locals.get(name, Known(None))
                  for name in self.code.co_varnames]
        after = frame.steps[frame.at + 1].offset
        resume = self.resume(after, [v is NULL for v in stack])
        saved = ", ".join(written(values + stack))
        return [f"S = [{saved}]",
                f"R = {function}({', '.join(args)})  # {reason}",
                f"return {frame.capture.hold(resume)}(*S, R)"]

    def resume(self, offset, nulls):
        key = offset, *nulls
        if key not in self.resumes:
            function = enter(self.function, offset, nulls)
            self.resumes[key] = Compiled(function)
        return self.resumes[key]


def write(capture, variable):
    """The text of a value in the new function."""
    if isinstance(variable, Traced):
        return variable.name
    if variable.source:
        return variable.source
    value = variable.value
    if is_literal(value):
        return repr(value)
    if callable(value):
        return capture.hold(value)
    raise Break(f"a {type(value).__name__} cannot be written")


def encoded(name, n=0):
    """In bytes. What of n is above a byte goes before it."""
    more = encoded("EXTENDED_ARG", n >> 8) if n > 255 else b""
    return more + bytes([dis.opmap[name], n & 255])


def enter(function, offset, nulls):
    """`function` entered in the middle. Its arguments: all its
    variables, what is on its stack, and the call's result."""
    code = function.__code__
    names, prologue = list(code.co_varnames), encoded("RESUME")
    for null in [*nulls, False]:
        if null:
            prologue += encoded("PUSH_NULL")
        else:
            prologue += encoded("LOAD_FAST", len(names))
            names.append(f".{len(names)}")
    prologue += encoded("JUMP_FORWARD", offset // 2)
    entered = code.replace(
        co_code=prologue + code.co_code, co_linetable=b"",
        co_varnames=tuple(names), co_nlocals=len(names),
        co_argcount=len(names), co_posonlyargcount=0,
        co_stacksize=code.co_stacksize + len(nulls) + 1,
        co_name=f"resume_in_{code.co_name}_at_{offset}")
    return types.FunctionType(entered, function.__globals__)
