"""Random programs, written straight into graphs: numbers, lists, tuples, tensors that are written to, If and
Loop.
"""

import random

from readtorch.csrc.jit.ir import Graph
from readtorch.csrc.jit.ir.type import BoolType, IntType, ListType, TensorType

INT, BOOL, TENSOR, INTS = "int", "bool", "Tensor", "int[]"
_TYPES = {INT: IntType.get(), BOOL: BoolType.get(), TENSOR: TensorType.get(), INTS: ListType.ofInts()}


class RandomProgram:
    """graph: inputs %x, %y (tensors of shape [3]), %n, %m (ints), %l (a list of ints); one tuple as
    output.
    """

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.graph = Graph()
        scope = {kind: [] for kind in _TYPES}
        for name, kind in (("x", TENSOR), ("y", TENSOR), ("n", INT), ("m", INT), ("l", INTS)):
            scope[kind].append(self.graph.addInput(name).setType(_TYPES[kind]))
        scope[BOOL].append(self.op("aten::lt", scope[INT][0], scope[INT][1]))
        self.statements(scope, depth=0, count=self.random.randint(4, 14))
        results = [v for kind in _TYPES for v in scope[kind][-3:]]
        self.graph.registerOutput(self.graph.insertNode(self.graph.createTuple(results)).output())

    def op(self, kind, *arguments, **kwargs):
        return self.graph.insert(kind, list(arguments), kwargs)

    def pick(self, scope, kind):
        return self.random.choice(scope[kind])

    def statements(self, scope, depth, count):
        for _ in range(count):
            choices = (
                [self.number] * 4
                + [self.condition]
                + [self.tensor] * 4
                + [self.write] * 2
                + [self.list] * 3
                + [self.tuple]
            )
            if depth < 3:
                choices += [self.branch, self.loop] * 2
            self.random.choice(choices)(scope, depth)

    # ------------------------------------------------------------------------------------------ one statement

    def small(self, value):
        """An int in 0..6: what is repeated and multiplied stays small."""
        return self.op("aten::remainder", value, 7)

    def number(self, scope, depth):
        a = self.random.choice([self.pick(scope, INT), self.random.randint(-3, 3)])
        kind = self.random.choice(["aten::add", "aten::sub", "aten::mul", "prim::min", "prim::max", "aten::floordiv"])
        b = self.random.randint(1, 4) if kind == "aten::floordiv" else self.pick(scope, INT)
        value = self.op(kind, a if kind != "aten::floordiv" else self.pick(scope, INT), b)
        scope[INT].append(self.small(value) if kind == "aten::mul" else value)

    def condition(self, scope, depth):
        kind = self.random.choice(
            ["aten::lt", "aten::eq", "aten::ge", "aten::__not__", "aten::__and__", "aten::__or__"]
        )
        if kind == "aten::__not__":
            value = self.op(kind, self.pick(scope, BOOL))
        else:
            of = BOOL if kind.startswith("aten::__") else INT
            value = self.op(kind, self.pick(scope, of), self.pick(scope, of))
        scope[BOOL].append(value)

    def tensor(self, scope, depth):
        x = self.pick(scope, TENSOR)
        kind = self.random.choice(
            "relu neg tanh sigmoid add mul sub add_number mul_one view expand_as clone detach".split()
        )
        if kind in ("add", "mul", "sub"):
            value = self.op(f"aten::{kind}", self.op("aten::tanh", x), self.pick(scope, TENSOR))
        elif kind == "add_number":
            value = self.op("aten::add", x, self.small(self.pick(scope, INT)))
        elif kind == "mul_one":
            value = self.op("aten::mul", x, 1)
        elif kind == "view":
            value = self.op("aten::view", x, [3])
        elif kind == "expand_as":
            value = self.op("aten::expand_as", x, self.pick(scope, TENSOR))
        else:
            value = self.op(f"aten::{kind}", x)
        scope[TENSOR].append(value)

    def write(self, scope, depth):
        x, y = self.op("aten::view", self.pick(scope, TENSOR), [3]), self.pick(scope, TENSOR)
        kind = self.random.choice(["add_", "copy_", "relu_", "fill_"])
        if kind == "relu_":
            value = self.op("aten::relu_", x)
        elif kind == "fill_":
            value = self.op("aten::fill_", x, self.random.randint(-2, 2))
        else:
            value = self.op(f"aten::{kind}", x, self.op("aten::tanh", y))
        if self.random.random() < 0.5:
            scope[TENSOR].append(value)

    def list(self, scope, depth):
        l = self.pick(scope, INTS)
        kind = self.random.choice("new append set get len slice sum add".split())
        if kind == "new":
            values = [self.pick(scope, INT) for _ in range(self.random.randint(1, 3))]
            scope[INTS].append(self.graph.insertNode(self.graph.createList(IntType.get(), values)).output())
        elif kind == "append":
            self.op("aten::append", l, self.pick(scope, INT))
        elif kind == "len":
            scope[INT].append(self.op("aten::len", l))
        elif kind == "slice":
            scope[INTS].append(self.op("aten::add", self.op("aten::slice", l, 1), self.op("aten::slice", l, None, 4)))
        elif kind == "sum":
            scope[INT].append(self.small(self.op("aten::sum", l)))
        elif kind == "add":
            scope[INTS].append(
                self.op(
                    "aten::add",
                    self.op("aten::slice", l, None, 5),
                    self.op("aten::slice", self.pick(scope, INTS), None, 5),
                )
            )
        elif kind == "get":
            scope[INT].append(self.op("aten::__getitem__", l, -1))
        else:
            self.op("aten::_set_item", l, 0, self.pick(scope, INT))

    def tuple(self, scope, depth):
        kinds = [self.random.choice([INT, TENSOR, BOOL, INTS]) for _ in range(self.random.randint(1, 3))]
        values = [self.pick(scope, kind) for kind in kinds]
        whole = self.graph.insertNode(self.graph.createTuple(values)).output()
        if self.random.random() < 0.5:
            parts = self.graph.insertNode(self.graph.createTupleUnpack(whole)).outputs()
            for kind, part in zip(kinds, parts):
                scope[kind].append(part)
        else:
            i = self.random.randrange(len(kinds))
            index = self.graph.insertConstant(i)
            part = self.graph.insertNode(self.graph.createTupleIndex(whole, index, _TYPES[kinds[i]])).output()
            scope[kinds[i]].append(part)

    # ------------------------------------------------------------------------------------------- control flow

    def body(self, block, scope, depth):
        """Statements in a block, which sees what is outside; returns its own scope."""
        inner = {kind: list(values) for kind, values in scope.items()}
        with self.graph.insert_point_guard(block):
            self.statements(inner, depth + 1, self.random.randint(1, 5))
        return inner

    def kinds(self):
        return [self.random.choice(list(_TYPES)) for _ in range(self.random.randint(0, 3))]

    def branch(self, scope, depth):
        constant = self.random.random() < 0.2
        condition = self.graph.insertConstant(self.random.random() < 0.5) if constant else self.pick(scope, BOOL)
        node = self.graph.insertNode(self.graph.create("prim::If", [condition], 0))
        kinds = self.kinds()
        for _ in range(2):
            block = node.addBlock()
            inner = self.body(block, scope, depth)
            for kind in kinds:
                block.registerOutput(self.pick(inner, kind))
        for kind in kinds:
            scope[kind].append(node.addOutput().setType(_TYPES[kind]))

    def loop(self, scope, depth):
        constant = self.random.random() < 0.5
        turns = self.graph.insertConstant(self.random.randint(0, 4)) if constant else self.small(self.pick(scope, INT))
        kinds = self.kinds()
        start = [self.pick(scope, kind) for kind in kinds]
        true = self.graph.insertConstant(True)
        node = self.graph.insertNode(self.graph.create("prim::Loop", [turns, true, *start], 0))
        block = node.addBlock()
        inner = {kind: list(values) for kind, values in scope.items()}
        inner[INT].append(block.addInput("i").setType(IntType.get()))
        for kind in kinds:
            inner[kind].append(block.addInput().setType(_TYPES[kind]))
        inner = self.body(block, inner, depth)
        goes_on = true if self.random.random() < 0.6 else self.pick(inner, BOOL)
        block.registerOutput(goes_on)
        for kind in kinds:
            block.registerOutput(self.pick(inner, kind))
        for kind in kinds:
            scope[kind].append(node.addOutput().setType(_TYPES[kind]))
