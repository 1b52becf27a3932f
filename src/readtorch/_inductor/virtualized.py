"""What the functions of the loops' bodies are written against: `ops`, whose meaning changes with who asks.

    with V.set_ops_handler(handler): body(index)

The same body is asked for what it reads (`dependencies.py`), and for its text (`codegen/numba_cpu.py`). A handler has

    load(name, index, code)                         an element of a buffer
    index_expr(index, code)                         an index as a number
    indirect_indexing(value, size)                  a number as an index: 0 … size - 1, or the kernel raises RuntimeError
    constant(value, code)
    to_dtype(x, have, want)
    call(function, operands, numbers, code)         a scalar function of `aten/native/math.py`

A code is a type of a kernel: "f32", "f64", "i64", "i32" or "b1".

In PyTorch: `torch/_inductor/virtualized.py` and `ops_handler.py`.
"""

import contextlib
import threading


class _Virtualized(threading.local):
    """ops: the handler. graph: the graph that is being lowered."""

    ops = graph = None

    @contextlib.contextmanager
    def _set(self, name, value):
        before = getattr(self, name)
        setattr(self, name, value)
        try:
            yield value
        finally:
            setattr(self, name, before)

    def set_ops_handler(self, handler):
        return self._set("ops", handler)

    def set_graph_handler(self, graph):
        return self._set("graph", graph)


V = _Virtualized()
