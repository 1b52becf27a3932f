"""`Node`: one operation of a Graph. In PyTorch: `torch/fx/node.py`, and `torch/csrc/fx/node.cpp` for the list of nodes.

Note [ The list of nodes ]

The nodes of a graph are a ring: each knows the one before it and the one behind it, and the graph's root, which is no
operation, stands between the last and the first. To insert or remove one takes a few assignments wherever it stands, and an
iteration goes on from a node that was erased meanwhile: its neighbours are still known. To compare two positions without
walking, each node has a sort key, a tuple: one that is inserted between (3,) and (4,) gets (3, 0).

Note [ Names that generated code can use ]

Code that a graph generates names what it calls as PyTorch does, `torch.nn.functional.relu`, and `torch` in it is this package:
a program gives the same text with both. So our modules are called by PyTorch's names here, whatever they are called where they
stand. See Note [ Two names of one package ].
"""

import builtins
import inspect
import logging
import operator
import types
from collections.abc import Callable
from functools import total_ordering
from typing import Any

import readtorch
from readtorch._ops import OpOverload, OpOverloadPacket, ops
from readtorch._tensor import Tensor
from readtorch.c10.module_names import room_of
from readtorch.serialization._names import torch_name
from readtorch.utils._dtype_abbrs import dtype_abbrs

from .immutable_collections import immutable_dict, immutable_list
from .operator_schemas import normalize_function, normalize_module

__all__ = ["Node", "map_arg", "map_aggregate", "has_side_effect"]

log = logging.getLogger(__name__)

# What an argument may be beside nodes and containers of arguments.
base_types = (
    *(str, int, float, bool, complex),
    *(readtorch.dtype, Tensor, readtorch.device, readtorch.memory_format, readtorch.layout, OpOverload),
)

Target = Callable | str  # what a node calls, in annotations
Argument = Any

_legal_ops = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_side_effectful_functions = {
    readtorch._assert,
    readtorch._assert_async,
    ops.aten._assert_async.msg,
    ops.aten._assert_tensor_metadata.default,
    operator.setitem,
    readtorch._C._set_grad_enabled,
}


def has_side_effect(fn):
    """Keep calls of `fn` when `Graph.eliminate_dead_code` removes what nobody uses. Returns `fn`: a decorator."""
    _side_effectful_functions.add(fn)
    return fn


def is_impure(op, *, args=None, kwargs=None, impure_random=True):
    """Whether a call of `op` does more than to return a result: it writes to an argument or draws random numbers.

    In PyTorch: `torch/_library/utils.py`.
    """
    if op in _side_effectful_functions:
        return True
    if isinstance(op, OpOverloadPacket) and hasattr(op, "default"):
        op = op.default
    if isinstance(op, OpOverload):
        random = impure_random and any(tag.name == "nondeterministic_seeded" for tag in op.tags)
        return op._schema.is_mutable or random or op in _side_effectful_functions
    return impure_random and op in _random_functions()


def _random_functions():
    names = "rand randn randint randperm rand_like randn_like randint_like normal poisson bernoulli multinomial"
    return [getattr(readtorch, name) for name in names.split()]


# ------------------------------------------------------------------------------------------------------- names


def _torch_module(obj):
    """The module of an object as PyTorch calls it, "torch.nn.functional"; None if it does not say one.

    See Note [ Names that generated code can use ].
    """
    module, name = getattr(obj, "__module__", None), getattr(obj, "__qualname__", None)
    if not isinstance(module, str):
        return None
    module = torch_name(module, name)[0] if isinstance(name, str) else module
    room = room_of(module)
    return module if room is None else f"torch.{room}" if room else "torch"


def _public_places():
    """Where code finds functions that are C++ in PyTorch, and stand in other rooms here: (name, what is there)."""
    functional = readtorch.nn.functional
    yield from (("torch", vars(readtorch)), ("torch.nn.functional", vars(functional)), ("torch._C", vars(readtorch._C)))


def _find_public_name(func):
    """The name, "torch._C._set_grad_enabled", of a function of `csrc`; None for one that says itself where it is found."""
    module = getattr(func, "__module__", None)
    if module is not None and (room_of(module) or "").partition(".")[0] not in ("aten", "c10", "csrc"):
        return None
    found = (f"{place}.{name}" for place, members in _public_places() for name, f in members.items() if f is func)
    return next(found, None)


def _type_repr(obj):
    """A type as code would name it; types of `typing` as they show themselves."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        module = _torch_module(obj)
        return obj.__qualname__ if module == "builtins" else f"{module}.{obj.__qualname__}"
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


def _get_qualified_name(func):
    """The name under which generated code finds a function: "torch.relu", "torch.ops.aten.add.Tensor", "my_module.f"."""
    name = func.__name__
    if getattr(builtins, name, None) is func:
        return name
    if getattr(Tensor, name, None) is func:
        return f"torch.Tensor.{name}"
    if name == "<lambda>":
        try:
            name = inspect.getsource(func).split("=")[0].strip()
        except Exception as e:
            raise RuntimeError("Unable to represent lambda") from e
    public = _find_public_name(func)
    if public is not None:
        return public
    module = _torch_module(func)
    if module is None:
        raise RuntimeError(f"cannot find module for {func}")
    return f"{module.replace('torch._ops', 'torch.ops')}.{name}"


def _format_arg(arg, max_list_len=float("inf")):
    """An argument as the text of a graph shows it: nodes with a %."""
    if hasattr(arg, "_custom_fx_repr_fn"):
        return arg._custom_fx_repr_fn()
    if isinstance(arg, (list, tuple)):
        shown = ", ".join(_format_arg(a) for i, a in enumerate(arg) if i < max_list_len)
        rest = "" if len(arg) < max_list_len + 1 else f", ...[total_len={len(arg)}]"
        if isinstance(arg, list):
            return f"[{shown}{rest}]"
        return f"({shown}{',' if len(arg) == 1 else ''}{rest})"
    if isinstance(arg, dict):
        return f"{{{', '.join(f'{key}: {_format_arg(value)}' for key, value in arg.items())}}}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


# --------------------------------------------------------------------------------------------------------- Node


@total_ordering
class Node:
    """One operation of a Graph. `args` and `kwargs` hold other nodes and constants, in containers of any depth.

    What `target`, `args` and `kwargs` mean is said by `op`:

        placeholder     an input called `target`; `args` holds its default, if it has one
        get_attr        the attribute `target` of the module, "a.b.weight"
        call_function   target(*args, **kwargs)
        call_module     the submodule `target`, called with args and kwargs
        call_method     the method `target` of args[0], called with the rest
        output          what the graph returns: args[0]

    name: unique in its graph. users: the nodes that use this one (a dict, for its order). meta: a dict for notes of passes.
    type: what annotations said of the result, or None.
    """

    def __init__(self, graph, name, op, target, args, kwargs, return_type=None):
        if op == "call_function" and not callable(target):
            raise ValueError(_wrong_target(graph, name, target, "Callable"))
        if op not in _legal_ops:
            raise AssertionError(f"op '{op}' is not in _legal_ops")
        if op != "call_function" and not isinstance(target, str):
            raise ValueError(_wrong_target(graph, name, target, "str"))
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users = {}
        self.meta = {}
        self._input_nodes = {}
        self._repr_fn = None
        self._erased = False
        self._prev = self._next = self
        self._sort_key = ()
        self._update_args_kwargs(args, kwargs)

    def __setattr__(self, name, value):
        """Keep the graph's tables: of names, which modules may watch, and of nodes by their operation."""
        if name == "name" and hasattr(self, "name"):
            for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
                for user in self.users:
                    hook(old=self, new=value, user=user)
        table = getattr(self.graph, "_find_nodes_lookup_table", None) if name in ("op", "target") else None
        listed = table is not None and hasattr(self, "op") and hasattr(self, "target") and self in table
        if listed:
            table.remove(self)
        object.__setattr__(self, name, value)
        if listed:
            table.insert(self)

    def __getattr__(self, name):
        if name == "graph":  # asked for by __setattr__ before it is there
            return None
        raise AttributeError(f"'Node' object has no attribute '{name}'")

    # ------------------------------------------------------------------------------------------ its place in the list

    @property
    def next(self):
        return self._next

    @property
    def prev(self):
        return self._prev

    def prepend(self, x):
        """Put `x`, a node of the same graph, directly before this one."""
        self._prepend(x)

    def append(self, x):
        """Put `x`, a node of the same graph, directly behind this one."""
        self._next._prepend(x)

    def _prepend(self, x):
        if self.graph != x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            log.debug("Trying to prepend a node to itself. This behavior has no effect on the graph.")
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x
        x._sort_key = _key_between(before._sort_key, self._sort_key)

    def _remove_from_list(self):
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other):
        return self._sort_key < other._sort_key

    def __eq__(self, other):
        return self is other

    def __hash__(self):
        return id(self)

    # ------------------------------------------------------------------------------------------------------ arguments

    @property
    def args(self):
        """The positional arguments, a tuple. Assign a new one to change them."""
        return self._args

    @args.setter
    def args(self, a):
        self._update_args_kwargs(a, self._kwargs)

    @property
    def kwargs(self):
        """The arguments by name, an immutable dict. Assign a new one to change them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k):
        self._update_args_kwargs(self._args, k)

    def _update_args_kwargs(self, args, kwargs):
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def note_use(node):
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(args, note_use)
        self._kwargs = map_arg(kwargs, note_use)

    @property
    def all_input_nodes(self):
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx, arg):
        """Make `arg` the positional argument number `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx, arg):
        """Insert `arg` before the positional argument number `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError(f"insert_args index must be between 0 and len(self.args), got {idx}")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key, arg):
        """Make `arg` the argument called `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    # --------------------------------------------------------------------------------------------------- replacements

    def replace_all_uses_with(self, replace_with, delete_user_cb=None, *, propagate_meta=False):
        """Let those who use this node use `replace_with`. Returns the list of nodes that were changed.

        delete_user_cb: which users, by a function of the user. propagate_meta: give `replace_with` this node's `meta`.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), "
                    "but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input, new_input):
        """Use `new_input` wherever `old_input` was an argument."""
        for hook in getattr(self.graph.owning_module, "_replace_hooks", ()):
            hook(old=old_input, new=new_input.name, user=self)
        self._replace_input_with(old_input, new_input)

    def _replace_input_with(self, old_input, new_input):
        args, kwargs = map_arg((self._args, self._kwargs), lambda node: new_input if node is old_input else node)
        self._update_args_kwargs(args, kwargs)

    def _rename(self, candidate):
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace._rename_object(self, self.name)

    # ------------------------------------------------------------------------------------------------- what it says

    @property
    def stack_trace(self):
        """Where in the program it was recorded, if the tracer kept that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace):
        self.meta["stack_trace"] = trace

    def __repr__(self):
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target):
        if isinstance(target, str):
            return target
        name = getattr(target, "__name__", None)
        if name is not None and target.__module__ == "builtins":
            return f"builtins.{name}"
        if name is not None and target.__module__ == "_operator":
            return f"operator.{name}"
        return _get_qualified_name(target)

    def format_node(self, placeholder_names=None, maybe_return_typename=None, *, include_tensor_metadata=False):
        """The node as a line of the graph's text: "%add : [num_users=1] = call_function[target=operator.add](args = …".

        A placeholder is appended to the list `placeholder_names` instead, if that is given, and None returned.
        """
        typename = f"{_type_repr(self.type)} " if self.type is not None else ""
        if self.op == "placeholder":
            if placeholder_names:
                annotation = f"{self.target}: {_type_repr(self.type)}" if self.type else ""
                placeholder_names.append(self.target + annotation)
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {typename}[num_users={len(self.users)}] = {self.op}[target={self.target}]{default}"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        start = f"[num_users={len(self.users)}] = {self.op}[target={self._pretty_print_target(self.target)}]"
        if self.op == "get_attr":
            return f"%{self.name} : {typename}{start}"
        if include_tensor_metadata:
            typename = _tensor_metadata(self.meta) or typename
        arguments = f"(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"
        return f"%{self.name} : {typename}{start}{arguments}"

    # ------------------------------------------------------------------------------------------------ what it does

    def is_impure(self, impure_random=True):
        """Whether it must stay although nobody uses it: an input or output, or a call with side effects."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_module":
            if self.graph.owning_module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(self.graph.owning_module.get_submodule(self.target), "_is_impure", False)
        if self.op == "call_function":
            return is_impure(self.target, args=self.args, kwargs=self.kwargs, impure_random=impure_random)
        return False

    def normalized_arguments(self, root, arg_types=None, kwarg_types=None, normalize_to_only_use_kwargs=False):
        """An ArgsKwargsPair in which arguments stand where the signature of what is called has them; None if it is unknown.

        root: the module that modules are found in. arg_types, kwarg_types: choose among overloads.
        """
        if self.op == "call_function":
            types = arg_types, kwarg_types
            return normalize_function(self.target, self.args, self.kwargs, *types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None


def _wrong_target(graph, name, target, expected):
    return (
        f"Node [graph = {graph}, name = '{name}'] target {target} has type {readtorch.typename(target)} "
        f"but a {expected} is expected"
    )


def _key_between(before, behind):
    """A sort key between two neighbours'. See Note [ The list of nodes ]."""
    if len(before) > len(behind):
        *start, last = before[: len(behind) + 1]
        return (*start, last + 1)
    if len(before) < len(behind):
        *start, last = behind[: len(before) + 1]
        return (*start, last - 1)
    return (*before, 0)


def _tensor_metadata(meta):
    """What `format_node` says of a tensor that a pass noted: dtype, sizes, strides and device."""
    value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    if not isinstance(value, Tensor):
        return ""
    shape, stride = list(value.shape), list(value.stride())
    return f'Tensor "{dtype_abbrs[value.dtype]}{shape}{stride}{value.device}"'


# ---------------------------------------------------------------------------------------------------- containers


def map_arg(a, fn):
    """`a`, an argument of a node, with fn(node) in place of each node. Lists and dicts come back immutable."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def map_aggregate(a, fn):
    """`a` with fn(x) in place of each x that is no tuple, list, dict or slice. Lists and dicts come back immutable."""
    if isinstance(a, tuple):
        items = [map_aggregate(element, fn) for element in a]
        return type(a)(*items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list([map_aggregate(element, fn) for element in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)
