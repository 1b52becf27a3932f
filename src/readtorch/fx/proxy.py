"""`Proxy`: stands for a value that is not known yet, and records what is done with it. In PyTorch: `torch/fx/proxy.py`.

What Python does with a Proxy becomes a node: operators through the methods below, functions of `torch` through
`__torch_function__`, attributes through `Attribute`. What would need the value, `if proxy:`, is an error.
"""

import collections
import copy
import dis
import enum
import functools
import inspect
import logging
import operator
import traceback
import types
from bisect import bisect_left
from dataclasses import fields, is_dataclass
from pathlib import Path

import readtorch
from readtorch._ops import HigherOrderOperator, OpOverload
from readtorch.overrides import is_tensor_method_or_property
from readtorch.utils._pytree import tree_iter

from . import traceback as fx_traceback
from ._gen_python_code import magic_methods, reflectable_magic_methods
from .node import base_types, map_arg
from .operator_schemas import check_for_mutable_operation

__all__ = [
    "TracerBase",
    "GraphAppendingTracer",
    "TraceError",
    "Proxy",
    "MetaProxy",
    "Attribute",
    "ParameterProxy",
    "Scope",
    "ScopeContextManager",
]

log = logging.getLogger(__name__)

# What the current notes say that new nodes keep.
_COPY_META_FIELDS = (
    *("nn_module_stack", "torch_fn", "source_fn_stack", "original_aten", "recompute", "ac_graph_id"),
    *("has_backward_hook", "from_node", "quantization_tag", "_numeric_debug_handle", "custom", "partitioner_tag"),
)

_PACKAGE = Path(__file__).parents[1]


class Scope:
    """The module whose forward is being traced: its path and its class."""

    def __init__(self, module_path, module_type):
        self.module_path = module_path
        self.module_type = module_type


class ScopeContextManager:
    """Inside, `scope` says what `current_scope` says."""

    def __init__(self, scope, current_scope):
        self._prev_scope = copy.copy(scope)
        scope.module_path, scope.module_type = current_scope.module_path, current_scope.module_type
        self._scope = scope

    def __enter__(self):
        return self._scope

    def __exit__(self, *args):
        self._scope.module_path = self._prev_scope.module_path
        self._scope.module_type = self._prev_scope.module_type


class TraceError(ValueError):
    """What is done with a Proxy cannot be recorded."""


# -------------------------------------------------------------------------------------------------------- tracers


class TracerBase:
    """Makes nodes and proxies. A subclass changes what is recorded, by its `create_node`, `create_arg`, `proxy` and others.

    record_stack_traces: note in each node where it was recorded. check_mutable_operations: refuse calls that write to an
    argument. trace_asserts: record `assert proxy`. proxy_buffer_attributes: let buffers be nodes, not constants.
    """

    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    def create_node(self, kind, target, args, kwargs, name=None, type_expr=None):
        """A node of the graph that is being recorded. Its arguments hold nodes, no proxies. See `Graph.create_node`."""
        if kind == "call_function" and self.check_mutable_operations:
            check_for_mutable_operation(target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        self.node_name_to_scope[node.name] = (self.scope.module_path, self.scope.module_type)
        if fx_traceback.has_preserved_node_meta():
            self._copy_notes(node)
        elif self.module_stack:
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and not node.stack_trace:
            frames = self._filter_traceback_frames(traceback.extract_stack())
            if frames:
                node.stack_trace = "".join(frames.format()).strip()
        log.debug("create_node %s", node)
        return node

    def _copy_notes(self, node):
        notes = fx_traceback.get_current_meta()
        if notes.get("stack_trace"):
            node.stack_trace = notes["stack_trace"]
        node.meta.update({field: copy.copy(notes[field]) for field in _COPY_META_FIELDS if field in notes})
        node.meta["seq_nr"] = readtorch._C._autograd._get_sequence_nr() - 1

    def _filter_traceback_frames(self, user_stack_summary):
        """The program's frames, from the first `forward` on; [] if there is none."""
        names = [frame.name for frame in user_stack_summary]
        start = names.index("forward") if "forward" in names else len(names)
        own = (_PACKAGE / "fx", _PACKAGE / "nn" / "modules" / "module.py")
        shown = [frame for frame in user_stack_summary[start:] if not _is_within(frame.filename, own)]
        return traceback.StackSummary.from_list(shown)

    def proxy(self, node):
        """The Proxy for a node."""
        return Proxy(node, self)

    def create_proxy(self, kind, target, args, kwargs, name=None, type_expr=None, proxy_factory_fn=None):
        """Record an operation whose arguments may hold proxies; the Proxy for its result.

        proxy_factory_fn: makes that of the node, in place of `proxy`.
        """
        args_, kwargs_ = self.create_arg(args), self.create_arg(kwargs)
        if not isinstance(args_, tuple):
            raise AssertionError(f"Expected args_ to be tuple, got {type(args_)}")
        if not isinstance(kwargs_, dict):
            raise AssertionError(f"Expected kwargs_ to be dict, got {type(kwargs_)}")
        node = self.create_node(kind, target, args_, kwargs_, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def _find_user_frame(self):
        """The innermost frame that is the program's."""
        frame = inspect.currentframe()
        while frame is not None and _is_within(frame.f_code.co_filename, (_PACKAGE,)):
            frame = frame.f_back
        return frame

    def create_arg(self, a):
        """A value as the argument of a node: nodes in place of proxies, in containers of any depth.

        Raises NotImplementedError for types that code cannot name.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple):
            items = [self.create_arg(element) for element in a]
            return type(a)(*items) if hasattr(a, "_fields") else type(a)(items)
        if isinstance(a, list):
            return [self.create_arg(element) for element in a]
        if isinstance(a, dict):
            return {self._create_key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, (slice, range)):
            return type(a)(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, (OpOverload, HigherOrderOperator)):
            return a
        if is_dataclass(a):
            values = {field.name: self.create_arg(getattr(a, field.name)) for field in fields(a)}
            return self.create_node("call_function", a.__class__, (), values)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_key(self, key):
        if isinstance(key, str):
            return key
        key = self.create_arg(key)
        map_arg(key, _no_nodes_error)
        return key

    def to_bool(self, obj):
        """What `if proxy:` does. Raises TraceError."""
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj):
        """What `for x in proxy:` does. Raises TraceError."""
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types "
            "of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
        )

    def keys(self, obj):
        """What `proxy.keys()` does, and so `f(**proxy)`: it is recorded."""
        return Attribute(obj, "keys")()


def _is_within(filename, places):
    return any(Path(filename).is_relative_to(place) for place in places)


def _no_nodes_error(arg):
    raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {arg}")


class GraphAppendingTracer(TracerBase):
    """Appends to a graph that is there."""

    def __init__(self, graph):
        self.graph = graph
        self.scope = Scope("", None)
        self.module_stack = collections.OrderedDict()
        self.node_name_to_scope = {}


def assert_fn(x):
    """What `assert x` is in a graph."""
    if not x:
        raise AssertionError("Assertion failed")


# -------------------------------------------------------------------------------------------------------- proxies


def _recording(name, reflected=False):
    """A method that records the function `name` of the module `operator`; reflected: with its operands changed over."""
    function = getattr(operator, name)

    def impl(*args, **kwargs):
        return args[0].tracer.create_proxy("call_function", function, args[::-1] if reflected else args, kwargs)

    impl.__name__ = impl.__qualname__ = f"__{'r' if reflected else ''}{name.strip('_')}__"
    return impl


# In Python 3 no expression calls __div__.
_OPERATORS = [name for name in magic_methods if hasattr(operator, name)]
_REFLECTED = [name for name in reflectable_magic_methods if hasattr(operator, name)]


class Proxy:
    """The value of `node`, which nobody knows yet. What is done with it is recorded by `tracer`."""

    # __add__, __radd__ and their like
    vars().update({f"__{name.strip('_')}__": _recording(name) for name in _OPERATORS})
    __hash__ = object.__hash__  # Python takes it away where there is an __eq__
    vars().update({f"__r{name.strip('_')}__": _recording(name, reflected=True) for name in _REFLECTED})

    def __init__(self, node, tracer=None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self):
        return f"Proxy({self.node.name})"

    def __getattr__(self, k):
        if k == "_keys":  # by which the bindings of operators tell tensors; in PyTorch: by the type
            raise AttributeError(k)
        return Attribute(self, k)

    def __getstate__(self):
        return self.__dict__

    def __setstate__(self, d):
        self.__dict__ = d

    def __deepcopy__(self, memo):
        copied = {}
        for name, value in self.__dict__.items():
            try:
                copied[name] = copy.deepcopy(value, memo)
            except Exception:
                log.warning(
                    "Shallow copy %s of Proxy because it cannot be deepcopied. Proxy is created for node %s",
                    name,
                    self.node.name,
                )
                copied[name] = copy.copy(value)
        new = Proxy(copied["node"], copied["tracer"])
        new.__dict__.update(copied)
        return new

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __abs__(self):
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __iter__(self):
        """`a, b = proxy` says how many there are, and reads the elements; anything else asks the tracer."""
        instructions, current = _instructions_of(inspect.currentframe().f_back)
        if instructions[current].opname == "UNPACK_SEQUENCE":
            return (self[i] for i in range(instructions[current].argval))
        return self.tracer.iter(self)

    def __bool__(self):
        if self.tracer.trace_asserts and _is_in_assert(inspect.currentframe().f_back):
            self.tracer.create_proxy("call_function", assert_fn, (self,), {})
            return True
        return self.tracer.to_bool(self)

    def keys(self):
        return self.tracer.keys(self)

    def __len__(self):
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        tracers = {a.tracer: None for a in tree_iter((args, kwargs)) if isinstance(a, cls)}
        if len(tracers) > 1:
            raise RuntimeError(
                f"Found multiple different tracers {list(tracers)} while trying to trace operations {orig_method}"
            )
        [tracer] = tracers
        if is_tensor_method_or_property(orig_method):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        if isinstance(orig_method, HigherOrderOperator):
            _refuse_functions(orig_method, args, kwargs)
        name = tracer.graph._target_to_str(orig_method.__name__)
        return tracer.create_proxy("call_function", orig_method, args, kwargs, name=name)


def _instructions_of(frame):
    """The instructions of a frame's code, and the position of the one that it is in."""
    instructions = list(dis.get_instructions(frame.f_code))
    return instructions, bisect_left(instructions, frame.f_lasti, key=lambda instruction: instruction.offset)


def _is_in_assert(frame):
    """Whether a frame asks for the truth of a value in an `assert`: where it is false, an AssertionError is raised."""
    instructions, current = _instructions_of(frame)
    if instructions[current].opname == "TO_BOOL" or instructions[current].argrepr.startswith("bool("):
        current += 1  # since 3.13 an instruction before the jump asks
    if "JUMP" not in instructions[current].opname or "IF_TRUE" not in instructions[current].opname:
        return False
    following = instructions[current + 1]
    return following.opname == "LOAD_ASSERTION_ERROR" or (
        following.opname == "LOAD_GLOBAL" and following.argval == "AssertionError"
    )


def _refuse_functions(orig_method, args, kwargs):
    """Functions among the arguments of a higher order operator would be called with proxies, in no graph of their own."""
    functions = (
        *(types.FunctionType, types.MethodType, types.BuiltinFunctionType, types.BuiltinMethodType),
        functools.partial,
    )
    for a in tree_iter((args, kwargs)):
        if isinstance(a, functions):
            raise RuntimeError(
                f"Unable to symbolically trace the HigherOrderOperator {orig_method._name} because it received an arbitrary "
                f"callable argument {a}. Use make_fx or dynamo tracing instead."
            )


class MetaProxy(Proxy):
    """A Proxy whose node knows a fake value: `meta["val"]`. fake_mode: the FakeTensorMode that computes it."""

    def __init__(self, node, tracer=None, fake_mode=None):
        super().__init__(node, tracer)
        self.fake_mode = fake_mode

    def __repr__(self):
        return f"MetaProxy({self.node.name})"

    @classmethod
    def __torch_function__(cls, orig_method, types, args=None, kwargs=None):
        args, kwargs = args or (), kwargs or {}
        meta_proxy = next((a for a in args if isinstance(a, MetaProxy)), None)
        if meta_proxy is None:
            raise AssertionError("No MetaProxy found in arguments, but one is expected.")
        proxy = super().__torch_function__(orig_method, types, args, kwargs)
        with meta_proxy.fake_mode:
            values = [a.node.meta["val"] if isinstance(a, Proxy) else a for a in args]
            proxy.node.meta["val"] = orig_method(*values, **kwargs)
        return MetaProxy(proxy.node, proxy.tracer, meta_proxy.fake_mode)


class Attribute(Proxy):
    """proxy.attr, which is recorded when it is used; called, it is a method of `root`."""

    def __init__(self, root, attr):
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node = None

    @property
    def node(self):
        if self._node is None:  # most attributes are methods that are called: they need no node
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args, **kwargs):
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A Proxy for a Parameter whose sizes are known: conditions on them are decided while tracing."""

    def __init__(self, tracer, node, name, param):
        super().__init__(node, tracer)
        if not isinstance(param, readtorch.nn.Parameter):
            raise AssertionError(f"Expected Parameter, got {type(param)}")
        self.param = param
        self.name = name

    def __repr__(self):
        return f"ParameterProxy({self.name})"

    @property
    def shape(self):
        return self.param.shape

    def size(self):
        return self.param.size()

    def dim(self):
        return self.param.dim()

    @property
    def ndim(self):
        return self.param.ndim

    def numel(self):
        return self.param.numel()

    def nelement(self):
        return self.param.nelement()
