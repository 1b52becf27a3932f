"""Writes the kernel of a fused group as numba code.

There are two forms. By rows, a kernel passes over each row as often as totals ask for it; by columns, it adds up row upon row:

    for i0 in range(rows):                        for i0 in range(reduced):
        for i1 in range(reduced): …                   for i1 in range(columns): total[i1] += …
        total, and what is computed from it       for i1 in range(columns): what is computed from total[i1]

A kernel without a reduction is the first form, whose rows have one element.

In PyTorch: `torch/_inductor/codegen/cpp.py`, which writes C++.
"""

import math
import re
import types
from typing import NamedTuple

from readtorch._inductor.sizevars import Size, Symbol, expression, flatten, hint
from readtorch._inductor.virtualized import V
from readtorch.aten.native import math as functions
from readtorch.c10.global_names import uses
from readtorch.csrc.jit.tensorexpr.llvm_codegen import compiled
from readtorch.csrc.jit.tensorexpr.loop_nest import cast_text, literal

MOST_LINES = (
    12  # of a loop that works on several vectors at a time: longer ones would not fit into a core's 32 registers
)
STEP = 1024  # so many numbers are added up in float32
START = {"sum": "0", "amax": "-inf", "amin": "inf"}
HEAD = '''"""A kernel, written by readtorch. See readtorch/_inductor/codegen/numba_cpu.py."""
from math import inf, nan  # noqa: F401

from numpy import bool_ as b1, empty, float32 as f32, float64 as f64, int32 as i32, int64 as i64  # noqa: F401

from readtorch._inductor.codegen.numba_prefix import fused_kernel, in_range, interleave, vectorize  # noqa: F401
from readtorch.aten.cpu.vec import greater as larger, smaller as lesser  # noqa: F401
from readtorch.csrc.jit.tensorexpr.cpu_functions import {names}


@fused_kernel
'''


class Value(NamedTuple):
    """text: a variable or a constant. depth: in how many loops it is known."""

    text: str
    depth: int


class NumbaKernel:
    """domain: of the nodes. stored: names of those that others read. source: the text; arguments: names of the buffers that it takes;
    sizes: of the symbols that it takes behind them.
    """

    def __init__(self, domain, stored):
        self.domain, self.stored = domain, stored
        self.inputs, self.outputs = {}, {}  # buffer -> parameter
        self.functions, self.cse, self.values, self.count = set(), {}, {}, 0
        self.places = {}  # Symbol of a computed index -> in how many loops it is known
        self.scratch, self.head = {}, []  # buffer -> array for one row; lines before the loops
        kept, reduced = self.ordered(domain.kept), self.ordered(domain.reduced)
        self.by_columns = self.wants_columns(kept, reduced)
        self.kept, self.reduced, self.values_of = self.merged(kept, reduced)
        self.source = self.write()
        self.arguments = [*self.inputs, *self.outputs]

    # -- the loops

    def reference(self):
        """The access that decides how loops are nested: the first write, or with a reduction the read that needs most variables."""
        accesses = self.domain.accesses
        reads = [read for access in accesses if access.kind == "reduction" for read in access.reads]
        reads = [read.index for read in reads if not read.is_indirect()]
        if not reads:
            return accesses[0].write.index
        return max(reads, key=lambda index: len(index.symbols()))

    def step_of(self, symbol):
        coefficient = self.reference().coefficient(symbol)
        return math.inf if coefficient is None else hint(coefficient)

    def ordered(self, symbols):
        return sorted(symbols, key=self.step_of, reverse=True)

    def wants_columns(self, kept, reduced):
        """Whether what is added up lies next to each other less than what is kept."""
        levels = [self.domain.levels[a.node.name] for a in self.domain.accesses if a.kind != "kept"]
        return bool(kept and reduced) and not any(levels) and 0 < self.step_of(kept[-1]) < self.step_of(reduced[-1])

    def merged(self, kept, reduced):
        """Both lists with loops that are one in memory made one, and what the domain's symbols are in these."""
        parts = [kept[:-1], kept[-1:], reduced] if self.by_columns else [kept, [], reduced]
        indices = [a.write.index for a in self.domain.accesses]
        indices += [read.index for a in self.domain.accesses for read in a.reads]
        values, lists, numbers = {}, [], iter(range(99))
        for part in parts:
            runs = []
            for symbol in part:
                if runs and all(_adjacent(runs[-1][-1], symbol, index) for index in indices):
                    runs[-1].append(symbol)
                else:
                    runs.append([symbol])
            lists.append([self.one_loop(run, values, numbers) for run in runs])
        return lists[0] + lists[1], lists[2], values

    @staticmethod
    def one_loop(run, values, numbers):
        symbol = Symbol(f"i{next(numbers)}", math.prod(s.size for s in run))
        rest = expression(symbol)
        for s in reversed(run):
            values[s], rest = (rest.mod(s.size) if s is not run[0] else rest), rest.floor_div(s.size)
        return symbol

    # -- what a body asks for: the handler of `ops`

    def load(self, name, index, code):
        if name in self.values:
            return self.values[name]
        if name in self.scratch:
            return self.emit(f"{self.scratch[name]}[{self.in_row()}]", len(self.loops))
        written = name in self.outputs
        parameter = self.outputs[name] if written else self.inputs.setdefault(name, f"in_ptr{len(self.inputs)}")
        depth = len(self.loops) if written else self.depth_of(index)
        return self.emit(f"{parameter}[{index}]", depth)

    def index_expr(self, index, code):
        return self.emit(f"{code}({index})", self.depth_of(index))

    def indirect_indexing(self, value, size):
        place = self.emit(f"in_range({value.text}, {size})", value.depth)
        symbol = Symbol(place.text, size)
        self.places[symbol] = place.depth
        return expression(symbol)

    def constant(self, value, code):
        return Value(literal(repr(value), code), 0)

    def to_dtype(self, x, have, want):
        return x if have == want else self.emit(cast_text(x.text, have, want), x.depth)

    def call(self, function, operands, numbers, code):
        self.functions.add(function)
        text = f"{function}({', '.join(x.text for x in operands)}, {numbers!r})"
        return self.emit(f"i32({text})" if code == "i32" else text, max(x.depth for x in operands))

    def depth_of(self, index):
        symbols = index.symbols()
        loops = [k + 1 for k, loop in enumerate(self.loops) if loop in symbols]
        return max([*loops, *(self.places.get(symbol, 0) for symbol in symbols)], default=0)

    def emit(self, text, depth):
        """A variable for a text, in the outermost loop that it can be in."""
        if text not in self.cse:
            self.cse[text] = Value(f"tmp{self.count}", depth)
            self.lines[depth].append(f"tmp{self.count} = {text}")
            self.count += 1
        return self.cse[text]

    # -- writing

    def write(self):
        """The text: for (x * 2).sum(-1) with x of sizes (3, 4), below the imports,

            def fused(in_ptr0, out_ptr0):
                for i0 in range(3):
                    total2 = 0.0
                    part2 = f32(0)
                    for i1 in range(4):
                        tmp0 = in_ptr0[4*i0 + i1]
                        tmp1 = mul(tmp0, f32(2), ())
                        part2 += tmp1
                        vectorize()
                    total2 += part2
                    tmp3 = f32(total2)
                    out_ptr0[i0] = tmp3

        Four numbers a row are added up in float32, the sums of such pieces in float64. Sizes that are left open are parameters behind the arrays.
        """
        outer = self.kept[:-1] if self.by_columns else self.kept
        self.loops, self.outer = outer, outer
        self.lines = [[] for _ in range(len(outer) + 1)]
        for level in range(max(self.domain.levels.values()) + 1):
            accesses = [a for a in self.domain.accesses if self.domain.levels[a.node.name] == level]
            (self.write_columns if self.by_columns else self.write_rows)(accesses)
        innermost = not self.by_columns and not self.reduced
        body = nested(self.outer, self.lines, self.remark(self.lines[-1]) if innermost and outer else [])
        text = indented([*self.head, *body])
        self.sizes = [name for name in V.graph.sizes if re.search(rf"\b{name}\b", "\n".join(text))]
        parameters = ", ".join([*self.inputs.values(), *self.outputs.values(), *self.sizes])
        return HEAD.format(names=", ".join(sorted(self.functions or {"copy"}))) + "\n".join(
            [f"def fused({parameters}):", *text, ""]
        )

    def remark(self, lines):
        """The last line of an innermost loop, see codegen/numba_prefix.py. Short loops with functions of `math` work on several vectors at a
        time: Note [ Several vectors at a time ]. A loop that may end before its time works on one element at a time.
        """
        if any("in_range(" in line for line in lines):
            return []
        called = [getattr(functions, line.split(" = ")[-1].split("(")[0], None) for line in lines]
        waits = any(uses(f, functions.math) for f in called if isinstance(f, types.FunctionType))
        return ["interleave()" if waits and len(lines) <= MOST_LINES else "vectorize()"]

    def value_of(self, access):
        """The node's element, as text."""
        with V.set_ops_handler(self):
            return access.node.buffer.data.inner_fn([i.replace(self.values_of) for i in access.index])

    def begin_pass(self, loops):
        """From here on, lines may go into further loops."""
        self.loops = self.outer + loops
        self.lines += [[] for _ in loops]

    def end_pass(self, starts=(), ends=()):
        """The loops of the pass become lines of the row. starts, ends: lines around the innermost loop."""
        depth = len(self.outer)
        inner, lines = self.loops[depth:], [[], *self.lines[depth + 1 :]]
        del self.lines[depth + 1 :]
        self.lines[depth] += nested(inner, lines, self.remark(lines[-1]), starts, ends)
        self.loops = self.outer
        self.cse = {text: value for text, value in self.cse.items() if value.depth <= depth}

    def write_rows(self, accesses):
        """A pass over the row, what is made of totals, and elements that there is one of in a row."""
        inside = [a for a in accesses if a.kind != "kept"]
        if inside:
            totals, starts, ends = [], [], []
            self.begin_pass(self.reduced)
            for access in inside:
                if access.kind == "full":
                    self.store(access, self.value_of(access))
                else:
                    totals.append((access, self.accumulate(access, starts, ends)))
            passing = [a.node.name for a in inside if a.kind == "full"]
            if not self.reduced:
                self.lines[-1] = starts + self.lines[-1] + ends
                starts, ends = [], []
            if self.reduced or totals:
                self.end_pass(starts, ends)
            for name in passing if self.reduced else []:
                del self.values[name]
            for access, text in totals:
                self.store(access, self.emit(text, len(self.outer)))
        for access in accesses:
            if access.kind == "kept":
                self.store(access, self.value_of(access))

    def accumulate(self, access, starts, ends):
        """The lines that add a node's element to a row's total. Returns the total, as text."""
        data, value, k = access.node.buffer.data, self.value_of(access).text, self.count
        self.count += 1
        code, row, inside = data.layout.code, self.lines[len(self.outer)], self.lines[-1]
        if data.kind != "sum":
            row += [f"total{k} = {code}({START[data.kind]})", f"nans{k} = 0"]
            inside += [
                f"total{k} = {'larger' if data.kind == 'amax' else 'lesser'}(total{k}, {value})",
                f"nans{k} += {value} != {value}",
            ]
            return f"{code}(nan) if nans{k} else total{k}"
        if code != "f32":
            row.append(f"total{k} = {code}(0)")
            inside.append(f"total{k} += {value}")
            return f"{code}(total{k})"
        row.append(f"total{k} = 0.0")
        starts.append(f"part{k} = f32(0)")
        inside.append(f"part{k} += {value}")
        ends.append(f"total{k} += part{k}")
        return f"f32(total{k})"

    def write_columns(self, accesses):
        """Rows are added up, then each column's total is what the rest is made of."""
        last, totals = self.kept[-1], []
        self.begin_pass([*self.reduced, last])
        for access in accesses:
            if access.kind == "full":
                self.store(access, self.value_of(access))
            elif access.kind == "reduction":
                totals.append((access, self.accumulate_column(access, last)))
        self.end_pass()
        self.values.clear()
        self.begin_pass([last])
        for access, text in totals:
            self.store(access, self.emit(text, len(self.loops)))
        for access in accesses:
            if access.kind == "kept":
                self.store(access, self.value_of(access))
        self.end_pass()

    def accumulate_column(self, access, last):
        data, value, k = access.node.buffer.data, self.value_of(access).text, self.count
        self.count += 1
        code = data.layout.code
        many = data.kind == "sum" and code == "f32" and may_exceed(math.prod(s.size for s in self.reduced), STEP)
        held = "f64" if many else code
        self.head.append(f"total{k} = empty({last.size}, {held})")
        self.lines[len(self.outer)].append(f"total{k}[:] = {held}({START[data.kind]})")
        if data.kind == "sum":
            self.lines[-1].append(f"total{k}[{last}] += {value}")
        else:
            function = {"amax": "maximum", "amin": "minimum"}[data.kind]
            self.functions.add(function)
            self.lines[-1].append(f"total{k}[{last}] = {function}(total{k}[{last}], {value}, ())")
        return f"{code}(total{k}[{last}])"

    def store(self, access, value):
        """The element in its place, if others will read it; for nodes of this kernel the variable will do."""
        name, depth = access.node.name, len(self.loops)
        self.values[name] = value
        if name in self.stored:
            parameter = self.outputs.setdefault(name, f"out_ptr{len(self.outputs)}")
            index = access.write.index.replace(self.values_of)
            self.lines[depth].append(f"{parameter}[{index}] = {value.text}")
        elif access.kind == "full" and self.read_later(name):
            row = self.scratch[name] = f"row{len(self.scratch)}"
            size = math.prod(s.size for s in self.reduced)
            self.head.append(f"{row} = empty({size}, {access.node.buffer.layout.code})")
            self.lines[depth].append(f"{row}[{self.in_row()}] = {value.text}")

    def read_later(self, name):
        """Whether another pass reads it."""
        levels = self.domain.levels
        readers = [a for a in self.domain.accesses if any(read.name == name for read in a.reads)]
        return any(levels[a.node.name] > levels[name] for a in readers)

    def in_row(self):
        """The number of an element in its row."""
        return flatten([expression(s) for s in self.reduced], [s.size for s in self.reduced])


def _adjacent(outer, inner, index):
    a, b = index.coefficient(outer), index.coefficient(inner)
    return a is not None and b is not None and a == b * inner.size


def may_exceed(size, most):
    return isinstance(size, Size) or size > most


def indented(lines):
    return [f"    {line}" for line in lines]


def nested(loops, lines, remark, starts=(), ends=()):
    """Loops in one another. lines: those of each depth, from outside all to the innermost. starts, ends: lines around the innermost loop."""
    body = [*lines[len(loops)], *(remark if loops else [])]
    for depth in range(len(loops) - 1, -1, -1):
        loop, innermost = loops[depth], depth == len(loops) - 1
        if innermost and starts and may_exceed(loop.size, STEP):
            body = [f"for {loop} in range(start, min(start + {STEP}, {loop.size})):", *indented(body)]
            body = [f"for start in range(0, {loop.size}, {STEP}):", *indented([*starts, *body, *ends])]
            body = [*lines[depth], *body]
        else:
            body = [f"for {loop} in range({loop.size}):", *indented(body)]
            body = [*lines[depth], *(starts if innermost else ()), *body, *(ends if innermost else ())]
    return body


def compiled_kernel(source):
    """What the text defines. Equal texts are one kernel, see csrc/jit/tensorexpr/llvm_codegen.py."""
    return compiled(source)
