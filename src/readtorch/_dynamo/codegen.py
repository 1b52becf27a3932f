"""Writes what was captured as the text of one Python function.

    def entry(__closure, L_x, L_box):
        try:
            if type(L_x) is not … : return MISS            guards; every source is read before anything runs
            t1 = L_box.scale
            if type(t1) is not float or t1 != 2.0: return MISS
        except Exception: return MISS
        try:
            g0, g1 = graph(L_x)                            the graph
        except Exception:
            return NATIVE(__closure, (L_x, L_box))         its error is one of the program: that may catch it
        t2 = [g0, t1]                                      values
        L_box.last = g1                                    side effects
        return t2                                          or the rest, after a break

In PyTorch: `torch/_dynamo/codegen.py` writes bytecode. Text does not depend on the version of Python, and can be read.
"""

import math

from readtorch._dynamo.exc import CannotGenerate, Unsupported
from readtorch._dynamo.source import ConstantSource, LocalSource


class FunctionWriter:
    """The lines that read sources, and the objects that the function holds. indent: of those lines."""

    def __init__(self, indent=2):
        self.lines, self.indent = [], indent
        self.held, self.names_by_id = {}, {}
        self.read, self.count = {}, 0

    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix="t"):
        self.count += 1
        return f"{prefix}{self.count}"

    def hold(self, value):
        """The name under which the function has this object."""
        if id(value) not in self.names_by_id:
            kind = getattr(value, "__name__", type(value).__name__)
            name = f"K{len(self.held)}_" + "".join(c if c.isalnum() and c.isascii() else "_" for c in str(kind))
            self.names_by_id[id(value)] = name
            self.held[name] = value
        return self.names_by_id[id(value)]

    def literal(self, value):
        kind = type(value)
        if value is None or kind in (bool, str) or kind is float and math.isfinite(value):
            return repr(value)
        if kind is int:
            return repr(value) if value >= 0 else f"({value!r})"
        return self.hold(value)

    def expression(self, expression):
        """The text of a `SymNodeVariable`'s expression. It is computed among the guards: what raises is a miss."""
        if isinstance(expression, tuple):
            symbol, a, b = expression
            name = self.fresh()
            a, b = self.expression(a), self.expression(b)
            self.line(f"{name} = {f'{symbol}({a}, {b})' if symbol.isalpha() else f'{a} {symbol} {b}'}")
            return name
        source = getattr(expression, "source", None)
        return self.get(source) if source is not None else self.literal(expression)

    def get(self, source):
        """The name of a source's value; it is read once."""
        if isinstance(source, (LocalSource, ConstantSource)):
            return source.read(self)
        if source not in self.read:
            text, name = source.read(self), self.fresh()
            self.line(f"{name} = {text}")
            self.read[source] = name
        return self.read[source]


class PyCodegen:
    """`codegen(variable)` is the text of its value; what must be made first becomes lines of the body."""

    def __init__(self, output, writer):
        self.output, self.writer = output, writer
        self.body, self.names, self.under_way, self.keep = [], {}, set(), []
        self.graph_outputs = {}  # node -> name

    @property
    def set_grad_mode(self):
        return self.writer.hold(self.output.set_grad_enabled)

    def line(self, text, indent=1):
        self.body.append("    " * indent + text)

    def temporary(self, text):
        name = self.writer.fresh()
        self.line(f"{name} = {text}")
        return name

    def made(self, variable, name):
        """The object stands under this name from here on: what it holds may hold it."""
        self.names[id(variable)] = name
        self.under_way.discard(id(variable))

    def graph_output(self, node):
        if node not in self.graph_outputs:
            self.graph_outputs[node] = f"g{len(self.graph_outputs)}"
        return self.graph_outputs[node]

    def as_owner(self, variable):
        """The same where `.name` may follow: a number stands in brackets."""
        text = self(variable)
        return f"({text})" if text[0].isdigit() else text

    def __call__(self, variable):
        if variable.source is not None:
            if not hasattr(variable, "value"):
                return self.writer.get(variable.source)
            return variable.reconstruct(self)
        if id(variable) in self.names:
            return self.names[id(variable)]
        if id(variable) in self.under_way:
            raise CannotGenerate("a value that holds itself")
        self.under_way.add(id(variable))
        self.keep.append(variable)
        try:
            text = variable.reconstruct(self)
        except Unsupported as error:
            raise CannotGenerate(str(error)) from error
        if id(variable) not in self.names:
            self.made(variable, text)
        return text
