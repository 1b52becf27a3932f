"""Written in the chapter "FX": its cells are this file, put together by `tools/mini.py`."""

import contextlib
import functools
import operator
from math import inf, nan

from .module import Linear, Module, Parameter


class Node:
    """One step: what is done (op, target), and to what."""

    def __init__(self, name, op, target, args):
        self.name, self.op = name, op
        self.target, self.args = target, args

    def __repr__(self):
        return self.name


SIGNS = {operator.add: "+", operator.mul: "*"}


class Graph:
    def __init__(self):
        self.nodes, self.functions = [], {inf: "inf", nan: "nan"}
        self.taken = {"self", "forward", "inf", "nan"}

    def free_name(self, name):
        name = "_" * name[0].isdigit() + name.replace(".", "_")
        free, number = name, 0
        while free in self.taken:
            number += 1
            free = f"{name}_{number}"
        self.taken.add(free)
        return free

    def create_node(self, op, target, args=()):
        name = getattr(target, "__name__", target)
        if (op == "call_function" and target not in SIGNS
                and target not in self.functions):
            self.functions[target] = self.free_name(name)
        node = Node(self.free_name(name), op, target, args)
        self.nodes.append(node)
        return node

    def users(self, node):
        return [n for n in self.nodes if node in n.args]


class Proxy:
    """Stands for a value that nobody knows yet."""

    def __init__(self, node, tracer):
        self.node, self.tracer = node, tracer

    @classmethod
    def instead(cls, function, kinds, args):
        proxy = next(a for a in args if isinstance(a, cls))
        return proxy.tracer.proxy("call_function", function, args)

    def __getattr__(self, name):
        return Attribute(self, name)

    def __bool__(self, *other):
        raise TypeError("nobody knows this value yet")

    __eq__ = __ne__ = __bool__  # Python's own == says False

    def __add__(self, other):
        return self.instead(operator.add, (), (self, other))

    def __radd__(self, other):
        return self.instead(operator.add, (), (other, self))

    def __mul__(self, other):
        return self.instead(operator.mul, (), (self, other))

    def __rmul__(self, other):
        return self.instead(operator.mul, (), (other, self))


class Attribute(Proxy):
    """x.name: called, or used as it is?"""

    def __init__(self, owner, name):
        self.owner, self.name = owner, name
        self.tracer = owner.tracer

    def __call__(self, *args):
        args = self.owner, *args
        return self.tracer.proxy("call_method", self.name, args)

    @functools.cached_property  # one node, however often used
    def node(self):
        args = "call_function", getattr, (self.owner, self.name)
        return self.tracer.proxy(*args).node


class Tracer:
    def proxy(self, op, target, args=()):
        args = tuple(self.argument(a) for a in args)
        node = self.graph.create_node(op, target, args)
        return Proxy(node, self)

    def argument(self, a):
        if isinstance(a, Proxy):
            return a.node
        if isinstance(a, int | float | str | None):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def is_leaf(self, module):
        return isinstance(module, Linear)

    def trace(self, root):
        self.graph, code = Graph(), type(root).forward.__code__
        names = code.co_varnames[1:code.co_argcount]
        args = [self.proxy("placeholder", n) for n in names]
        with watched(self, root):
            self.proxy("output", "output", [root.forward(*args)])
        return self.graph


@contextlib.contextmanager
def watched(tracer, root):
    """Calls and parameters of modules: the tracer first."""
    call, get = Module.__call__, Module.__getattr__
    path = {m: path for path, m in root.named_modules()}
    names = {p: name for name, p in root.named_parameters()}

    def module_call(module, *args):
        if tracer.is_leaf(module):
            return tracer.proxy("call_module", path[module], args)
        return call(module, *args)

    def module_get(module, name):
        value = get(module, name)
        if isinstance(value, Parameter):
            return tracer.proxy("get_attr", names[value])
        return value

    Module.__call__, Module.__getattr__ = module_call, module_get
    try:
        yield
    finally:
        Module.__call__, Module.__getattr__ = call, get


def line(node, functions):
    args = [repr(a) for a in node.args]
    if node.op == "output":
        return f"return {args[0]}"
    if node.target in SIGNS:
        value = f" {SIGNS[node.target]} ".join(args)
    elif node.op == "call_function":
        value = f"{functions[node.target]}({', '.join(args)})"
    elif node.op == "call_method":
        value = f"{args[0]}.{node.target}({', '.join(args[1:])})"
    else:
        value = "self"
        for name in node.target.split("."):
            value = (f"{value}.{name}" if name.isidentifier()
                     else f'getattr({value}, "{name}")')
        if node.op == "call_module":
            value += f"({', '.join(args)})"
    return f"{node.name} = {value}"


class GraphModule:
    """A function that is written from a graph, and its code."""

    def __init__(self, root, graph):
        self.root, self.graph = root, graph
        self.recompile()

    def recompile(self):
        inputs, body, named = ["self"], [], self.graph.functions
        names = {name: f for f, name in named.items()}
        for node in self.graph.nodes:
            if node.op == "placeholder":
                inputs.append(node.name)
            else:
                body.append("    " + line(node, named))
        head = f"def forward({', '.join(inputs)}):"
        self.code = "\n".join([head, *body])
        exec(self.code, names)
        self.forward = names["forward"]

    def __call__(self, *args):
        return self.forward(self.root, *args)


def symbolic_trace(root):
    return GraphModule(root, Tracer().trace(root))


def eliminate_dead_code(graph):
    for node in reversed(list(graph.nodes)):
        kept = node.op in ("placeholder", "output")
        if not kept and not graph.users(node):
            graph.nodes.remove(node)
