"""A group's kernel and what must be done around it, for operands of known dtypes, shapes and strides.

`plan(arguments)` takes arrays and numbers and returns the outputs' arrays.

PyTorch has no such file: `torch/csrc/jit/tensorexpr/kernel.cpp` compiles one kernel a group, for the shapes that were
profiled.
"""

import math

import numpy as np

from readtorch.aten import parallel
from readtorch.c10.tensor_impl import TensorImpl

from .llvm_codegen import compile_for, compiled, disable_compile, flat_source, rows_source
from .loop_nest import CODES, LoopNest, Profile, Unfusable
from .placement import best_placement, memory_order

DTYPES = {code: dtype for dtype, code in CODES.items()}
GRAIN = 65536  # elements that are worth handing over to another thread


def make_plan(graph, arguments):
    """A plan for operands like `arguments` (tensors and numbers). Raises Unfusable, or as operators do."""
    profile = Profile(graph, arguments)
    nest = LoopNest(graph, profile)
    if not nest.outputs:
        raise Unfusable("no outputs")
    tensors = [i for i, x in enumerate(nest.inputs) if x.is_tensor]
    shapes = [arguments[i]._array.shape for i in tensors]
    order = _order(nest, profile.outputs(graph), [arguments[i]._array for i in tensors])
    reductions = [o for o in nest.outputs if o.reduction]
    if len({o.over_all for o in reductions}) > 1:
        raise Unfusable("reductions over all elements and over rows in one group")
    over_all = reductions and reductions[0].over_all
    cut = None if not reductions else 0 if over_all else len(nest.shape) - 1
    placement = best_placement(nest.shape, order, shapes, cut)
    results = [r._array.shape for r in profile.outputs(graph)]
    if not reductions and placement.is_flat():
        return FlatPlan(nest, placement, tensors)
    return (WholePlan if over_all else RowsPlan)(nest, placement, tensors, results)


def _order(nest, results, operands):
    """The order of dimensions in memory: that of the first full result, else of the first full operand."""
    ndim = len(nest.shape)
    if any(o.reduction for o in nest.outputs):
        return list(range(ndim))
    arrays = [r._array for r in results if isinstance(r, TensorImpl)] + operands
    return next((memory_order(a) for a in arrays if a.shape == nest.shape), list(range(ndim)))


class Plan:
    def __init__(self, nest, placement, tensors):
        self.nest, self.placement, self.tensors = nest, placement, tensors
        self.dtypes = [DTYPES[output.code] for output in nest.outputs]

    @property
    def source(self):
        """The text of the kernel."""
        return self.text

    def placed(self, arguments):
        """The arguments as the kernel takes them."""
        placed = list(arguments)
        for i, kind in zip(self.tensors, self.placement.kinds):
            placed[i] = self.placement.place(arguments[i], kind)
        return placed

    def cut(self, placed, b, e, kinds):
        """The part from b to e of the operands that are not the same everywhere."""
        part = list(placed)
        for i, kind in zip(self.tensors, self.placement.kinds):
            if kind in kinds:
                part[i] = placed[i][b:e]
        return part


class FlatPlan(Plan):
    """One loop."""

    def __init__(self, nest, placement, tensors):
        super().__init__(nest, placement, tensors)
        self.singles = {i for i, kind in zip(tensors, placement.kinds) if kind == "one"}
        self.text = flat_source(nest, self.singles)
        self.kernel = compiled(self.text)
        disable_compile(self.kernel)
        self.is_compiled = False

    def __call__(self, arguments):
        flat = [
            a if i in self.singles or i not in self.tensors else a.reshape(-1)
            for i, a in enumerate(self.placed(arguments))
        ]
        outs = [np.empty(self.placement.n, dtype) for dtype in self.dtypes]
        if not self.is_compiled:
            compile_for(self.kernel, [*flat, *outs])
            self.is_compiled = True
        run_flat(self.kernel, flat, self.singles, outs)
        return [self.placement.restore(out) for out in outs]


def run_flat(kernel, flat, singles, outs):
    """The flat loop, shared among threads where that is worth it."""
    size = outs[0].size
    if size < 2 * GRAIN:
        kernel(*flat, *outs)
        return

    def piece(b, e):
        kernel(
            *[x if i in singles or not hasattr(x, "shape") else x[b:e] for i, x in enumerate(flat)],
            *[o[b:e] for o in outs],
        )

    parallel.parallel_for(0, size, GRAIN, piece)


class RowsPlan(Plan):
    """Two loops; each reduction gives one number a row."""

    def __init__(self, nest, placement, tensors, results):
        super().__init__(nest, placement, tensors)
        self.results = results
        kinds = ["full" if kind == "copied" else kind for kind in placement.kinds]
        self.text = rows_source(nest, kinds)
        self.kernel = compiled(self.text)

    def outputs(self, rows):
        """Arrays for the kernel's results: what is reduced is added up in float64."""
        return [
            np.empty(rows, np.float64) if output.reduction else np.empty((self.placement.rows, self.placement.n), dtype)
            for output, dtype in zip(self.nest.outputs, self.dtypes)
        ]

    def __call__(self, arguments):
        placed, rows, n = self.placed(arguments), self.placement.rows, self.placement.n
        outs = self.outputs(rows)

        def piece(b, e):
            self.kernel(*self.cut(placed, b, e, ("full", "copied", "column")), *[o[b:e] for o in outs], e - b, n)

        parallel.parallel_for(0, rows, max(1, GRAIN // max(1, n)), piece)
        return [self.finished(k, out, n) for k, out in enumerate(outs)]

    def finished(self, k, out, count):
        output = self.nest.outputs[k]
        if not output.reduction:
            return self.placement.restore(out)
        total = out / count if output.reduction == "mean" else out
        return total.astype(self.dtypes[k]).reshape(self.results[k])


class WholePlan(RowsPlan):
    """The same for reductions over all elements: one row, cut into pieces that threads share."""

    def __call__(self, arguments):
        placed, n = self.placed(arguments), self.placement.n
        pieces = 1 if n < 2 * GRAIN else math.ceil(n / GRAIN)
        outs = self.outputs(pieces)

        def piece(b, e):
            for k in range(b, e):
                self.one(placed, outs, k, slice(k * GRAIN, (k + 1) * GRAIN) if pieces > 1 else slice(None))

        parallel.parallel_for(0, pieces, 1, piece)
        totals = [self.together(k, out) for k, out in enumerate(outs)]
        return [self.finished(k, total, n) for k, total in enumerate(totals)]

    def one(self, placed, outs, k, where):
        part = list(placed)
        for i, kind in zip(self.tensors, self.placement.kinds):
            if kind in ("full", "copied"):
                part[i] = placed[i][:, where]
            elif kind == "row":
                part[i] = placed[i][where]
        outs = [o[k : k + 1] if x.reduction else o[:, where] for o, x in zip(outs, self.nest.outputs)]
        n = len(range(*where.indices(self.placement.n)))
        self.kernel(*part, *outs, 1, n)

    def together(self, k, out):
        reduction = self.nest.outputs[k].reduction
        return out if reduction is None else out.max(keepdims=True) if reduction == "amax" else out.sum(keepdims=True)
