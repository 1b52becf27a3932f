"""`compile` by bytecode: what a function keeps of its captures, and how a call finds the one that fits.

CPython can ask before it runs a frame whether other code should run in its place: PyTorch does it so
(`torch/csrc/dynamo/eval_frame.c`). Here no such hook is needed: `compile` holds the function, interprets what that calls, and
what the rest of a call does after a break is called by the generated code.

In PyTorch: `torch/_dynamo/eval_frame.py`, and for what belongs to a code object `torch/csrc/dynamo/extra_state.h`.
"""

import collections
import functools
import inspect
import logging
import sys
import types

import readtorch
from readtorch._dynamo import config, trace_rules
from readtorch._dynamo.backends.registry import lookup_backend
from readtorch._dynamo.bytecode_transformation import VERSIONS
from readtorch._dynamo.comprehension_graph_break import make_comprehension_code
from readtorch._dynamo.convert_frame import compile_frame
from readtorch._dynamo.exc import CannotGenerate, FailOnRecompileLimitHit, SkipFrame, Unsupported
from readtorch._dynamo.guards import MISS
from readtorch._dynamo.resume_execution import Tail, drive, make_resume_code
from readtorch._dynamo.utils import counters, log_artifact
from readtorch._dynamo.variables.nn_module import GLOBAL_HOOKS, OWN_HOOKS
from readtorch.aten.codegen import compile_function
from readtorch.c10.local_dispatch_key_set import tls, trace_under_way

log = logging.getLogger("readtorch._dynamo")
MISSING = object()
NOT_CALLED = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


class Settings:
    """What `compile` was called with. backend: (GraphModule, tensors) -> function of the graph's inputs, which returns a tuple.

    fake_mode: that of an export, in which sizes may be symbols; None for `compile`, where each capture has its own.
    states: (code, globals) -> ExtraState, for all that is compiled on behalf of one `compile`.
    """

    def __init__(self, backend, fullgraph=False, dynamic=None, recompile_limit=None, fake_mode=None):
        self.backend, self.fullgraph, self.dynamic = backend, fullgraph, dynamic
        self.fake_mode = fake_mode
        self.limit = recompile_limit
        self.states, self.codes = {}, []
        self.seen_at = collections.defaultdict(dict)  # (code, line) -> what its resume functions have seen

    def state_of(self, code, globals):
        key = code, id(globals)
        if key not in self.states:
            self.states[key] = ExtraState(self, code, globals)
        return self.states[key]

    def reset(self):
        self.codes.clear()
        for state in self.states.values():
            state.reset()


class ExtraState:
    """What belongs to one code object: its captures, and how it runs as written.

    origin, shift: for a resume function the code that it is made of, and by how many bytes that is shifted.
    is_comprehension: whether it is one that stood in another function. The arguments of these two are, for cell variables, the cells.
    frame_state: source -> the number that was there, or DYNAMIC.
    """

    def __init__(self, settings, code, globals, origin=None, shift=0, frame_state=None, is_comprehension=False):
        self.frame_state = {} if frame_state is None else frame_state
        self.settings, self.code, self.globals = settings, code, globals
        self.origin, self.shift, self.is_comprehension = origin or code, shift, is_comprehension
        extra = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
        self.names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + extra]
        self.parameters = [f"L_{name.replace('.', '_')}" for name in self.names]
        self.entries, self.number = [], len(settings.states)
        self.reset()

    def reset(self):
        self.entries.clear()
        self.codes, self.given_up = [], None
        self.recent = []  # the captures, the one that was used last in front; `entries` are their functions
        self.sizes_are_known = False  # whether no size may be left open in this frame
        self.frame_state.clear()

    # ----------------------------------------------------------------------------------------------------- running

    def run_native(self, closure, args):
        """As it is written."""
        code = self.code
        function = types.FunctionType(code, self.globals, code.co_name, None, closure)
        count, by_name = code.co_argcount, code.co_kwonlyargcount
        positional, kwargs, at = (
            list(args[:count]),
            dict(zip(self.names[count:], args[count : count + by_name])),
            count + by_name,
        )
        if code.co_flags & inspect.CO_VARARGS:
            positional += args[at]
            at += 1
        if code.co_flags & inspect.CO_VARKEYWORDS:
            kwargs |= args[at]
        return function(*positional, **kwargs)

    def run(self, closure, *args):
        for entry in self.entries:
            result = entry(closure, *args)
            if result is not MISS:
                if entry is not self.entries[0]:
                    self.use(entry)
                return result
        return self.miss(closure, args)

    def use(self, entry):
        """The next call is likely to be of the same kind."""
        at = next((i for i, made in enumerate(self.recent) if made.run is entry), 0)
        self.recent.insert(0, self.recent.pop(at))
        self.entries[:] = [made.run for made in self.recent]

    def miss(self, closure, args):
        """A call that no entry accepts: it is captured."""
        if self.given_up is not None or is_watched():
            return self.run_native(closure, args)
        limit = config.recompile_limit if self.settings.limit is None else self.settings.limit
        if len(self.codes) >= limit:
            return self.over_limit(closure, args, limit)
        if self.codes:
            counters["recompiles"][self.code.co_name] += 1
            log_artifact("recompiles", self.recompile_message(closure, args))
        made = self.capture(closure, args)
        if made is None:
            return self.run_native(closure, args)
        self.keep(made)  # before it runs: it may raise
        result = made.run(closure, *args)
        if result is MISS:
            self.give_up(f"the guards failed at once: {made.first_failing_guard(closure, args)}")
            return self.run_native(closure, args)
        return result

    def keep(self, made):
        self.recent.insert(0, made)
        self.use(made.run)
        self.codes.append(made)
        self.settings.codes.append(made)

    def capture(self, closure, args):
        try:
            with _compiling():
                return compile_frame(self, closure, args)
        except CannotGenerate as error:
            self.give_up(str(error))
        except SkipFrame as error:
            self.given_up = str(error)
            self.entries.clear()  # PyTorch marks the code object: its entries are not looked through again
        return None

    def give_up(self, reason):
        self.given_up = reason
        counters["skipped"][reason] += 1
        log_artifact("graph_breaks", f"{self.code.co_name} runs as it is written: {reason}")
        if self.settings.fullgraph:
            raise Unsupported(reason)

    def recompile_message(self, closure, args):
        lines = [f"Recompiling function {self.code.co_name} in {self.code.co_filename}:{self.code.co_firstlineno}"]
        lines.append("    triggered by the following guard failure(s):")
        for made in self.recent:
            lines.append(f"    - {self.number}/{self.codes.index(made)}: {made.first_failing_guard(closure, args)}")
        return "\n".join(lines)

    def over_limit(self, closure, args, limit):
        self.given_up = "recompile_limit"
        last = self.recent[0].first_failing_guard(closure, args)
        where = f"{self.code.co_name} ({self.code.co_filename}:{self.code.co_firstlineno})"
        message = f"torch._dynamo hit config.recompile_limit ({limit})\n   function: '{where}'\n   last reason: {last}"
        if self.settings.fullgraph:
            raise FailOnRecompileLimitHit(message)
        log.warning(message)
        return self.run_native(closure, args)

    # ------------------------------------------------------------------------------------------------ after a break

    def resume_state(self, offset, nulls, unbound, line=None):
        """The state of the function that goes on at `offset` of the original code, behind a break in this line."""
        key = self.origin, id(self.globals), offset, nulls, unbound
        states = self.settings.states
        if key not in states:
            code, shift = make_resume_code(self.origin, offset, nulls, unbound)
            seen = self.settings.seen_at[self.origin, line]
            states[key] = ExtraState(self.settings, code, self.globals, self.origin, shift, seen)
        return states[key]

    def comprehension_state(self, comprehension, unbound):
        """The state of the function that a comprehension of the original code is made."""
        key = self.origin, id(self.globals), "comprehension", comprehension.first.offset - self.shift, unbound
        states = self.settings.states
        if key not in states:
            code = make_comprehension_code(self.origin, comprehension, self.shift, unbound)
            states[key] = ExtraState(self.settings, code, self.globals, is_comprehension=True)
        return states[key]

    def compile_callee(self, function):
        """What the program calls where the graph breaks, compiled by itself. A module without hooks: its `forward`."""
        if isinstance(function, readtorch.nn.Module):
            kind = type(function)
            is_plain = kind.__call__ is readtorch.nn.Module.__call__ and "forward" not in function.__dict__
            has_hooks = any(getattr(function, name) for name in (*OWN_HOOKS, "_compiled_call_impl")) or any(
                GLOBAL_HOOKS
            )
            if not is_plain or has_hooks or not isinstance(kind.forward, types.FunctionType):
                return function
            return types.MethodType(_wrapped(kind.forward, self.settings), function)
        return _wrapped(function, self.settings)


def is_watched():
    """Whether this thread is in a state that fake tensors do not know: a mode of functions, a transform, a trace."""
    return bool(tls.function_modes or tls.functorch) or trace_under_way() is not None


class _compiling:
    """`with _compiling():` `compiler.is_compiling()` says so."""

    def __enter__(self):
        state = readtorch.compiler._compiling
        self.before, state.flag = state.flag, True

    def __exit__(self, *exception):
        readtorch.compiler._compiling.flag = self.before


# -------------------------------------------------------------------------------------------------- what is called


def _wrapped(function, settings):
    """`function` compiled with these settings; what is no plain function of Python is returned as it is."""
    if isinstance(function, types.MethodType):
        return types.MethodType(_wrapped(function.__func__, settings), function.__self__)
    if not isinstance(function, types.FunctionType) or function.__code__.co_flags & NOT_CALLED:
        return function
    if getattr(function, "_torchdynamo_orig_callable", None) or not trace_rules.inlines(function):
        return function
    return _dispatcher(function, settings.state_of(function.__code__, function.__globals__))


@functools.cache
def _dispatcher_code(code, defaults, names_with_defaults):
    """The text of a function with the parameters of `code` that looks for an entry. Defaults are read at each call:

    def f(x, k=MISSING):
        if k is MISSING: k = __function.__defaults__[0]
        for entry in __entries:
            result = entry(__closure, x, k)
            if result is not MISS:
                if entry is not __entries[0]: __use(entry)
                return …
    """
    count, by_name = code.co_argcount, code.co_kwonlyargcount
    names = [name.replace(".", "_") for name in code.co_varnames]  # the argument of a comprehension is called .0
    parameters, lines = [], []

    def add(name, default):
        parameters.append(name if default is None else f"{name}=__MISSING")
        if default is not None:
            lines.append(f"    if {name} is __MISSING: {name} = __function.{default}")

    for i, name in enumerate(names[:count]):
        add(name, None if i < count - defaults else f"__defaults__[{i - count + defaults}]")
        parameters += ["/"] if i + 1 == code.co_posonlyargcount else []
    at = count + by_name
    if code.co_flags & inspect.CO_VARARGS:
        parameters.append("*" + names[at])
        at += 1
    elif by_name:
        parameters.append("*")
    for name in names[count : count + by_name]:
        add(name, f"__kwdefaults__[{name!r}]" if name in names_with_defaults else None)
    if code.co_flags & inspect.CO_VARKEYWORDS:
        parameters.append("**" + names[at])
        at += 1
    args = ", ".join(names[:at])
    lines += [
        "    for __entry in __entries:",
        f"        __result = __entry(__closure, {args})",
        "        if __result is not __MISS:",
        "            if __entry is not __entries[0]: __use(__entry)",
        "            return __drive(__result) if type(__result) is __Tail else __result",
        f"    return __drive(__miss(__closure, ({args}{',' if args else ''})))",
    ]
    return "\n".join([f"def compiled({', '.join(parameters)}):", *lines, ""])


def _dispatcher(function, state):
    text = _dispatcher_code(function.__code__, len(function.__defaults__ or ()), tuple(function.__kwdefaults__ or ()))
    names = {
        "__function": function,
        "__closure": function.__closure__,
        "__entries": state.entries,
        "__use": state.use,
        "__miss": state.miss,
    }
    names |= {"__MISS": MISS, "__MISSING": MISSING, "__drive": drive, "__Tail": Tail}
    return compile_function("compiled", text, names)


_all = []  # the settings of every `compile`


def _call_of(module):
    """A function that calls a module: what is compiled for one."""

    def call(*args, **kwargs):
        return module(*args, **kwargs)

    return call


def _uncompiled_call_of(module):
    """The same for a module that keeps the compiled function as its `_compiled_call_impl`."""

    def call(*args, **kwargs):
        return module._call_uncompiled(*args, **kwargs)

    return call


def optimize(model, **options):
    """What `readtorch.compile` returns for a function, a method or a module. options: see `optimize_call`."""
    return (OptimizedModule if isinstance(model, readtorch.nn.Module) else optimize_call)(model, **options)


def optimize_call(function, backend="inductor", fullgraph=False, dynamic=None, recompile_limit=None):
    """The compiled function for a Python function, method or module. backend: see `lookup_backend`."""
    settings = Settings(lookup_backend(backend), fullgraph, dynamic, recompile_limit)
    _all.append(settings)
    owner = None
    if isinstance(function, readtorch.nn.Module):
        function = _call_of(function)
    elif getattr(function, "__func__", None) is readtorch.nn.Module._call_uncompiled:
        function = _uncompiled_call_of(function.__self__)
    elif isinstance(function, types.MethodType):
        owner, function = function.__self__, function.__func__
    elif isinstance(getattr(type(function), "__call__", None), types.FunctionType):
        owner, function = function, type(function).__call__
    is_code = isinstance(function, types.FunctionType) and not function.__code__.co_flags & NOT_CALLED
    if is_code and trace_rules.frame_can_be_captured():
        compiled = _dispatcher(function, settings.state_of(function.__code__, function.__globals__))
        functools.update_wrapper(compiled, function)
    else:
        if is_code:
            warn_of_python()
        compiled = _as_written(function)
    compiled._torchdynamo_orig_callable = function
    compiled._settings = settings
    return compiled if owner is None else types.MethodType(compiled, owner)


@functools.cache
def warn_of_python():
    """Once. In PyTorch: an error, for a Python that it has not seen yet."""
    first, *_, last, found = (".".join(map(str, version)) for version in (*sorted(VERSIONS), sys.version_info[:2]))
    known = f"Python {first} to {last}"
    log.warning(f"compile knows the bytecode of {known}, and this is {found}: functions run as they are written.")


def _as_written(function):
    """A wrapper of what is not compiled: a generator function, an object, a function where Python's version is not known."""

    @functools.wraps(function, updated=())
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


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
        return optimize_call(self._orig_mod, **self._options)

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


class GraphCompileReason:
    """Why a graph ended where it did. In PyTorch: `torch/_dynamo/output_graph.py`."""

    def __init__(self, reason, graph_break):
        self.reason, self.graph_break = reason, graph_break


class ExplainOutput:
    """What became of one call. In PyTorch: `torch/_dynamo/backends/debugging.py`."""

    def __init__(self, codes):
        self.graphs = [code.graph_module for code in codes if code.graph_module is not None]
        self.graph_count = len(self.graphs)
        self.graph_break_count = max(self.graph_count - 1, 0)
        self.break_reasons = [GraphCompileReason(code.reason, True) for code in codes if code.reason]
        self.ops_per_graph = [[n.target for n in g.graph.nodes if n.op.startswith("call_")] for g in self.graphs]
        self.op_count = sum(map(len, self.ops_per_graph))
        self.out_guards = [guard.describe() for code in codes for guard in code.guards]

    def __str__(self):
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", "Break Reasons:"]
        lines += [f"  Break Reason {i}:\n    Reason: {each.reason}" for i, each in enumerate(self.break_reasons, 1)]
        lines += ["Ops per Graph:"]
        for i, operators in enumerate(self.ops_per_graph, 1):
            lines += [f"  Ops {i}:", *(f"    {operator}" for operator in operators)]
        lines += ["Out Guards:"] + [f"  Guard {i}:\n    {text}" for i, text in enumerate(self.out_guards, 1)]
        return "\n".join(lines) + "\n"

    __repr__ = __str__


def codes_of(compiled):
    """All that was captured on behalf of a compiled function, in that order."""
    settings = getattr(compiled, "__func__", compiled)._settings
    return settings.codes


def explain(function):
    """`explain(f)(*args)`: what `compile` makes of this call."""

    def inner(*args, **kwargs):
        compiled = optimize_call(function, backend="eager")
        compiled(*args, **kwargs)
        return ExplainOutput(codes_of(compiled))

    return inner


def report(compiled):
    """The same for a compiled function: all that it has made so far."""
    return ExplainOutput(codes_of(getattr(compiled, "forward", compiled)))


def reset():
    """Forget all captures."""
    for settings in _all:
        settings.reset()
