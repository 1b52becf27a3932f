"""The inputs of a captured graph with their sizes left open: what AOTAutograd traces it with.

    captured by Dynamo      forward(L_x_, L_w_)         L_x_ with a first size that may change
    traced                  forward(s77, L_x_, L_w_)    s77 stands in front of the first tensor that has it

A size, or a whole number among the inputs, is a symbol of a ShapeEnv. What the trace has asked of symbols, and everything that is no
symbol in it, is compared with each call's inputs by the function that `binding` writes.

In PyTorch: `torch/_dynamo/output_graph.py` (`track_symint`, `bind_symint`): there the captured graph has these inputs already.
"""

import math

from readtorch._subclasses import FakeTensorMode
from readtorch._tensor import Tensor
from readtorch.aten.codegen import compile_function
from readtorch.c10.sym_int import SymInt
from readtorch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv, StatelessSymbolicContext
from readtorch.nn import Module
from readtorch.utils._sympy.printers import python_code


class SymbolicInputs:
    """names: of what the traced graph takes, as `binding` calls it. fakes: fake tensors and SymInts for these."""

    def __init__(self, placeholders, inputs):
        self.env = ShapeEnv()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True, shape_env=self.env, static_shapes=True)
        self.placeholders = placeholders
        self.names, self.fakes, self.bound = [], [], []  # bound: lines that read symbols
        self.conditions = []
        self.places = [self.add(node, value) for node, value in zip(placeholders, inputs)]

    def add(self, node, value):
        """The place of an input among `fakes`; one that is a constant of the trace as (value,)."""
        if isinstance(value, Tensor):
            return self.add_tensor(node, value)
        if type(value) is not int or value in (0, 1):
            self.conditions.append(f"repr({node.name}) == {repr(value)!r}")  # repr: -0.0 is 0.0
            return (value,)
        expr = self.env.create_symbol(value, node.meta["source"], DimDynamic.DUCK, positive=None)
        self.bind(expr, value, node.name)
        return self.names.index(str(expr))

    def add_tensor(self, node, value):
        opened = node.meta.get("dynamic_dims", ())
        kinds = [DimDynamic.DUCK if i in opened else DimDynamic.STATIC for i in range(value.dim())]
        context = StatelessSymbolicContext(kinds, [None] * value.dim())
        source = node.meta["source"] if opened else None
        fake = self.mode.from_tensor(value, static_shapes=not opened, source=source, symbolic_context=context)
        for i, size in enumerate(fake.shape):
            if isinstance(size, SymInt):
                self.bind(size.node.expr, value.shape[i], f"{node.name}._array.shape[{i}]")
        self.names.append(node.name)
        self.fakes.append(fake)
        return len(self.fakes) - 1

    def bind(self, expr, value, text):
        """A symbol is read where it is seen first; elsewhere it must be the same."""
        if str(expr) in self.names:
            self.conditions.append(f"{text} == {expr}")
            return
        self.names.append(str(expr))
        self.fakes.append(self.env.create_symintnode(expr, hint=value))
        self.bound.append(f"{expr} = {text}")

    def taken_by(self, module):
        """A module that takes these inputs and calls `module` with its own."""
        places = self.places

        class WithSymbols(Module):
            def __init__(self):
                super().__init__()
                self.graph_module = module

            def forward(self, *args):
                return module(*[place[0] if isinstance(place, tuple) else args[place] for place in places])

        return WithSymbols()

    def binding(self):
        """A function from the captured graph's inputs to those of the trace, None if it is not for them. For x of sizes (s77, 8) and y of
        sizes (s77,), between which the program has asked whether s77 is above 3,

            def bind(L_x_, L_y_):
                s77 = L_x_._array.shape[0]
                if L_y_._array.shape[0] == s77 and s77 >= 2 and s77 > 3:
                    return s77, L_x_, L_y_
        """
        symbols = {s: s.name for s in self.env.var_to_range}
        ranges = [f"{s} >= 2" for s, (low, _) in self.env.var_to_range.items() if low >= 2]
        guards = [python_code(guard.expr, symbols) for guard in self.env.guards]
        conditions = " and ".join([*self.conditions, *ranges, *guards]) or "True"
        lines = [*self.bound, f"if {conditions}:", f"    return ({''.join(f'{name}, ' for name in self.names)})"]
        head = f"def bind({', '.join(node.name for node in self.placeholders)}):"
        return compile_function("bind", "\n".join([head, *[f"    {line}" for line in lines], ""]), {"math": math})
