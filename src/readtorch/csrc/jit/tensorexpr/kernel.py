"""One fused group at run time.

A call goes through three stages, the cheap one first:

    1. `fast`: generated functions that check their guards in one expression and call the kernel, for plain
       operands that lie flat. This is all that most calls see.
    2. `slow`: finds or makes the plan for the operands' dtypes, shapes and strides; records the gradient if
       one is wanted.
    3. the unfused graph, where no kernel serves. `reasons` says why.

In PyTorch: `torch/csrc/jit/tensorexpr/kernel.cpp` (`TensorExprKernel::run`); the guards are nodes of the
graph there (`prim::TypeCheck`), with the unfused graph in the other branch of a `prim::If`. Explained in
the chapter "Inductor: loops, fusion, code".
"""

import numpy as np

from readtorch.aten.codegen import compile_function
from readtorch.c10 import tensor_impl
from readtorch.c10.dispatch_key import CPU, FOLLOWED, GRAD_FACTS, key_names
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.c10.tensor_impl import NO_EDGE, TensorImpl, new, wrap
from readtorch.csrc.autograd.variable import gradient_edge
from readtorch.csrc.jit.ir.graph import Graph
from readtorch.csrc.jit.runtime.code_impl import Code
from readtorch.csrc.jit.runtime.interpreter import run

from .autodiff import differentiable
from .loop_nest import CODES, Unfusable
from .plans import GRAIN, FlatPlan, make_plan, run_flat

CODES_TO_NAMES = {code: dtype.name for dtype, code in CODES.items()}
MISS = object()  # what a guarded function returns if its guards do not hold
MAX_PLANS = 256  # kept for one group; more shapes than these run unfused


class TensorExprKernel:
    """Runs `graph`, a group. plans: (dtypes, shapes, strides) -> Plan, or the reason why there is none.

    unfused_runs: so many calls run operator by operator before anything is compiled.
    """

    def __init__(self, graph, unfused_runs=0):
        self.graph = graph
        self.unfused_runs = unfused_runs
        self.fast, self.on_arrays = [], []
        self.plans = {}
        self.reasons = []
        self.depends = {}  # which operands need a gradient -> whether each output has one
        self.gradients = {}  # what is differentiated, and for which operands -> what computes the gradients
        self._code = None

    def __call__(self, *values):
        for function in self.fast:
            result = function(*values)
            if result is not MISS:
                return result
        return self.slow(values)

    def slow(self, values):
        """Find or make a plan. Gradients are recorded here."""
        if self.unfused_runs:
            self.unfused_runs -= 1
            return self.unfused(values)
        keys = 0
        for value in values:
            if isinstance(value, TensorImpl):
                keys |= value._keys
        keys &= tls.mask if threads_with_modes else DEFAULT_MASK
        if keys & ~(FOLLOWED | GRAD_FACTS) != CPU:
            return self.unfused(
                values, f"operands or modes that the kernel does not serve: {', '.join(key_names(keys & ~FOLLOWED))}"
            )
        if keys & GRAD_FACTS:
            edges = [gradient_edge(v) if isinstance(v, TensorImpl) else NO_EDGE for v in values]
            if any(edge is not NO_EDGE for edge in edges):
                return differentiable(self, values, edges)
        results = self.compute(values)
        return self.unfused(values) if results is None else one_or_all([wrap(r) for r in results])

    def compute(self, values):
        """The outputs' arrays, or None where no kernel serves."""
        arguments = [v._array if isinstance(v, TensorImpl) else v for v in values]
        for function in self.on_arrays:
            results = function(*arguments)
            if results is not MISS:
                return results
        signature = tuple([(a.dtype, a.shape, a.strides) if isinstance(a, np.ndarray) else type(a) for a in arguments])
        plan = self.plans.get(signature)
        if plan is None:
            plan = self.new_plan(signature, values)
        return None if isinstance(plan, str) else plan(arguments)

    def new_plan(self, signature, values):
        """Make a plan, note a reason if there is none; if it is flat, add a guarded function, which is tried first."""
        try:
            if len(self.plans) >= MAX_PLANS:
                raise Unfusable(f"more than {MAX_PLANS} combinations of shapes")
            plan = make_plan(self.graph, values)
        except Unfusable as reason:
            plan = str(reason)
            self.note(plan)
        if len(self.plans) < MAX_PLANS:
            self.plans[signature] = plan
        if isinstance(plan, FlatPlan) and plan.placement.plain and plan.tensors:
            self.add_fast(plan)
        return plan

    def add_fast(self, plan):
        for functions, source in ((self.fast, guarded_source(plan)), (self.on_arrays, array_source(plan))):
            if source not in [f.source for f in functions]:
                functions.append(guarded_function(plan, source))

    def unfused(self, values, reason=None):
        """Run the graph operator by operator."""
        if reason is not None:
            self.note(reason)
        if self._code is None:
            self._code = Code(self.graph, "fused")
        return one_or_all(run(self._code, values))

    def note(self, reason):
        if reason not in self.reasons:
            self.reasons.append(reason)

    @property
    def source(self):
        """The text of the kernels that have been made, one below the other."""
        return "\n\n".join(dict.fromkeys(p.source for p in self.plans.values() if not isinstance(p, str)))


def one_or_all(results):
    return results[0] if len(results) == 1 else tuple(results)


# ------------------------------------------------------------------------------------------ guarded functions


def guarded_source(plan):
    """A function that checks whether the flat kernel serves, calls it and wraps what it made.

    Guards: every operand is a plain CPU tensor without history, of the dtype and number of dimensions that
    the kernel was compiled for, all of one shape but for single numbers, and without gaps. (numba itself
    refuses what it was not compiled for, but with an exception, which takes forty times as long.)
    """
    keys = " | ".join(f"x{i}._keys" for i in plan.tensors)
    checks = [
        f"({keys}) & (tls.mask if threads_with_modes else DEFAULT_MASK) & NOT_FOLLOWED != CPU",
        *_array_checks(plan),
    ]
    lines = [f"def fused_call({_inputs(plan)}):", "    try:"]
    lines += [f"        a{i} = x{i}._array" for i in plan.tensors]
    lines += _checked(plan, checks)
    for k in range(len(plan.dtypes)):
        lines += [
            f"    t{k} = new(Tensor)",
            f"    t{k}._array = out{k}",
            f"    t{k}._keys = CPU_TENSOR",
            f"    t{k}._counter = [0]",
            f"    t{k}._edge = NO_EDGE",
            f"    t{k}._storage_impl = t{k}._base = t{k}._autograd_meta = None",
        ]
    return "\n".join([*lines, f"    return {', '.join(f't{k}' for k in range(len(plan.dtypes)))}"]) + "\n"


def array_source(plan):
    """The same from arrays to a list of arrays, for operands that have a history."""
    lines = [f"def fused_call({_inputs(plan)}):", "    try:"]
    lines += [f"        a{i} = x{i}" for i in plan.tensors]
    lines += _checked(plan, _array_checks(plan))
    return "\n".join([*lines, f"    return [{', '.join(f'out{k}' for k in range(len(plan.dtypes)))}]"]) + "\n"


def _inputs(plan):
    return ", ".join(x.name for x in plan.nest.inputs)


def _full(plan):
    """Numbers of the operands that have the result's shape."""
    return [i for i in plan.tensors if i not in plan.singles] or plan.tensors


def _array_checks(plan):
    """Conditions under which the kernel does not serve the arrays a0, …"""
    full, inputs = _full(plan), plan.nest.inputs
    checks = [f"a{i}.dtype is not {CODES_TO_NAMES[inputs[i].code]}" for i in plan.tensors]
    checks += [f"a{i}.shape != shape" for i in full[1:]]
    checks += [f"a{i}.shape" for i in plan.tensors if i not in full]
    return [*checks, *[f"not a{i}.flags.c_contiguous" for i in full], f"len(shape) != {len(plan.placement.shape)}"]


def _checked(plan, checks):
    """The lines from the guards to the kernel's call."""
    full, outs = _full(plan), [f"out{k}" for k in range(len(plan.dtypes))]
    flat = "{}" if len(plan.placement.shape) == 1 else "{}.reshape(-1)"
    operands = [x.name if not x.is_tensor else f"a{i}" for i, x in enumerate(plan.nest.inputs)]
    operands = ", ".join(flat.format(text) if i in full else text for i, text in enumerate(operands))
    results = ", ".join(flat.format(out) for out in outs)
    return [
        f"        shape = a{full[0]}.shape",
        f"        if {' or '.join(checks)}: return MISS",
        "    except AttributeError:",
        "        return MISS",
        *[f"    {out} = empty(shape, dtype{k})" for k, out in enumerate(outs)],
        "    try:",
        f"        if out0.size < {2 * GRAIN}:",
        f"            kernel({operands}, {results})",
        "        else:",
        f"            run_flat(kernel, ({operands},), singles, ({results},))",
        "    except (TypeError, RuntimeError):  # not compiled for these types, or just being compiled",
        "        return MISS",
    ]


def guarded_function(plan, source):
    names = {
        "tls": tls,
        "threads_with_modes": threads_with_modes,
        "DEFAULT_MASK": DEFAULT_MASK,
        "CPU": CPU,
        "NOT_FOLLOWED": ~FOLLOWED,
        "MISS": MISS,
        "empty": np.empty,
        "CPU_TENSOR": tensor_impl.CPU_TENSOR,
        "NO_EDGE": NO_EDGE,
        "new": new,
        "Tensor": tensor_impl.tensor_class,
        "kernel": plan.kernel,
        "run_flat": run_flat,
        "singles": plan.singles,
    }
    names |= {f"dtype{k}": dtype for k, dtype in enumerate(plan.dtypes)}
    names |= {name: np.dtype(name) for name in CODES_TO_NAMES.values()}
    function = compile_function("fused_call", source, names)
    function.source = source
    return function


class GroupGraph(Graph):
    """A group's graph. Its copies share one kernel: a graph is copied before it becomes instructions."""

    def __init__(self):
        super().__init__()
        self.kernels = []

    def copy(self):
        other = GroupGraph()
        other._block.cloneFrom(self._block, None)
        other.kernels = self.kernels
        return other


def kernel_of(node, unfused_runs=0):
    """The TensorExprKernel of a group's node, made when first asked for."""
    graph = node.g("Subgraph")
    if not isinstance(graph, GroupGraph):  # it was parsed from text
        return TensorExprKernel(graph, unfused_runs)
    if not graph.kernels:
        graph.kernels.append(TensorExprKernel(graph.copy(), unfused_runs))
    return graph.kernels[0]
