"""`make_fx`: runs a function with tensors and records the operators that it calls. In PyTorch: `torch/fx/experimental/proxy_tensor.py`.

Where `symbolic_trace` sees what Python does with a Proxy, this sees what reaches the dispatcher, by a TorchDispatchMode: below autograd
and below compositions. The function runs on real tensors, or on fake ones; the graph holds operators such as `aten.addmm.default`, those
of a backward pass too, and no Python.

    tensor      the function computes with it
    Proxy       stands for it in the graph, and is found by the tensor: `tensor_tracker`
    constant    its elements, if the trace knows them: those of `torch.tensor(2.0)`. It may be asked for its value

`cond` and `while_loop` become nodes with graphs of their own.

With `pre_dispatch=True` it stands above all keys of the dispatcher, and compositions are recorded whole: `aten.linear.default`.

With `tracing_mode="symbolic"` sizes are left open: they are SymInts, arithmetic with them is recorded too, and what the program decides by
them is noted in the graph module's `shape_env`.

Left out: gradients of `cond` and `while_loop`, and loops that carry an int; above autograd, what a program does to the grad mode and to autocast: what is
computed is recorded, and that no history is kept there is not.
"""

import contextlib
import functools
import inspect
import itertools
import operator
import traceback
import weakref
from typing import NamedTuple

import readtorch
from readtorch._C import _TorchDispatchModeKey
from readtorch._ops import ops
from readtorch._subclasses import FakeTensor, FakeTensorMode
from readtorch._subclasses.fake_tensor import is_fake, maybe_get_fake_mode, unset_fake_temporarily
from readtorch._tensor import Tensor
from readtorch.aten.tags import Tag
from readtorch.c10.sym_int import SYM_TYPES, SymInt
from readtorch.c10.symbolic_shape_meta import SymbolicArray
from readtorch.c10.torch_dispatch_mode_tls import get_mode, mode_tls, set_mode_pre_dispatch
from readtorch.fx import traceback as fx_traceback
from readtorch.fx._symbolic_trace import PH, Tracer
from readtorch.fx.experimental.symbolic_shapes import ShapeEnv, is_accessor_node
from readtorch.fx.graph_module import GraphModule
from readtorch.fx.interpreter import Interpreter
from readtorch.fx.passes.shape_prop import _extract_tensor_metadata
from readtorch.fx.proxy import GraphAppendingTracer, Proxy
from readtorch.nn import Module, Parameter
from readtorch.utils._python_dispatch import (
    TorchDispatchMode,
    _disable_infra_mode,
    _push_mode,
    _unset_infra_mode,
    autograd_would_have_decomposed,
)
from readtorch.utils._pytree import tree_all_only, tree_flatten, tree_leaves, tree_map, tree_map_only, tree_unflatten
from readtorch.utils._sympy.interp import interpreted
from readtorch.utils._thunk import Thunk

__all__ = [
    "PythonKeyTracer",
    "dispatch_trace",
    "make_fx",
    "DecompositionInterpreter",
    "selective_decompose",
    "get_proxy_mode",
    "get_innermost_proxy_mode",
    "get_isolated_graphmodule",
    "disable_proxy_modes_tracing",
    "decompose",
    "maybe_handle_decomp",
    "track_tensor_tree",
    "get_proxy_slot",
    "has_proxy_slot",
    "set_proxy_slot",
]

aten = ops.aten
HANDLED_TYPES = (Tensor, Parameter, FakeTensor)
CONSTANT_NUMEL_LIMIT = 1
PROXY = _TorchDispatchModeKey.PROXY


# ---------------------------------------------------------------------------------------- which Proxy a tensor has


class _ProxyTensor(NamedTuple):
    """What is known of a tensor: its Proxy, and a tensor with its elements, or None."""

    proxy: Proxy
    constant: Tensor | None


class _TensorTracker:
    """Tensor -> _ProxyTensor, by identity: tensors that are equal are two. It does not keep them alive, for autograd takes over a
    gradient that nobody else has, and copies one that somebody holds.
    """

    def __init__(self):
        self._entries = {}  # id of a tensor -> (weak reference to it, its _ProxyTensor)

    def __contains__(self, tensor):
        return self.get(tensor) is not None

    def __setitem__(self, tensor, proxy):
        key = id(tensor)
        self._entries[key] = weakref.ref(tensor, lambda _: self._entries.pop(key, None)), proxy

    def get(self, tensor, default=None):
        reference, proxy = self._entries.get(id(tensor), (None, None))
        return proxy if reference is not None and reference() is tensor else default


_REQUIRED = object()


class _SymTracker:
    """SymInt -> the Thunk of its Proxy: by its node, or as the same symbol."""

    def __init__(self):
        self.by_node, self.by_symbol = {}, {}

    def __contains__(self, number):
        return number.node in self.by_node

    def __setitem__(self, number, thunk):
        self.by_node[number.node] = thunk
        symbol = number.node.pytype is not bool and number.node.expr.symbol
        if symbol:
            self.by_symbol.setdefault(symbol, thunk)

    def get(self, number, default=None):
        found = self.by_node.get(number.node)
        if found is None and number.node.pytype is int:
            found = self.by_symbol.get(number.node.expr.symbol)
        return default if found is None else found


def set_proxy_slot(obj, tracer, proxy):
    """From here on the tensor `obj` is `proxy` in the graph of `tracer`. Of a size it is the first that counts."""
    if isinstance(obj, Tensor):
        tracer.tensor_tracker[obj] = proxy
    elif obj not in tracer.symnode_tracker:
        tracer.symnode_tracker[obj] = proxy


def has_proxy_slot(obj, tracer):
    return obj in tracer.tensor_tracker


def get_proxy_slot(obj, tracer, default=_REQUIRED, transform=lambda x: x):
    """transform(the _ProxyTensor of a tensor, or the Thunk of a size), or `default`. Raises RuntimeError without one."""
    found = (tracer.tensor_tracker if isinstance(obj, Tensor) else tracer.symnode_tracker).get(obj)
    if found is not None:
        return transform(found)
    if default is _REQUIRED:
        raise RuntimeError(f"{obj} ({type(obj)}, {id(obj)})is not tracked with proxy for {tracer}")
    return default


def track_tensor_tree(inner_res, proxy_res, *, constant, tracer):
    """Let each tensor of a result be found by its Proxy: an element of a list is the Proxy's element. Returns `inner_res`."""
    if isinstance(inner_res, Tensor):
        track_sizes(inner_res, proxy_res, tracer)
        set_proxy_slot(inner_res, tracer, _ProxyTensor(proxy_res, constant))
        set_meta(proxy_res, inner_res)
    elif isinstance(inner_res, SYM_TYPES):
        set_meta(proxy_res, inner_res)
        set_proxy_slot(inner_res, tracer, Thunk(lambda: proxy_res))
    elif isinstance(inner_res, (tuple, list, dict)):
        if isinstance(proxy_res, Proxy):
            set_meta(proxy_res, inner_res)
        keys = inner_res if isinstance(inner_res, dict) else range(len(inner_res))
        for key in keys:
            inner_constant = None if constant is None else constant[key]
            track_tensor_tree(inner_res[key], proxy_res[key], constant=inner_constant, tracer=tracer)
    return inner_res


def track_sizes(tensor, proxy, tracer):
    """Let each size of a tensor that is left open be found: it becomes a node when somebody uses it."""
    array = tensor._array
    if type(array) is not SymbolicArray:
        return
    numbers = [(n, aten.sym_size.int, (i,)) for i, n in enumerate(array.shape)]
    numbers += [(n, aten.sym_stride.int, (i,)) for i, n in enumerate(array.steps)]
    numbers += [(array.size, aten.sym_numel.default, ()), (array.start, aten.sym_storage_offset.default, ())]
    for number, accessor, place in numbers:
        if isinstance(number, SymInt):
            node = functools.partial(tracer.create_proxy, "call_function", accessor, (proxy, *place), {})
            set_proxy_slot(number, tracer, Thunk(lambda node=node, number=number: set_meta(node(), number)))


def proxy_of_size(number, tracer):
    """The Proxy of a SymInt: its own, or that of an expression of others, which is built."""
    found = tracer.symnode_tracker.get(number)
    return found.force() if found is not None else _build_proxy_for_sym_expr(tracer, number)


def _build_proxy_for_sym_expr(tracer, number):
    """The Proxy of an expression that arose while nobody recorded, from its symbols' proxies."""
    symbols = {s: tracer.symnode_tracker.by_symbol.get(s) for s in number.node.expr.symbols()}
    if not symbols or None in symbols.values():
        raise RuntimeError(f"{number} ({type(number)}, {id(number)})is not tracked with proxy for {tracer}")
    proxies = {s: thunk.force() for s, thunk in symbols.items()}
    return set_meta(interpreted(number.node.expr, proxies), number)


def extract_val(val):
    """A value as notes keep it: fake tensors in place of tensors."""
    if isinstance(val, (list, tuple)):
        return val.__class__([extract_val(x) for x in val])
    if isinstance(val, dict):
        return {k: extract_val(v) for k, v in val.items()}
    if is_fake(val):
        return val.detach()
    if isinstance(val, Tensor):
        if val.is_sparse:
            return None
        with unset_fake_temporarily(), FakeTensorMode(allow_fallback_kernels=True):
            return readtorch.empty_strided(val.shape, val.stride(), device=val.device, dtype=val.dtype)
    return val


def set_meta(proxy, val):
    """Note what the value of a node is like: `meta["val"]`, and of a tensor `meta["tensor_meta"]`."""
    proxy.node.meta["val"] = extract_val(val)
    if isinstance(val, Tensor) and not val.is_sparse:
        proxy.node.meta["tensor_meta"] = _extract_tensor_metadata(val)
    return proxy


def note_free(tracer, tensors):
    """Of these tensors, remember those that are none of the graph's own, if somebody wants to know."""
    free = getattr(tracer, "free", None)
    if free is not None:
        free |= {id(t): t for t in tensors if isinstance(t, Tensor) and t not in tracer.tensor_tracker}


# ------------------------------------------------------------------------------------------------------- the tracer


class PythonKeyTracer(Tracer):
    """Keeps the graph and the proxies of tensors. Modules are run, and a Parameter is a tensor like any other."""

    def __init__(self):
        super().__init__(autowrap_modules=())
        self.tensor_tracker, self.symnode_tracker = _TensorTracker(), _SymTracker()
        self.free = None  # of a graph within a graph: the tensors that come from outside, by their ids

    def call_module(self, m, forward, args, kwargs):
        return forward(*args, **kwargs)

    def getattr(self, attr, attr_val, parameter_proxy_cache):
        return attr_val

    def create_arg(self, a):
        """A Parameter that the function has used without being given it is an attribute `_param_constant0`."""
        if not isinstance(a, Parameter):
            return super().create_arg(a)
        name = next((name for name, p in self.root.named_parameters() if a is p), None)
        if name is None:
            name = self.get_fresh_qualname("_param_constant")
            setattr(self.root, name, a)
        return self.create_node("get_attr", name, (), {})

    def unwrap_proxy(self, e):
        if isinstance(e, SYM_TYPES):
            return proxy_of_size(e, self)
        return get_proxy_slot(e, self, e, lambda found: found.proxy) if isinstance(e, Tensor) else e

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if kind in ("placeholder", "output"):
            node.meta.pop("stack_trace", None)
        if kind == "get_attr":
            attribute = getattr(self.root, target)
            if isinstance(attribute, Tensor):
                with disable_proxy_modes_tracing():
                    node.meta["val"] = extract_val(attribute)
        return node


class _ModuleStackTracer(PythonKeyTracer):
    """Notes also in which modules' `forward` a node was recorded: {name in the code: (path, name of the class)}, outermost first.

    Behind the name stands which call of the module it was, from the second on: "L__self__block@1".
    """

    def __init__(self, scope_root):
        super().__init__()
        self.scope_root = scope_root
        self.paths = {id(m): name for name, m in reversed(list(scope_root.named_modules(remove_duplicate=False)))}

    def _filter_traceback_frames(self, user_stack_summary):
        """Those of functions `forward` alone."""
        frames = super()._filter_traceback_frames(user_stack_summary)
        shown = [frame for frame in frames if frame.name == "forward"]
        return traceback.StackSummary.from_list(shown)

    def call_module(self, m, forward, args, kwargs):
        """A module that is not below the root adds nothing."""
        path = self.paths.get(id(m))
        if path is None:
            return forward(*args, **kwargs)
        outer, self.module_stack = self.module_stack, self.module_stack.copy()
        number = self.num_calls[path] = self.num_calls.get(path, -1) + 1
        self.module_stack[f"L__self__{path}@{number}" if number else f"L__self__{path}"] = path, typename_of(m)
        try:
            return forward(*args, **kwargs)
        finally:
            self.module_stack = outer


def typename_of(module):
    return f"{type(module).__module__}.{type(module).__qualname__}"


class _GraphAppendingTracerEx(GraphAppendingTracer):
    """The same for a graph that is there."""

    def __init__(self, graph):
        super().__init__(graph)
        self.tensor_tracker, self.symnode_tracker = _TensorTracker(), _SymTracker()


# --------------------------------------------------------------------------------------------------------- the mode


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Records each operator call that reaches it in the graph of `tracer`, and makes it.

    decomposition_table: operator -> a function that is traced in its place.
    """

    def __init__(
        self, tracer, tracing_mode, pre_dispatch=False, _error_on_data_dependent_ops=True, decomposition_table=None
    ):
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.pre_dispatch = pre_dispatch
        self._error_on_data_dependent_ops = _error_on_data_dependent_ops
        self._mode_key = PROXY
        self.enter_stack = []
        self.decomposition_table = decomposition_table or {}

    @property
    def enable_tracing(self):
        return True

    @classmethod
    def is_infra_mode(cls):
        return True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with set_original_aten_op(func):
            return proxy_call(self, func, self.pre_dispatch, args, kwargs or {})

    def __sym_dispatch__(self, func, types, args, kwargs):
        """Arithmetic with sizes: a node, unless the result is a plain number."""
        if func is operator.mul and 1 in [a for a in args if type(a) is int]:
            return args[0] if type(args[1]) is int else args[1]
        with disable_proxy_modes_tracing():
            out = func(*args, **kwargs)
            if isinstance(out, SYM_TYPES):
                proxies = [proxy_of_size(a, self.tracer) if isinstance(a, SYM_TYPES) else a for a in args]
                proxy = set_meta(self.tracer.create_proxy("call_function", func, tuple(proxies), {}), out)
                set_proxy_slot(out, self.tracer, Thunk(lambda: proxy))
        return out

    def __enter__(self):
        """Inside, this is the one mode of its kind."""
        if self.pre_dispatch:
            self.enter_stack.append(set_mode_pre_dispatch(self))
            return self
        self.enter_stack.append(_unset_infra_mode(PROXY))
        return super().__enter__()

    def __exit__(self, exc_type, exc_value, traceback):
        if self.pre_dispatch:
            set_mode_pre_dispatch(self.enter_stack.pop())
            return
        super().__exit__(exc_type, exc_value, traceback)
        previous = self.enter_stack.pop()
        if previous is not None:
            _push_mode(previous)

    # Note [ Functions that an operator takes, under make_fx ]
    #
    # Each is traced into a graph of its own. What it reads besides its operands, by its closure, would be a constant there; it
    # is passed to it instead, behind the operands, and so are the tensors that another of the functions reads. They are known
    # when the functions have been traced once, so a second trace makes the graphs. In PyTorch Dynamo has found them before.

    def trace_functions(self, functions, operands):
        """(their graphs, the tensors that the graphs take behind the operands). See Note [ Functions that an operator takes, under make_fx ]"""
        traced = [self.trace_function(function, operands, ()) for function in functions]
        free = {id(t): t for _, tensors in traced for t in tensors}
        if free:
            traced = [self.trace_function(function, operands, tuple(free.values())) for function in functions]
        return [graph for graph, _ in traced], tuple(free.values())

    def trace_function(self, function, operands, lifted):
        tracer, count = PythonKeyTracer(), len(operands)
        tracer.free, tracer.record_stack_traces = {}, self.tracer.record_stack_traces
        mode = ProxyTorchDispatchMode(
            tracer,
            self.tracing_mode,
            self.pre_dispatch,
            _error_on_data_dependent_ops=self._error_on_data_dependent_ops,
            decomposition_table=self.decomposition_table,
        )

        def flat(*args):
            return function(*args[:count])

        return _trace(flat, (*operands, *lifted), tracer, mode, None), list(tracer.free.values())

    def operator_of_functions(
        self, operator, names, functions, operands, before=(), packed=lambda operands: (operands,)
    ):
        """Its call becomes a node with graphs. Its arguments: `before`, the graphs, and what `packed` makes of the operands."""
        with disable_proxy_modes_tracing():
            graphs, lifted = self.trace_functions(functions, operands)
            operands, tracer = (*operands, *lifted), self.tracer
            note_free(tracer, (*before, *operands))
            nodes = [self.attribute(name, graph) for name, graph in zip(names, graphs)]
            proxies = tree_map(tracer.unwrap_proxy, (before, packed(operands)))
            proxy = tracer.create_proxy("call_function", operator, (*proxies[0], *nodes, *proxies[1]), {})
            out = operator(*before, *graphs, *packed(operands))
            return track_tensor_tree(out, proxy, constant=None, tracer=tracer)

    def attribute(self, prefix, graph):
        """The Proxy of a graph, which becomes an attribute."""
        name = self.tracer.get_fresh_qualname(f"{prefix}_")
        setattr(self.tracer.root, name, graph)
        return self.tracer.create_proxy("get_attr", name, (), {})

    @contextlib.contextmanager
    def enable_decompositions(self, decomposition_table):
        """Inside, another table of decompositions counts."""
        before, self.decomposition_table = self.decomposition_table, decomposition_table or {}
        try:
            yield self.decomposition_table
        finally:
            self.decomposition_table = before


_original_aten_is_set = False


@contextlib.contextmanager
def set_original_aten_op(func):
    """Inside, the current notes say which operator the program called that is being taken apart."""
    global _original_aten_is_set
    if _original_aten_is_set or not fx_traceback.has_preserved_node_meta():
        yield
        return
    _original_aten_is_set = True
    fx_traceback.current_meta["original_aten"] = func
    try:
        yield
    finally:
        _original_aten_is_set = False
        fx_traceback.current_meta["original_aten"] = None


_DATA_DEPENDENT = (
    "It appears that you're trying to get value out of a tracing tensor with {} - erroring out! It's likely that this is caused by "
    "data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
    "tracing_mode='symbolic' in your make_fx call."
)


def proxy_call(proxy_mode, func, pre_dispatch, args, kwargs):
    """One operator call under the mode: its parts, if it has any; else a node, and the result."""
    flat, spec = tree_flatten((args, kwargs))
    if not all(_can_handle(t, proxy_mode) for t in flat if isinstance(t, Tensor)):
        return NotImplemented
    result = maybe_handle_decomp(proxy_mode, func, args, kwargs)
    if result is NotImplemented and not pre_dispatch and autograd_would_have_decomposed(func, flat):
        with proxy_mode:
            result = func.decompose(*args, **kwargs)
    if result is not NotImplemented:
        return result
    tracer = proxy_mode.tracer
    tracked = [get_proxy_slot(x, tracer, x) if isinstance(x, Tensor) else x for x in flat]
    known = _known_arguments(tracked, spec)
    if Tag.data_dependent_output in func.tags:
        if known is not None:
            with unset_fake_temporarily():
                return func(*known[0], **known[1])
        if proxy_mode._error_on_data_dependent_ops and tree_all_only(Tensor, lambda t: not is_fake(t), (args, kwargs)):
            raise RuntimeError(_DATA_DEPENDENT.format(func))
    if func is aten.lift_fresh.default:
        func = aten.lift_fresh_copy.default  # the graph may run twice: the constant must not be written to
    if func is not aten.lift_fresh_copy.default:
        note_free(tracer, flat)
    proxies = tree_unflatten([_proxy_of(x, tracer) for x in tracked], spec)
    name = tracer.graph._target_to_str(func.overloadpacket.__name__)
    proxy_out = tracer.create_proxy("call_function", func, *proxies, name=name)
    out = func(*args, **kwargs)
    constant = _constant_of(func, args, out, tracked, known)
    return track_tensor_tree(out, proxy_out, constant=constant, tracer=tracer)


def _proxy_of(x, tracer):
    if isinstance(x, SYM_TYPES):
        return proxy_of_size(x, tracer)
    return x.proxy if isinstance(x, _ProxyTensor) else x


def _can_handle(t, proxy_mode):
    return type(t) in HANDLED_TYPES or has_proxy_slot(t, proxy_mode.tracer)


def _known_arguments(tracked, spec):
    """(args, kwargs) in constants; None if a traced tensor's elements are not known."""
    if any(isinstance(x, _ProxyTensor) and x.constant is None for x in tracked):
        return None
    return tree_unflatten([x.constant if isinstance(x, _ProxyTensor) else x for x in tracked], spec)


def _constant_of(func, args, out, tracked, known):
    """The result in constants, if the elements of all arguments are known and it is small; else None."""
    with unset_fake_temporarily():
        if func is aten.lift_fresh_copy.default and out.numel() <= CONSTANT_NUMEL_LIMIT:
            return args[0].clone()
        is_small = tree_all_only(Tensor, lambda t: t.numel() <= CONSTANT_NUMEL_LIMIT, out)
        any_constant = any(isinstance(x, _ProxyTensor) for x in tracked)
        if Tag.nondeterministic_seeded in func.tags or known is None or not any_constant or not is_small:
            return None
        return func(*known[0], **known[1])


def maybe_handle_decomp(proxy_mode, op, args, kwargs):
    """What the mode's table has for an operator, traced; NotImplemented if it has nothing."""
    if op not in proxy_mode.decomposition_table:
        return NotImplemented
    with proxy_mode:
        return proxy_mode.decomposition_table[op](*args, **kwargs)


def get_proxy_mode():
    """The ProxyTorchDispatchMode that is active, or None. One above all keys comes first."""
    return mode_tls.pre_dispatch or get_mode(PROXY)


def get_innermost_proxy_mode():
    return get_proxy_mode()


@contextlib.contextmanager
def disable_proxy_modes_tracing():
    """`with disable_proxy_modes_tracing() as mode:` nothing is recorded. mode: the one that was active, or None."""
    above = set_mode_pre_dispatch(None)
    try:
        with contextlib.contextmanager(_disable_infra_mode)(PROXY) as below:
            yield above or below
    finally:
        set_mode_pre_dispatch(above)


@contextlib.contextmanager
def decompose(decomposition_table):
    """Inside, the active mode takes operators apart by this table."""
    mode = get_proxy_mode()
    if mode is None:
        raise AssertionError("Expected proxy mode to be set")
    with mode.enable_decompositions(decomposition_table) as table:
        yield table


# --------------------------------------------------------------------------------------------------------- make_fx


def fake_signature(fn, nargs):
    """`fn`, which takes *args, as a function of so many parameters."""
    names = ",".join(f"arg{i}" for i in range(nargs))
    return eval(f"lambda {names}: fn({names})", {"fn": fn})


def wrap_key(f, tensors, tracer, pre_dispatch):
    """The function that a Tracer runs with proxies: it runs `f` with the tensors that they stand for."""
    flat_tensors = tree_leaves(tensors)

    @functools.wraps(f)
    def wrapped(*proxies, **_unused):
        flat_proxies = tree_leaves(proxies)
        if len(flat_proxies) != len(flat_tensors):
            raise AssertionError(f"Expected same length: {len(flat_proxies)} vs {len(flat_tensors)}")
        with disable_proxy_modes_tracing():
            track_tensor_tree(flat_tensors, flat_proxies, constant=None, tracer=tracer)
        return tree_map_only((Tensor, *SYM_TYPES), tracer.unwrap_proxy, f(*tensors))

    return wrapped


def dispatch_trace(root, tracer, concrete_args=None):
    """The GraphModule of what `tracer` records while `root` runs."""
    graph = tracer.trace(root, concrete_args)
    _eliminate_unused_sizes(graph)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


def _eliminate_unused_sizes(graph):
    """Arithmetic with sizes that nobody has used goes; so do second computations of the same from the graph's inputs."""
    graph.eliminate_dead_code(lambda node: node.is_impure() or not _is_of_sizes(node))
    first, from_inputs = {}, set()
    for node in graph.nodes:
        val = node.meta.get("val")
        if not isinstance(val, SYM_TYPES):
            continue
        key = type(val), val.node.expr
        if node.op != "placeholder" and key in first:
            node.replace_all_uses_with(first[key])
            graph.erase_node(node)
        elif node.op == "placeholder" or from_inputs.issuperset(node.all_input_nodes):
            first.setdefault(key, node)
            from_inputs.add(node)


def _is_of_sizes(node):
    """Whether a node computes a size from sizes alone, or reads one."""
    is_size = isinstance(node.meta.get("val"), SYM_TYPES)
    return (
        is_accessor_node(node)
        or is_size
        and all(isinstance(a.meta.get("val"), SYM_TYPES) for a in node.all_input_nodes)
    )


@contextlib.contextmanager
def disable_autocast_cache():
    """Inside, each cast of autocast is made, and so recorded."""
    before = readtorch.is_autocast_cache_enabled()
    readtorch.set_autocast_cache_enabled(False)
    try:
        yield
    finally:
        readtorch.set_autocast_cache_enabled(before)


def make_fx(
    f,
    decomposition_table=None,
    tracing_mode="real",
    _allow_non_fake_inputs=False,
    *,
    pre_dispatch=False,
    _error_on_data_dependent_ops=True,
    record_stack_traces=False,
    record_module_stack=False,
):
    """A function of f's arguments that runs `f` with them and returns the GraphModule of the operators that were called.

    decomposition_table: operator -> a function of its arguments, which is traced in its place. tracing_mode: "real" computes with the
    arguments; "fake" with fake tensors, which have no elements; "symbolic" with fake tensors whose sizes are left open, and ints among the
    arguments are, too: the GraphModule's `shape_env` has the guards under which it is right. pre_dispatch: record calls as the program makes them, before autograd sees
    them and before compositions become their parts. record_stack_traces: note in nodes where they come from. record_module_stack: note
    there in which module's `forward`; then `f` has the root module as `f._orig_mod`, and traces are noted, too.
    Raises RuntimeError where the function takes a number out of a tensor; NotImplementedError for what is left out.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"tracing_mode must be real/fake/symbolic, got {tracing_mode}")

    @functools.wraps(f)
    def wrapped(*args):
        with_stack = record_module_stack and hasattr(f, "_orig_mod")
        tracer = _ModuleStackTracer(f._orig_mod) if with_stack else PythonKeyTracer()
        tracer.record_stack_traces = record_stack_traces or with_stack
        fake_mode = None
        if tracing_mode != "real":
            fake_mode = _fake_mode_of(args) or FakeTensorMode(
                allow_fallback_kernels=tracing_mode == "fake",
                allow_non_fake_inputs=_allow_non_fake_inputs,
                shape_env=ShapeEnv(),
                static_shapes=tracing_mode == "fake",
            )
        mode = ProxyTorchDispatchMode(
            tracer,
            tracing_mode,
            pre_dispatch,
            _error_on_data_dependent_ops=_error_on_data_dependent_ops,
            decomposition_table=decomposition_table,
        )
        gm = _trace(f, args, tracer, mode, fake_mode)
        if tracing_mode == "symbolic":
            gm.shape_env = fake_mode.shape_env
        return gm

    return wrapped


def _fake_mode_of(args):
    """The mode of the first FakeTensor among the arguments, or None."""
    modes = (maybe_get_fake_mode(t) for t in tree_leaves(args) if isinstance(t, Tensor))
    return next((mode for mode in modes if mode is not None), None)


def _convert_args_to_fake(args, fake_mode, tracing_mode):
    """With FakeTensors for tensors and, where sizes are left open, SymInts for ints."""
    numbers, env = itertools.count(), fake_mode.shape_env

    def fake(x):
        if isinstance(x, Tensor):
            return fake_mode.from_tensor(x, source=f"input{next(numbers)}")
        if type(x) is int and tracing_mode == "symbolic":
            symbol = env.create_symbol(x, f"input{next(numbers)}", positive=None)
            return env.create_symintnode(symbol, hint=x)
        return x

    return tree_map(fake, args)


def _trace(f, args, tracer, mode, fake_mode):
    placeholders = tree_map(lambda _: PH, args)
    if fake_mode is not None:
        args = _convert_args_to_fake(args, fake_mode, mode.tracing_mode)
    function = inspect.unwrap(f)
    if not hasattr(function, "__code__") or function.__code__.co_flags & inspect.CO_VARARGS:
        f = fake_signature(f, len(placeholders))
    with fake_mode or contextlib.nullcontext(), mode, disable_autocast_cache():
        root = wrap_key(f, args, tracer, mode.pre_dispatch)
        return dispatch_trace(root, tracer=tracer, concrete_args=tuple(placeholders))


def wrapper_and_args_for_make_fx(func, args, kwargs):
    """A function of one list, and that list, for func(*args, **kwargs)."""
    flat_args, spec = tree_flatten((args, kwargs))

    def wrapped(flat_args):
        fn_args, fn_kwargs = tree_unflatten(flat_args, spec)
        return func(*fn_args, **fn_kwargs)

    return wrapped, flat_args


def get_isolated_graphmodule(func, args, kwargs, tracing_mode="real", decomposition_table=None):
    """The GraphModule of func(*args, **kwargs), of whose calls an outer trace sees nothing."""
    wrapped, flat_args = wrapper_and_args_for_make_fx(func, args, kwargs)
    with disable_proxy_modes_tracing():
        return make_fx(wrapped, decomposition_table=decomposition_table, tracing_mode=tracing_mode)(flat_args)


# -------------------------------------------------------------------------------------------- graphs traced again


class DecompositionInterpreter(Interpreter):
    """Runs a graph and records what it does in `new_graph`, with operators taken apart by a table."""

    def __init__(self, module, new_graph, decomposition_table=None, **kwargs):
        super().__init__(module, **kwargs)
        self.new_graph = new_graph
        self.tracer = _GraphAppendingTracerEx(new_graph)
        self.decomposition_table = decomposition_table or {}
        self.mode = ProxyTorchDispatchMode(self.tracer, "real", decomposition_table=self.decomposition_table)

    def placeholder(self, target, args, kwargs):
        return self._tracked(super().placeholder(target, args, kwargs), self.new_graph.placeholder(target))

    def get_attr(self, target, args, kwargs):
        return self._tracked(super().get_attr(target, args, kwargs), self.new_graph.get_attr(target))

    def _tracked(self, out, node):
        return track_tensor_tree(out, Proxy(node, self.tracer), constant=None, tracer=self.tracer)

    def output(self, target, args, kwargs):
        out = super().output(target, args, kwargs)
        nodes = tree_map_only(Tensor, lambda t: get_proxy_slot(t, self.tracer, t, lambda found: found.proxy.node), out)
        self.new_graph.output(nodes)
        return out

    def run(self, *args, **kwargs):
        with self.mode:
            return super().run(*args, **kwargs)


class _SelectiveDecomposeInterpreter(Interpreter):
    """Runs a graph under a trace; nodes that `should_decompose` chooses are taken apart by the table."""

    def __init__(self, module, should_decompose, decomposition_table, **kwargs):
        super().__init__(module, **kwargs)
        self.should_decompose = should_decompose
        self.decomposition_table = decomposition_table

    def run_node(self, n):
        if not self.should_decompose(n):
            return super().run_node(n)
        with decompose(self.decomposition_table):
            return super().run_node(n)


def selective_decompose(joint_gm, *args, decomposition, should_decompose, trace_joint_graph):
    """A graph traced again with some of its nodes taken apart. trace_joint_graph: it has two lists of inputs, primals and tangents."""

    def run(*_):
        return _SelectiveDecomposeInterpreter(joint_gm, should_decompose, decomposition).run(*args)

    def run_joint(primals, tangents):
        return run()

    return make_fx(run_joint if trace_joint_graph else run, decomposition_table={})(*args)
