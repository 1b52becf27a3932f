"""Nested containers as a flat list of leaves and back. In PyTorch: `torch/utils/_pytree.py`.

A *pytree* is a nest of containers: lists, tuples, named tuples, dictionaries, deques, and classes that were registered.
What is no container of exactly these types is a leaf; None is one, and so is an object of a class derived from dict.

Note [ What a node type is ]

The registry has an entry for each type of container: how an object of it is taken apart into children and a context, and how
it is put together again. The context is what must be known beside the children: a dictionary's keys, a deque's maxlen.
All named tuples share one entry, whose key is the function `collections.namedtuple`: their class is the context. That holds
even for a named tuple that has an entry of its own, which then is only asked for its name when a TreeSpec is written down.
"""

import dataclasses
import functools
import importlib
import json
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Any, NamedTuple

from readtorch.aten.native.return_types import is_return_type

__all__ = [
    "PyTree",
    "Context",
    "FlattenFn",
    "UnflattenFn",
    "DumpableContext",
    "ToDumpableContextFn",
    "FromDumpableContextFn",
    "PyTreeSpec",
    "TreeSpec",
    "LeafSpec",
    "keystr",
    "key_get",
    "register_pytree_node",
    "tree_is_leaf",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_unflatten",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_structure",
    "tree_map",
    "tree_map_with_path",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_all",
    "tree_any",
    "tree_all_only",
    "tree_any_only",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
]

PyTree = Context = DumpableContext = Any
FlattenFn = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = Callable[[Iterable[Any], Context], PyTree]
ToDumpableContextFn = Callable[[Context], DumpableContext]
FromDumpableContextFn = Callable[[DumpableContext], Context]


def _warn_deprecated(message):
    warnings.warn(message, FutureWarning, stacklevel=3)


# ------------------------------------------------------------------------------------------------ which type it is


def is_namedtuple(obj) -> bool:
    """Whether `obj` is a named tuple, or a class of named tuples."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_namedtuple_instance(obj) -> bool:
    """Whether `obj` is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple_class(cls) -> bool:
    """Whether `cls` is what `collections.namedtuple` makes, or derived from it: a tuple with its names and methods."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in cls._fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def is_structseq(obj) -> bool:
    """Whether `obj` is a structseq (`time.struct_time`, `readtorch.return_types.max`), or a class of them."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_instance(obj) -> bool:
    """Whether `obj` is a structseq."""
    return is_structseq_class(type(obj))


_IS_ACCEPTABLE_BASE = 1 << 10  # Py_TPFLAGS_BASETYPE of CPython


def is_structseq_class(cls) -> bool:
    """Whether `cls` is a class of CPython's PyStructSequence: a tuple that counts its fields and lets nobody derive from it."""
    if not isinstance(cls, type) or cls.__bases__ != (tuple,):
        return False
    counts = (getattr(cls, name, None) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
    # in PyTorch: return types are made in C and have no such flag either
    is_final = not cls.__flags__ & _IS_ACCEPTABLE_BASE or is_return_type(cls)
    return is_final and all(isinstance(count, int) for count in counts)


def _get_node_type(tree):
    """What the registry knows an object's type by. See Note [ What a node type is ]."""
    cls = type(tree)
    if cls is not tuple and issubclass(cls, tuple) and is_namedtuple_class(cls):
        return namedtuple
    return cls


def _node_def(tree, is_leaf):
    """How `tree` is taken apart, None for a leaf."""
    if is_leaf is not None and is_leaf(tree):
        return None
    return SUPPORTED_NODES.get(_get_node_type(tree))


def tree_is_leaf(tree, is_leaf=None) -> bool:
    """Whether `tree` is no container, or one that `is_leaf` says shall not be taken apart."""
    return _node_def(tree, is_leaf) is None


def _is_leaf(tree, is_leaf=None):
    _warn_deprecated(
        "torch.utils._pytree._is_leaf is private and will be removed in a future release. "
        "Please use torch.utils._pytree.tree_is_leaf instead."
    )
    return tree_is_leaf(tree, is_leaf)


def _is_namedtuple_instance(tree):
    _warn_deprecated(
        "torch.utils._pytree._is_namedtuple_instance is private and will be removed in a future release. "
        "Please use torch.utils._pytree.is_namedtuple_instance instead."
    )
    return is_namedtuple_instance(tree)


# -------------------------------------------------------------------------------------------------- the TreeSpec


@dataclasses.dataclass(init=False, frozen=True, eq=False, repr=False, slots=True)
class TreeSpec:
    """The structure of a pytree: the node type of its root, the context, and the specs of the children.

    num_nodes, num_leaves, num_children: how many there are. A leaf has the type None.
    """

    type: Any
    _context: Context
    _children: list["TreeSpec"]
    num_nodes: int
    num_leaves: int
    num_children: int

    def __init__(self, type, context, children_specs):
        if type is None and context is not None:
            raise AssertionError("leaf node should not have a context")
        if type is None and len(children_specs) != 0:
            raise AssertionError("leaf node should not have children")
        nodes, leaves = 1, int(type is None)
        for child in children_specs:
            nodes += child.num_nodes
            leaves += child.num_leaves
        assign = object.__setattr__  # it is frozen
        assign(self, "type", type)
        assign(self, "_context", context)
        assign(self, "_children", children_specs)
        assign(self, "num_nodes", nodes)
        assign(self, "num_leaves", leaves)
        assign(self, "num_children", len(children_specs))

    def __repr__(self, indent=0):
        indent += 2
        children = f",\n{' ' * indent}".join(child.__repr__(indent) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{children}])"

    def __eq__(self, other):
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        return (
            str(self.type) == str(other.type) and self._context == other._context and self._children == other._children
        )

    def __hash__(self):
        return hash((self.type, self._hashable_context(), tuple(self._children)))

    def _hashable_context(self):
        if self.type is defaultdict:
            default_factory, keys = self._context
            return default_factory, tuple(keys)
        if self.type in (dict, OrderedDict):
            return tuple(self._context)
        if self.type is None or self.type in BUILTIN_TYPES:
            return self._context
        # nothing is known of the contexts of other classes; equal specs have equal hashes all the same
        return self._context.value if isinstance(self._context, ConstantNode) else None

    @property
    def context(self):
        return self._context

    @property
    def children_specs(self):
        _warn_deprecated(
            "`treespec.children_specs` is deprecated. "
            "Use `treespec.child(index)` to access a single child, "
            "or `treespec.children()` to get all children."
        )
        return self._children

    def is_leaf(self) -> bool:
        return self.num_nodes == 1 and self.num_leaves == 1

    def children(self) -> list["TreeSpec"]:
        return self._children.copy()

    def child(self, index) -> "TreeSpec":
        return self._children[index]

    def flatten_up_to(self, tree) -> list:
        """The parts of `tree` that stand where this structure has its leaves.

        Raises ValueError if the containers above them are not those of this structure; one dictionary may be an
        OrderedDict and the other a defaultdict, if they have the same keys.
        """
        subtrees = []
        _collect_up_to(self, tree, subtrees)
        return subtrees

    def unflatten(self, leaves) -> PyTree:
        """The pytree of this structure with these leaves. Raises ValueError if there are too many or too few."""
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} "
                f"but the spec refers to a pytree that holds {self.num_leaves} "
                f"items ({self})."
            )
        return _build(self, iter(leaves))


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf. Deprecated: `treespec.is_leaf()` asks for it, `treespec_leaf()` makes it."""

    __slots__ = ()

    def __new__(cls):
        _warn_deprecated(
            "`isinstance(treespec, LeafSpec)` is deprecated, "
            "use `isinstance(treespec, TreeSpec) and treespec.is_leaf()` instead."
        )
        return object.__new__(cls)

    def __init__(self):
        super().__init__(None, None, [])

    def __repr__(self, indent=0):
        return "*"

    def __reduce__(self):
        return treespec_leaf, ()


_LEAF_SPEC = object.__new__(LeafSpec)
_LEAF_SPEC.__init__()


def treespec_leaf() -> TreeSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable=(), /) -> TreeSpec:
    """The structure of a tuple whose children have these structures."""
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(mapping=(), /, **kwargs) -> TreeSpec:
    """The structure of a dictionary whose values have these structures."""
    children = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in children.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {children!r}.")
    return TreeSpec(dict, list(children), list(children.values()))


def _build(spec, leaves):
    if spec.type is None:
        return next(leaves)
    children = [_build(child, leaves) for child in spec._children]
    return SUPPORTED_NODES[spec.type].unflatten_fn(children, spec._context)


def _collect_up_to(spec, node, subtrees):
    if spec.is_leaf():
        subtrees.append(node)
        return
    for subspec, child in zip(spec._children, _children_as_in(spec, node), strict=True):
        _collect_up_to(subspec, child, subtrees)


def _children_as_in(spec, node):
    """The children of `node`, which has to be a container as `spec` says."""
    node_type, is_builtin = _get_node_type(node), spec.type in BUILTIN_TYPES
    both_dicts = spec.type in STANDARD_DICT_TYPES and node_type in STANDARD_DICT_TYPES
    if node_type != spec.type and not both_dicts:
        what = "Node type" if is_builtin else "Type"
        raise ValueError(f"{what} mismatch; expected {spec.type!r}, but got {node_type!r}.")
    children, context = SUPPORTED_NODES[node_type].flatten_fn(node)
    if len(children) != spec.num_children:
        raise ValueError(f"Node arity mismatch; expected {spec.num_children}, but got {len(children)}.")
    if both_dicts:
        return _values_in_order(node, spec._context if spec.type is not defaultdict else spec._context[1])
    if context == spec._context or node_type is deque:  # whose maxlen does not matter
        return children
    if is_builtin:
        raise ValueError(
            f"Node context mismatch for node type {spec.type!r}; expected {spec._context!r}, but got {context!r}."
        )
    raise ValueError(f"Node context mismatch for custom node type {spec.type!r}.")


def _values_in_order(mapping, keys):
    missing, extra = set(keys) - set(mapping), set(mapping) - set(keys)
    if missing or extra:
        message = f"; missing key(s): {missing}" if missing else ""
        message += f"; extra key(s): {extra}" if extra else ""
        raise ValueError(f"Node keys mismatch{message}.")
    return [mapping[key] for key in keys]


# ------------------------------------------------------------------------------------------------- flat and back


def tree_flatten(tree, is_leaf=None) -> tuple[list, TreeSpec]:
    """The leaves in order, and the structure. `is_leaf(node)`: whether a container is to be taken for a leaf."""
    leaves = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves, node, is_leaf):
    definition = _node_def(node, is_leaf)
    if definition is None:
        leaves.append(node)
        return _LEAF_SPEC
    children, context = definition.flatten_fn(node)
    return TreeSpec(definition.type, context, [_flatten_into(leaves, child, is_leaf) for child in children])


def tree_unflatten(leaves, treespec) -> PyTree:
    """The pytree that `tree_flatten` took apart, with other leaves. Raises ValueError as `TreeSpec.unflatten`."""
    if not isinstance(treespec, TreeSpec):
        if not isinstance(leaves, TreeSpec):
            raise TypeError(
                f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}."
            )
        leaves, treespec = treespec, leaves  # the other order is accepted, too
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None) -> Iterable:
    """The leaves, one after another; what is behind a leaf is not looked at before it is asked for."""
    definition = _node_def(tree, is_leaf)
    if definition is None:
        yield tree
        return
    for child in definition.flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None) -> list:
    """The leaves in order."""
    leaves = []
    _leaves_into(leaves, tree, is_leaf)
    return leaves


def _leaves_into(leaves, node, is_leaf):
    definition = _node_def(node, is_leaf)
    if definition is None:
        leaves.append(node)
    else:
        for child in definition.flatten_fn(node)[0]:
            _leaves_into(leaves, child, is_leaf)


def arg_tree_leaves(*args, **kwargs) -> list:
    """The leaves of all arguments."""
    return [leaf for argument in (*args, *kwargs.values()) for leaf in tree_leaves(argument)]


def tree_structure(tree, is_leaf=None) -> TreeSpec:
    """The structure of a pytree."""
    return tree_flatten(tree, is_leaf)[1]


# ------------------------------------------------------------------------------------------------------- functions


def tree_map(func, tree, *rests, is_leaf=None) -> PyTree:
    """The pytree with `func(leaf, *others)` in the place of each leaf.

    rests: pytrees that have the structure of `tree` or go on where it has leaves; `others` are their parts in that place.
    Raises ValueError as `TreeSpec.flatten_up_to`.
    """
    leaves, treespec = tree_flatten(tree, is_leaf)
    return treespec.unflatten(map(func, leaves, *(treespec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func, tree, *rests, is_leaf=None) -> PyTree:
    """Call `func` as `tree_map` does, for what it does to the leaves. Returns `tree`."""
    leaves, treespec = tree_flatten(tree, is_leaf)
    for arguments in zip(leaves, *(treespec.flatten_up_to(rest) for rest in rests)):
        func(*arguments)
    return tree


def map_only(type_or_types_or_pred, /):
    """A decorator: the function is called for values of these types, or that the predicate accepts; others stay as they are."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):
        is_meant = functools.partial(_is_of, type_or_types_or_pred)
    elif callable(type_or_types_or_pred):
        is_meant = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return functools.wraps(func)(lambda x: func(x) if is_meant(x) else x)

    return decorate


def _is_of(types, x):
    return isinstance(x, types)


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None) -> PyTree:
    """`tree_map` that leaves alone what `map_only` leaves alone."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None) -> PyTree:
    """`tree_map_` that leaves alone what `map_only` leaves alone."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None) -> bool:
    """Whether `pred` is true for all leaves. It is not asked on after the first for which it is not."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None) -> bool:
    """Whether `pred` is true for any leaf. It is not asked on after the first."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether `pred` is true for all leaves of these types."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None) -> bool:
    """Whether `pred` is true for any leaf of these types."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None) -> list | None:
    """For each leaf of `treespec` the leaf of `tree` that stands there or above; None if `tree` is not the upper part of it.

    It is how `vmap(f, in_dims=(0, None))` is spread over arguments that are nests.
    """
    full_tree = tree_unflatten([0] * treespec.num_leaves, treespec)
    result = []

    def add_leaves(leaf, subtree):
        result.extend([leaf] * tree_structure(subtree, is_leaf).num_leaves)

    try:
        tree_map_(add_leaves, tree, full_tree, is_leaf=is_leaf)
    except ValueError:
        return None
    return result


# ------------------------------------------------------------------------------------------------- ways to a leaf


@dataclasses.dataclass(frozen=True, slots=True)
class SequenceKey:
    """A step into a list, a tuple, a deque or a structseq."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True, slots=True)
class MappingKey:
    """A step into a dictionary."""

    key: Any

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True, slots=True)
class GetAttrKey:
    """A step to an attribute: of a named tuple, of a dataclass."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


def keystr(kp) -> str:
    """A path as one would write it in Python: `[0]['weight'].data`."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What is found in `obj` at the end of the path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def tree_leaves_with_path(tree, is_leaf=None) -> list[tuple]:
    """(path, leaf) for each leaf. Raises ValueError at a registered class that has no `flatten_with_keys_fn`."""
    found = []
    _paths_into(found, (), tree, is_leaf)
    return found


def tree_flatten_with_path(tree, is_leaf=None) -> tuple[list[tuple], TreeSpec]:
    """`tree_leaves_with_path`, and the structure."""
    treespec = tree_structure(tree, is_leaf)
    return tree_leaves_with_path(tree, is_leaf), treespec


def tree_map_with_path(func, tree, *rests, is_leaf=None) -> PyTree:
    """`tree_map`, where `func` gets the path of the leaf before it."""
    found, treespec = tree_flatten_with_path(tree, is_leaf)
    others = [treespec.flatten_up_to(rest) for rest in rests]
    return treespec.unflatten(func(path, leaf, *more) for (path, leaf), *more in zip(found, *others))


def _paths_into(found, path, tree, is_leaf):
    definition = _node_def(tree, is_leaf)
    if definition is None:
        found.append((path, tree))
        return
    if not definition.flatten_with_keys_fn:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {definition.type}. "
            "Please pass a flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in definition.flatten_with_keys_fn(tree)[0]:
        _paths_into(found, (*path, key), child, is_leaf)


# --------------------------------------------------------------------------------------------------- the registry


class NodeDef(NamedTuple):
    """How containers of one type are taken apart and put together.

    flatten_fn(node) -> (children, context); unflatten_fn(children, context) -> node;
    flatten_with_keys_fn(node) -> ([(key, child)], context)
    """

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: Callable | None


class _SerializeNodeDef(NamedTuple):
    """How `treespec_dumps` writes the type and its context down."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
SUPPORTED_NODES: dict[Any, NodeDef] = {}
SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES = STANDARD_DICT_TYPES | {tuple, list, namedtuple, deque}


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
) -> None:
    """Let objects of `cls` be containers. Subclasses of it are not.

    flatten_fn(obj) -> (list of children, context); unflatten_fn(children, context) -> obj.
    serialized_type_name: what `treespec_dumps` calls the class; to_dumpable_context, from_dumpable_context: the context to
    what json can write and back. flatten_with_keys_fn(obj) -> ([(key, child)], context), for paths.
    Raises ValueError if the class is registered already. For a dataclass `register_dataclass` is enough.
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _private_register_pytree_node(
        cls,
        flatten_fn,
        unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=to_dumpable_context,
        from_dumpable_context=from_dumpable_context,
        flatten_with_keys_fn=flatten_with_keys_fn,
    )


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **options) -> None:
    """What `register_pytree_node` was called. A class that is registered already is registered anew, with a warning."""
    _warn_deprecated(
        "`torch.utils._pytree._register_pytree_node` is deprecated. "
        "Please use `torch.utils._pytree.register_pytree_node` instead."
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        _warn_deprecated(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. "
            "Please use `to_dumpable_context` and `from_dumpable_context` instead."
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _private_register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls} is already registered as pytree node. Overwriting the previous registration.", stacklevel=2
        )
    if (to_dumpable_context is None) != (from_dumpable_context is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    name = NO_SERIALIZED_TYPE_NAME_FOUND if serialized_type_name is None else serialized_type_name
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name, to_dumpable_context, from_dumpable_context)
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _deregister_pytree_node(cls) -> None:
    """Objects of `cls` are leaves again."""
    del SUPPORTED_NODES[cls]
    del SERIALIZED_TYPE_TO_PYTHON_TYPE[SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name]
    CONSTANT_NODES.discard(cls)


def _with_keys(flatten_fn, keys_of):
    """A flatten_with_keys_fn: what `flatten_fn` gives, with the keys that `keys_of(children, context)` makes."""

    def flatten_with_keys(node):
        children, context = flatten_fn(node)
        return list(zip(keys_of(children, context), children, strict=True)), context

    return flatten_with_keys


def _indices(children, context):
    return map(SequenceKey, range(len(children)))


# --------------------------------------------------------------------------------------- dataclasses and constants


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None) -> None:
    """Let objects of a dataclass, or of a class that is made from its fields like one, be containers.

    field_names: the fields that are children, by default all that `__init__` takes. drop_field_names: those of a
    dataclass that are not. A field that is None belongs to the structure. Raises ValueError if the names are not the fields.
    """
    names = _names_of_fields(cls, field_names, drop_field_names or [])

    def flatten(obj):
        values = {name: getattr(obj, name) for name in names}
        present = {name: value for name, value in values.items() if value is not None}
        return list(present.values()), [list(present), [name for name in names if name not in present]]

    def unflatten(values, context):
        present, absent = context
        return cls(**dict(zip(present, values, strict=True)), **dict.fromkeys(absent))

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=_with_keys(flatten, lambda children, context: map(GetAttrKey, context[0])),
    )


def _names_of_fields(cls, names, dropped):
    if not dataclasses.is_dataclass(cls):
        if names is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to "
                f"initialize {cls}, as it is not a dataclass."
            )
        return names
    taken = [field.name for field in dataclasses.fields(cls) if field.init]
    if names is None:
        return taken  # in PyTorch, too, those to be dropped are only dropped from a list that is checked
    expected = set(taken).difference(dropped)
    if expected != set(names):
        raise ValueError(_difference(expected - set(names), set(names) - expected))
    return names


def _difference(missing, unexpected):
    message = "field_names does not include all dataclass fields.\n"
    if missing:
        message += (
            f"Missing fields in `field_names`: {missing}. If you want "
            "to include these fields in the pytree, please add them "
            "to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected:
        message += (
            f"Unexpected fields in `field_names`: {unexpected}. "
            "Please remove these fields, or add them to `drop_field_names`.\n"
        )
    return message


@dataclasses.dataclass(frozen=True, slots=True)
class ConstantNode:
    """The context of a constant: the object itself, compared by its own `__eq__`."""

    value: Any


def register_constant(cls) -> None:
    """Let objects of `cls` be a part of the structure: they have no leaves. Raises TypeError without `__eq__` and `__hash__`."""
    for name in ("__eq__", "__hash__"):
        if getattr(cls, name) in (None, object.__eq__):
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")

    def flatten(obj):
        return [], ConstantNode(obj)

    def unflatten(children, context):
        return context.value

    _private_register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten)
    CONSTANT_NODES.add(cls)


def is_constant_class(cls) -> bool:
    """Whether `register_constant` was called with `cls`."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec):
    return isinstance(spec._context, ConstantNode)


def _retrieve_constant(spec):
    """The object that the structure of a constant holds."""
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not correspond to a registered constant pytree")
    return tree_unflatten([], spec)


# ------------------------------------------------------------------------------------------- Python's containers


def _list_flatten(d):
    return d, None


def _list_unflatten(values, context):
    return list(values)


def _tuple_flatten(d):
    return list(d), None


def _tuple_unflatten(values, context):
    return tuple(values)


def _deque_flatten(d):
    return list(d), d.maxlen


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


def _dict_flatten(d):
    return list(d.values()), list(d.keys())


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_keys(children, context):
    return map(MappingKey, context)


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


def _defaultdict_flatten(d):
    return list(d.values()), [d.default_factory, list(d.keys())]


def _defaultdict_unflatten(values, context):
    default_factory, keys = context
    return defaultdict(default_factory, _dict_unflatten(values, keys))


def _defaultdict_keys(children, context):
    return map(MappingKey, context[1])


def _defaultdict_serialize(context):
    default_factory, keys = context
    return {
        "default_factory_module": default_factory.__module__,
        "default_factory_name": default_factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(dumpable_context):
    module = importlib.import_module(dumpable_context["default_factory_module"])
    return [getattr(module, dumpable_context["default_factory_name"]), dumpable_context["dict_context"]]


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_unflatten(values, context):
    return context(*values)


def _namedtuple_keys(children, context):
    return map(GetAttrKey, context._fields)


def _namedtuple_serialize(context):
    """The name of a class of named tuples. See Note [ What a node type is ]."""
    if context not in SUPPORTED_SERIALIZED_TYPES:
        why = "didn't register a serializated_type_name"
    elif SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        why = "couldn't find a serializated_type_name"
    else:
        return SUPPORTED_SERIALIZED_TYPES[context].serialized_type_name
    raise NotImplementedError(
        f"Can't serialize TreeSpec of namedtuple class {context} because we {why}. "
        "Please register using `_register_namedtuple`."
    )


def _namedtuple_deserialize(dumpable_context):
    if dumpable_context not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumpable_context} "
            "because we couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumpable_context]


def _register_namedtuple(cls, *, serialized_type_name) -> None:
    """Give a class of named tuples a name under which `treespec_dumps` can write it; containers they all are without that."""
    _private_register_pytree_node(
        cls,
        _namedtuple_flatten,
        _namedtuple_unflatten,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_serialize,
        from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=_with_keys(_namedtuple_flatten, _namedtuple_keys),
    )


_register_namedtuple(namedtuple, serialized_type_name="collections.namedtuple")
for _cls, _flatten, _unflatten, _keys_of, *_dumpable in (
    (list, _list_flatten, _list_unflatten, _indices),
    (tuple, _tuple_flatten, _tuple_unflatten, _indices),
    (deque, _deque_flatten, _deque_unflatten, _indices),
    (dict, _dict_flatten, _dict_unflatten, _dict_keys),
    (OrderedDict, _dict_flatten, _ordereddict_unflatten, _dict_keys),
    (
        defaultdict,
        _defaultdict_flatten,
        _defaultdict_unflatten,
        _defaultdict_keys,
        _defaultdict_serialize,
        _defaultdict_deserialize,
    ),
):
    _to_dumpable, _from_dumpable = _dumpable or (None, None)
    register_pytree_node(
        _cls,
        _flatten,
        _unflatten,
        serialized_type_name=f"{_cls.__module__}.{_cls.__name__}",
        to_dumpable_context=_to_dumpable,
        from_dumpable_context=_from_dumpable,
        flatten_with_keys_fn=_with_keys(_flatten, _keys_of),
    )


# ----------------------------------------------------------------------------------------------- TreeSpecs as text

DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL = 1


def treespec_dumps(treespec, protocol=None) -> str:
    """The structure as json: [protocol, {"type": …, "context": …, "children_spec": […]}]. There is one protocol, 1.

    Raises NotImplementedError for a class without a serialized_type_name, TypeError for a context that json cannot write.
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, _treespec_to_json(treespec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized) -> TreeSpec:
    """The structure that `treespec_dumps` wrote. Its classes must be registered, or NotImplementedError is raised."""
    protocol, json_schema = json.loads(serialized)
    _check_protocol(protocol)
    return _json_to_treespec(json_schema)


def _check_protocol(protocol):
    known = [DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL]
    if protocol not in known:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: {known}")


def _treespec_to_json(treespec):
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    if treespec.type not in SUPPORTED_SERIALIZED_TYPES:
        raise NotImplementedError(f"Serializing {treespec.type} in pytree is not registered.")
    definition = SUPPORTED_SERIALIZED_TYPES[treespec.type]
    if definition.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {treespec.type} found. "
            "Please update your _register_pytree_node call with a `serialized_type_name` kwarg."
        )
    return {
        "type": definition.serialized_type_name,
        "context": (definition.to_dumpable_context or _context_to_json)(treespec._context),
        "children_spec": [_treespec_to_json(child) for child in treespec._children],
    }


def _json_to_treespec(json_schema):
    name, context, children = (json_schema[key] for key in ("type", "context", "children_spec"))
    if name is None and context is None and not children:
        return _LEAF_SPEC
    if name not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {name} in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[name]
    read = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context or _context_from_json
    return TreeSpec(cls, read(context), [_json_to_treespec(child) for child in children])


def _context_to_json(context):
    try:
        return json.dumps(context, cls=EnumEncoder)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. "
            "Please make the context json dump-able, or register a custom serializer using _register_pytree_node."
        ) from error


def _context_from_json(text):
    try:
        return json.loads(text, object_hook=enum_object_hook)
    except TypeError as error:
        raise TypeError(
            "Unable to deserialize context. "
            "Please make the context json load-able, or register a custom serializer using _register_pytree_node."
        ) from error


class EnumEncoder(json.JSONEncoder):
    """Writes members of enumerations, too: where their class stands, and their name."""

    def default(self, obj):
        if not isinstance(obj, Enum):
            return super().default(obj)
        cls = type(obj)
        return {"__enum__": True, "fqn": f"{cls.__module__}:{cls.__qualname__}", "name": obj.name}


def enum_object_hook(obj):
    """The member of an enumeration that `EnumEncoder` wrote; any other dictionary as it is."""
    if "__enum__" not in obj:
        return obj
    module, _, path = obj["fqn"].partition(":")
    cls = functools.reduce(getattr, path.split("."), importlib.import_module(module))
    return cls[obj["name"]]


def treespec_pprint(treespec) -> str:
    """The structure as its pytree is printed, with stars for leaves: `{'a': [*, *], 'b': *}`."""
    return repr(tree_unflatten([_Asterisk("*")] * treespec.num_leaves, treespec))


class _Asterisk(str):
    __slots__ = ()

    def __repr__(self):
        return "*"


def pytree_to_str(treespec) -> str:
    _warn_deprecated("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.")
    return treespec_dumps(treespec)


def str_to_pytree(json) -> TreeSpec:
    _warn_deprecated("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.")
    return treespec_loads(json)


def _dict_flatten_with_keys(d):
    """How a dict is taken apart, for classes that are registered like one: [(key, value)], context."""
    return SUPPORTED_NODES[dict].flatten_with_keys_fn(d)
