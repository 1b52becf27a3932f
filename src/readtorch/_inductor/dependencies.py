"""What a body reads and writes: it is run once with variables for its index, and its loads are noted.

In PyTorch: `torch/_inductor/dependencies.py`.
"""

from typing import NamedTuple

from .sizevars import Expr, Symbol, expression
from .virtualized import V

INDIRECT = "indirect"  # the symbol for an index that is only known when the kernel runs


class MemoryDep(NamedTuple):
    """An access: buffer `name` at `index`, an expression in the loops' variables."""

    name: str
    index: Expr

    def is_indirect(self):
        return any(symbol.name == INDIRECT for symbol in self.index.symbols())


class RecordLoads:
    """The handler of `ops` that notes what a body does. reads: MemoryDeps, each once. functions: names of scalar functions."""

    def __init__(self):
        self.reads, self.functions = {}, set()

    def load(self, name, index, code):
        self.reads[MemoryDep(name, index)] = None

    def index_expr(self, index, code):
        pass

    def indirect_indexing(self, value, size):
        return expression(Symbol(INDIRECT, size))

    def constant(self, value, code):
        pass

    def to_dtype(self, x, have, want):
        pass

    def call(self, function, operands, numbers, code):
        self.functions.add(function)


def extract_reads(inner_fn, index):
    """(MemoryDeps, names of functions) of a body."""
    handler = RecordLoads()
    with V.set_ops_handler(handler):
        inner_fn(index)
    return list(handler.reads), handler.functions
