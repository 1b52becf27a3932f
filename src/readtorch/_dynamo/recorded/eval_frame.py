"""`compile`: a function that keeps graphs of its calls, and runs one of them where its guards hold.

    call ── guards of graph 1 hold? ── run it
         ── guards of graph 2 hold? ── run it
         ── none: capture this call (which runs as usual), optimise, fuse, keep it

In PyTorch: `torch/_dynamo/eval_frame.py` and `torch/csrc/dynamo/eval_frame.c`: CPython asks there, before
it runs a frame, whether other bytecode should run in its place. Explained in the chapter "The fuser, and
from TorchScript to torch.compile".
"""

import contextlib
import functools
import inspect
import logging

import readtorch
from readtorch._dynamo import config
from readtorch._dynamo.backends import lookup_backend
from readtorch._dynamo.exc import FailOnRecompileLimitHit, Unsupported
from readtorch._dynamo.recorded.guards import Guards
from readtorch._dynamo.recorded.reads import CannotTell, Reads
from readtorch._dynamo.recorded.trace_rules import asks_for_defaults, dynamic_shape
from readtorch.aten.codegen import compile_function
from readtorch.c10.local_dispatch_key_set import trace_under_way
from readtorch.csrc.jit.tensorexpr.kernel import MISS
from readtorch.utils._pytree import SUPPORTED_NODES, _get_node_type, tree_flatten, tree_is_leaf, tree_unflatten

from .output_graph import Capture

log = logging.getLogger(__name__)

NOTHING = ()

# Operators whose call does not depend on the sizes that the trace saw: their graphs serve other shapes.
ANY_SIZE = {
    f"aten::{name}"
    for name in (
        "linear addmm mm matmul bmm t transpose softmax log_softmax layer_norm dropout embedding sum mean "
        "amax relu gelu clone detach contiguous"
    ).split()
} | {"prim::Constant", "prim::TensorExprGroup", "prim::ListConstruct"}


class Entry:
    """One graph of a function with its guards. run(arguments in order) returns MISS if they do not hold."""

    def __init__(self, capture, guards, run, graph, is_static):
        self.guards = guards
        self.run = run
        self.graph = graph
        self.is_static = is_static
        self.count = None  # how many arguments, if all came by position and none is a list or the like
        self.fast = (
            NOTHING  # (whether the guards on all else hold, functions of the arguments that check theirs and run)
        )


class CompiledFunction:
    """What `compile(function)` keeps. entries: its graphs; reasons: why calls ran as written."""

    def __init__(self, function, backend, fullgraph, dynamic, limit=None):
        self.function = function
        self.backend = backend
        self.fullgraph = fullgraph
        self.dynamic = dynamic
        self.limit = config.recompile_limit if limit is None else limit
        self.reset()

    def reset(self):
        self.entries = []
        self.fast_entries = []  # for calls with positional arguments alone: the entries' `fast` functions
        self.reasons = []
        self.given_up = False

    # -------------------------------------------------------------------------------------------------- calls

    def miss(self, args, kwargs):
        """A call that no fast function accepted."""
        if trace_under_way() is not None or self.given_up:
            return self.function(*args, **kwargs)
        for entry in self.entries:  # most calls need not be flattened
            if entry.count == len(args) and not kwargs:
                result = entry.run(args)
                if result is not MISS:
                    return result
        leaves, spec = tree_flatten((args, kwargs))
        for entry in self.entries:
            if entry.count is None and entry.spec == spec:
                result = entry.run(leaves)
                if result is not MISS:
                    return result
        return self.compile(args, kwargs, leaves, spec)

    def compile(self, args, kwargs, leaves, spec):
        """Run the call and keep a graph of it. Note the reason if that is not possible."""
        if len(self.entries) >= self.limit:
            return self.over_limit(args, kwargs)
        try:
            reads = Reads(self.function, leaves, spec)
        except CannotTell as why:
            return self.give_up(str(why), lambda: self.function(*args, **kwargs))
        before = Guards()
        for i, leaf in enumerate(leaves):
            before.argument(f"x{i}", _shown(i, self.function), leaf, True)
        with compiling():
            capture = Capture(self.function, args, kwargs, reads.tensors)
        reason = capture.state.reason or _without_graph(capture.graph)
        reason = reason or _changed(reads, before, (args, kwargs), leaves, spec)
        reason = reason or _not_new(reads, (args, kwargs), capture.result)
        if reason:
            return self.give_up(reason, lambda: capture.result)
        self.entries.append(self.entry(capture, leaves, spec, reads))
        self.update_fronts()
        return capture.result

    def give_up(self, reason, result):
        """Calls of this function run as it is written, from now on."""
        self.reasons.append(reason)
        self.given_up = True
        if self.fullgraph:
            raise Unsupported(f"{_name(self.function)}: {reason}")
        return result()

    def over_limit(self, args, kwargs):
        self.given_up = True
        last = self.why_missed(args, kwargs)
        message = (
            f"torch._dynamo hit config.recompile_limit ({self.limit})\n"
            f"   function: '{_name(self.function)}'\n"
            f"   last reason: {last}"
        )
        self.reasons.append(f"recompile_limit ({self.limit}) reached; last: {last}")
        if self.fullgraph:
            raise FailOnRecompileLimitHit(message)
        log.warning(message)
        return self.function(*args, **kwargs)

    def why_missed(self, args, kwargs):
        """The first guard of the newest entry that does not hold."""
        leaves, spec = tree_flatten((args, kwargs))
        entry = self.entries[-1]
        if entry.spec != spec:
            return "the arguments have another structure"
        return entry.guards.first_that_fails(**_by_name(leaves)) or "?"

    # ------------------------------------------------------------------------------------------------ entries

    def entry(self, capture, leaves, spec, reads):
        if capture.state.has_constants() or asks_for_defaults(capture.graph):
            reads.guards.defaults()
        graph, run_graph = self.backend(capture.graph, [leaves[i] for i in capture.tensors])
        sizes_matter = capture.state.sizes_read or any(n.kind() not in ANY_SIZE for n in graph.all_nodes())
        is_static = self.dynamic is False or sizes_matter
        guards = Guards(reads.guards.names)
        for i, leaf in enumerate(leaves):
            guards.argument(f"x{i}", _shown(i, self.function), leaf, is_static)
        only_arguments = self.guard_identities(guards, capture, leaves, reads)
        guards.texts += reads.guards.texts
        guards.explain += reads.guards.explain
        for source, tensor in capture.state.lifted:
            guards.same_tensor(source, tensor)
            guards.tensor(guards.name(tensor, "P"), source.name, tensor, is_static)
        self.guard_facts(guards, capture, reads)
        entry = Entry(capture, guards, None, graph, is_static)
        entry.spec = spec
        entry.run = _entry_function(capture, guards, run_graph, len(leaves))
        if spec == tree_flatten((tuple(leaves), {}))[1]:
            entry.count = len(leaves)
        only_kernel = getattr(run_graph, "only_kernel", None)
        if (
            entry.count == len(capture.tensors)
            and only_kernel
            and only_arguments
            and not is_static
            and _is_plain(capture)
        ):
            entry.fast = reads.guards.function(), only_kernel.fast
        return entry

    def guard_facts(self, guards, capture, reads):
        """Tensors that are not inputs of the graph may have been asked for their shapes and the like."""
        inputs = {id(tensor) for _, tensor in capture.state.lifted}
        for source in reads.tensors.values():
            if id(tensor := source.value()) not in inputs:
                guards.same_tensor(source, tensor)
                guards.tensor(guards.read(source), source.name, tensor, True)

    def guard_identities(self, guards, capture, leaves, reads):
        """Which arguments are one tensor, and which is one that the function has from elsewhere, too. Returns whether none."""
        before = len(guards.texts)
        for i, first in capture.repeated:
            guards.add(f"x{i} is x{first}", f"arguments {first} and {i} are one tensor")
        for n, i in enumerate(capture.tensors):
            for known, source in reads.tensors.items():
                if known == id(leaves[i]):
                    guards.add(f"x{i} is {guards.read(source)}", f"argument {i} is {source.name}")
                elif reads.identity:
                    guards.add(f"x{i} is not {guards.read(source)}", f"argument {i} is not {source.name}")
            for k in capture.tensors[:n] if reads.identity else ():
                guards.add(f"x{i} is not x{k}", f"arguments {k} and {i} are two tensors")
        return len(guards.texts) == before and not capture.state.lifted

    def update_fronts(self):
        """Kernels whose own guards include an entry's guards on the arguments: only the entry's other guards are checked before them."""
        self.fast_entries = [entry.fast for entry in self.entries if entry.fast is not NOTHING]


def _is_plain(capture):
    """Whether the result is what a kernel returns: one tensor, or a tuple of several."""
    kind = tuple if len(capture.outputs) > 1 else None
    return capture.spec.type is kind and all(made == "tensor" for made, _ in capture.outputs)


def _without_graph(graph):
    """Why a graph cannot stand for other calls: it has an operator with arguments that only the eager one takes, such as
    x ** True, or one whose result is as long as numbers say."""
    for node in graph.all_nodes():
        if node.kind().startswith("aten::") and node.maybeSchema() is None:
            types = ", ".join(str(v.type()) for v in node.inputs())
            return f"graphs have no {node.kind()}({types})"
    dynamic = dynamic_shape(graph)
    return dynamic and f"the shape of {dynamic}'s result depends on numbers"


def _changed(reads, before, arguments, leaves, spec):
    """Why a graph would not do what the function did: it changed something that has a guard. before: guards on the leaves."""
    fails = reads.guards.first_that_fails() or before.first_that_fails(**_by_name(leaves))
    if fails:
        return f"it changes what it reads: before the call, {fails}"
    now, spec_now = tree_flatten(arguments)
    if spec_now != spec or any(a is not b for a, b in zip(now, leaves)):
        return "it changes a list or dictionary that it is given"
    return None


def _not_new(reads, arguments, result):
    """Why a graph would not return what the function did: a list or dictionary of it is one that others have, too."""
    made = [id(each) for each in _containers(result)]
    if len(set(made)) < len(made) or not reads.seen.keys().isdisjoint(made):
        return "it returns a list or dictionary that is not new"
    return (
        None if {id(each) for each in _containers(arguments)}.isdisjoint(made) else "it returns a list that it is given"
    )


def _containers(tree):
    """The lists, dictionaries and the like of a nest: whatever holds others and is no tuple."""
    if tree_is_leaf(tree):
        return [tree] if isinstance(tree, (list, dict)) else []
    own = [] if isinstance(tree, tuple) else [tree]
    parts = SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]
    return own + [each for part in parts for each in _containers(part)]


def _by_name(leaves):
    return {f"x{i}": leaf for i, leaf in enumerate(leaves)}


def _shown(i, function):
    try:
        return list(inspect.signature(function).parameters)[i]
    except (ValueError, TypeError, IndexError):
        return f"argument {i}"


def _name(function):
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    where = f" ({code.co_filename}:{code.co_firstlineno})" if code else ""
    return getattr(function, "__qualname__", type(function).__name__) + where


def _entry_function(capture, guards, run_graph, count):
    """The text of an entry: guards, the graph's run, the result put together."""
    tensors = [f"x{i}" for i in capture.tensors] + [guards.name(t, "P") for _, t in capture.state.lifted]
    names = guards.names | {"MISS": MISS, "run": run_graph, "rebuild": _rebuilder(capture)}
    unpack = "".join(f"x{i}, " for i in range(count))
    source = f"def entry(leaves):\n    {unpack}= leaves\n" if count else "def entry(leaves):\n"
    source += f"    try:\n        if not ({guards.expression()}): return MISS\n"
    source += "    except Exception:  # there is no longer what was read\n        return MISS\n"
    source += f"    return rebuild(run([{', '.join(tensors)}]))\n"
    function = compile_function("entry", source, names)
    function.source = source
    return function


def _rebuilder(capture):
    """A function from the graph's outputs to what the call returns."""
    made = capture.outputs
    if capture.spec.type is None:
        kind, value = made[0]
        return (lambda outputs: outputs[value]) if kind == "tensor" else lambda outputs: value
    return lambda outputs: tree_unflatten([outputs[v] if kind == "tensor" else v for kind, v in made], capture.spec)


# ------------------------------------------------------------------------------------------------ the wrapper


@contextlib.contextmanager
def compiling():
    """A call is being captured: `compiler.is_compiling()` says so."""
    state = readtorch.compiler._compiling
    before, state.flag = state.flag, True
    try:
        yield
    finally:
        state.flag = before


_all = []  # weak references would do, but `reset` wants to reach everything that was compiled


def optimize(function, backend="inductor", fullgraph=False, dynamic=None, recompile_limit=None):
    """The function that `readtorch.compile` returns for a Python function."""
    state = CompiledFunction(function, lookup_backend(backend), fullgraph, dynamic, recompile_limit)
    _all.append(state)
    miss = state.miss

    def compiled(*args, **kwargs):
        if not kwargs:
            for holds, fast in state.fast_entries:
                for function in fast if holds() else NOTHING:
                    try:
                        result = function(*args)
                    except TypeError:  # another number of arguments
                        break
                    if result is not MISS:
                        return result
        return miss(args, kwargs)

    try:
        functools.update_wrapper(compiled, function)
    except AttributeError:
        pass
    compiled._torchdynamo_orig_callable = function
    compiled._compiled_function = state
    return compiled


class OptimizedModule(readtorch.nn.Module):
    """A module whose calls are compiled; everything else is the wrapped module's (`_orig_mod`)."""

    def __init__(self, module, **options):
        object.__setattr__(self, "_orig_mod", module)
        super().__init__()
        self._orig_mod = module
        self._options = options
        self.training = module.training
        self.forward = self._compiled_call()

    def _compiled_call(self):
        return optimize(self._orig_mod.__call__, **self._options)

    def __getattr__(self, name):
        if name == "_orig_mod":
            return self._modules["_orig_mod"]
        return getattr(self._orig_mod, name)

    def train(self, mode=True):
        self._orig_mod.train(mode)
        return super().train(mode)

    def __len__(self):
        return len(self._orig_mod)

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("forward", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.forward = self._compiled_call()


def reset():
    """Forget all graphs."""
    for state in _all:
        state.reset()


class ExplainOutput:
    """What became of one call. In PyTorch: `torch/_dynamo/backends/debugging.py`."""

    def __init__(self, state):
        self.graphs = [entry.graph for entry in state.entries]
        self.graph_count = len(self.graphs)
        self.graph_break_count = len(state.reasons)
        self.break_reasons = list(state.reasons)
        self.ops_per_graph = [[n.kind() for n in g.all_nodes() if n.kind().startswith("aten::")] for g in self.graphs]
        self.op_count = sum(map(len, self.ops_per_graph))
        self.out_guards = [shown for entry in state.entries for shown in entry.guards.explain]

    def __str__(self):
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
            "Break Reasons:",
        ]
        lines += [f"  Break Reason {i + 1}:\n    Reason: {reason}" for i, reason in enumerate(self.break_reasons)]
        lines += ["Out Guards:"] + [f"  Guard {i + 1}: {shown}" for i, shown in enumerate(self.out_guards)]
        return "\n".join(lines) + "\n"

    __repr__ = __str__


def explain(function):
    """`explain(f)(*args)`: what `compile` would make of this call. The graphs are those before fusion."""

    def inner(*args, **kwargs):
        state = CompiledFunction(function, lookup_backend("eager"), False, None)
        state.miss(args, kwargs)
        return ExplainOutput(state)

    return inner


def report(compiled):
    """The same for a compiled function: its graphs as they run."""
    return ExplainOutput(compiled._compiled_function)
