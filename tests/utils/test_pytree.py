"""`utils._pytree` beside PyTorch's: random nests, what their structures print, and the errors."""

import copy
import dataclasses
import enum
import itertools
import operator
import pickle
import re
import time
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils import _pytree as theirs

import readtorch
from readtorch.utils import _pytree as ours

BOTH = (theirs, ours)


class Point(namedtuple("Point", "x y")):
    """A class of named tuples that is registered by name in both libraries."""


Pair = namedtuple("Pair", "left right")


class Colour(enum.Enum):
    RED = 1
    GREEN = 2


class Bag:
    """A registered class: its items are children, its label the context."""

    def __init__(self, items, label):
        self.items, self.label = items, label

    def __eq__(self, other):
        return type(other) is type(self) and (self.items, self.label) == (other.items, other.label)

    def __repr__(self):
        return f"{type(self).__name__}({self.items}, {self.label})"


class Sack(Bag):
    """As Bag, without keys and without a name for json."""


@dataclasses.dataclass
class Layer:
    weight: object
    bias: object = None
    name: str = "layer"


@dataclasses.dataclass(frozen=True)
class Config:
    norm: str


class DerivedDict(dict):
    """No container: only the exact types are."""


def register(library):
    def flatten(bag):
        return list(bag.items), bag.label

    def with_keys(bag):
        return [(library.SequenceKey(i), item) for i, item in enumerate(bag.items)], bag.label

    library.register_pytree_node(
        Bag,
        flatten,
        lambda items, label: Bag(list(items), label),
        serialized_type_name="Bag",
        flatten_with_keys_fn=with_keys,
    )
    library.register_pytree_node(Sack, flatten, lambda items, label: Sack(list(items), label))
    library.register_dataclass(
        Layer, field_names=["weight", "bias"], drop_field_names=["name"], serialized_type_name="Layer"
    )
    library.register_constant(Config)
    library._register_namedtuple(Point, serialized_type_name="Point")


@pytest.fixture(autouse=True, scope="module")
def registered():
    for library in BOTH:
        register(library)
    yield
    for library, cls in itertools.product(BOTH, (Bag, Layer, Point)):
        library._deregister_pytree_node(cls)
    for library in BOTH:  # classes without a name share one entry
        for cls in (Sack, Config):
            del library.SUPPORTED_NODES[cls], library.SUPPORTED_SERIALIZED_TYPES[cls]
        library.CONSTANT_NODES.discard(Config)


# -------------------------------------------------------------------------------------------------------- the nests

LEAVES = st.one_of(st.integers(-9, 9), st.none(), st.sampled_from(["text", 0.5, True, DerivedDict(a=1)]))
KEYS = st.one_of(st.sampled_from("abcd"), st.integers(0, 3))
FACTORIES = st.sampled_from([list, int, dict])


@st.composite
def containers(draw, children):
    dicts = st.dictionaries(KEYS, children, max_size=3)
    lists = st.lists(children, max_size=3)
    kinds = (
        lists,
        lists.map(tuple),
        dicts,
        dicts.map(OrderedDict),
        st.builds(defaultdict, FACTORIES, dicts),
        st.builds(deque, lists, st.sampled_from([None, 3, 5])),
        st.builds(Pair, children, children),
        st.builds(Point, children, children),
        st.builds(Bag, lists, st.sampled_from(["x", "y", Colour.RED])),
        st.builds(Sack, lists, st.sampled_from(["x", "y"])),
        st.builds(Layer, children, children),
        st.builds(Config, st.sampled_from(["l1", "l2"])),
    )
    return draw(draw(st.sampled_from(kinds)))


NESTS = st.recursive(LEAVES, containers, max_leaves=12)


def outcome(function, *arguments, **options):
    """What comes out, in words that both libraries have: values, structures as they print, errors, warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(function(*arguments, **options))
        except Exception as error:
            result = type(error), str(error)
    return result, [(each.category, str(each.message), each.filename) for each in caught]


def plain(value):
    if isinstance(value, (theirs.TreeSpec, ours.TreeSpec)):
        counts = value.num_nodes, value.num_leaves, value.num_children
        return repr(value), counts, value.is_leaf(), [plain(child) for child in value.children()]
    if type(value).__module__.endswith("utils._pytree"):  # a key
        return repr(value), str(value)
    return [plain(each) for each in value] if type(value) in (tuple, list) else value


def same(ask):
    """`ask(library)` has one outcome."""
    expected = outcome(ask, theirs)
    assert outcome(ask, ours) == expected
    return expected[0]


def is_pair(node):
    return isinstance(node, (Pair, deque)) or node == []


IS_LEAF = st.sampled_from([None, is_pair, lambda node: type(node) is dict, lambda node: node is None])


@given(NESTS, IS_LEAF)
def test_flatten_and_back(nest, is_leaf):
    leaves, spec = ours.tree_flatten(nest, is_leaf)
    same(lambda t: t.tree_flatten(nest, is_leaf))
    for name in ("tree_leaves", "tree_structure", "tree_is_leaf", "tree_leaves_with_path", "tree_flatten_with_path"):
        same(lambda t: getattr(t, name)(nest, is_leaf=is_leaf))
    same(lambda t: list(t.tree_iter(nest, is_leaf=is_leaf)))
    again = ours.tree_unflatten(leaves, spec)
    assert again == nest and type(again) is type(nest)
    assert ours.tree_unflatten(spec, leaves) == nest
    same(lambda t: t.tree_unflatten([*leaves, 1], t.tree_structure(nest, is_leaf)))
    same(lambda t: t.tree_unflatten(iter(range(len(leaves))), t.tree_structure(nest, is_leaf)))


@given(NESTS, IS_LEAF)
def test_paths(nest, is_leaf):
    same(lambda t: [t.keystr(path) for path, _ in t.tree_leaves_with_path(nest, is_leaf)])
    same(lambda t: [t.key_get(nest, path) for path, _ in t.tree_leaves_with_path(nest, is_leaf)])
    same(lambda t: t.tree_map_with_path(lambda path, x: (t.keystr(path), x), nest, is_leaf=is_leaf))
    same(lambda t: t.tree_map_with_path(lambda path, x, y: (x, y), nest, nest, is_leaf=is_leaf))


@given(NESTS)
def test_structures_as_text(nest):
    same(lambda t: t.treespec_dumps(t.tree_structure(nest)))
    same(lambda t: t.treespec_loads(t.treespec_dumps(t.tree_structure(nest))))
    same(lambda t: t.treespec_pprint(t.tree_structure(nest)))
    same(lambda t: t.pytree_to_str(t.tree_structure(nest)))


@given(NESTS, NESTS)
def test_equality_and_hash(first, second):
    same(lambda t: t.tree_structure(first) == t.tree_structure(second))
    same(lambda t: t.tree_structure(first) == t.tree_structure(copy.deepcopy(first)))
    same(lambda t: hash(t.tree_structure(first)) == hash(t.tree_structure(copy.deepcopy(first))))
    spec = ours.tree_structure(first)
    assert copy.deepcopy(spec) == spec


@given(NESTS, NESTS)
def test_two_unrelated_nests(first, second):
    same(lambda t: t.tree_map(lambda x, y: (x, y), first, second))
    same(lambda t: t._broadcast_to_and_flatten(first, t.tree_structure(second)))
    same(lambda t: t.tree_structure(first).flatten_up_to(second))


@st.composite
def nest_and_relative(draw):
    """A nest, and one like it: a subtree in place of leaves, another dictionary type, now and then something that is wrong."""
    nest = draw(NESTS)
    return nest, changed(nest, draw)


def changed(nest, draw):
    how = draw(st.sampled_from(["go on", "go on", "go on", "go on", "subtree", "another dict", "lose one"]))
    if ours.tree_is_leaf(nest) or how == "subtree":
        return draw(NESTS) if how == "subtree" else nest
    if isinstance(nest, dict):
        items = [(key, changed(value, draw)) for key, value in nest.items()][how == "lose one" :]
        if how == "another dict":
            return draw(st.sampled_from([dict, OrderedDict, lambda d: defaultdict(str, d)]))(dict(reversed(items)))
        return ours.tree_structure(nest).type(*[int] * isinstance(nest, defaultdict), items)
    children, context = ours.SUPPORTED_NODES[ours._get_node_type(nest)].flatten_fn(nest)
    children = [changed(child, draw) for child in children]
    if type(nest) in (list, tuple):
        return type(nest)(children[how == "lose one" :])
    return ours.SUPPORTED_NODES[ours._get_node_type(nest)].unflatten_fn(children, context)


@given(nest_and_relative(), IS_LEAF)
def test_related_nests(nests, is_leaf):
    nest, relative = nests
    same(lambda t: t.tree_map(lambda x, y: (x, y), nest, relative, is_leaf=is_leaf))
    same(lambda t: t.tree_map(lambda *xs: xs, nest, relative, nest, is_leaf=is_leaf))
    same(lambda t: t._broadcast_to_and_flatten(nest, t.tree_structure(relative), is_leaf))
    seen = {t: [] for t in BOTH}
    same(lambda t: t.tree_map_(lambda *xs: seen[t].append(xs), nest, relative, is_leaf=is_leaf) is nest)
    assert seen[theirs] == seen[ours]


def is_small(x):
    return type(x) is int and x < 5


@given(NESTS, st.sampled_from([int, (int, str), int | None, is_small, "no type", (int, "no type")]), IS_LEAF)
def test_only_some_leaves(nest, which, is_leaf):
    same(lambda t: t.tree_map_only(which, lambda x: [x], nest, is_leaf))
    same(lambda t: t.tree_map_only_(which, lambda x: [x], nest, is_leaf=is_leaf) is nest)
    for name in ("tree_all", "tree_any"):
        same(lambda t: getattr(t, name)(is_small, nest, is_leaf))
        same(lambda t: getattr(t, f"{name}_only")(which, is_small, nest, is_leaf))
    same(lambda t: t.arg_tree_leaves(nest, 1, other=nest))


# ------------------------------------------------------------------------------------------- single calls, refusals

MISMATCHES = [
    ([1, 2], [1]),
    ([1], (1,)),
    ({"a": 1}, {"b": 1}),
    ({"a": 1, "b": 2}, {"a": 1, "c": 2}),
    ({"a": 1}, [1]),
    (OrderedDict(a=1, b=2), {"b": 3, "a": 4}),
    (defaultdict(int, a=1), {"a": 3}),
    (Pair(1, 2), Point(1, 2)),
    (Pair(1, 2), (1, 2)),
    (deque([1], 2), deque([1], 3)),
    (Bag([1], "x"), Bag([1], "y")),
    (Bag([1], "x"), Bag([1, 2], "x")),
    (Bag([1], "x"), [1]),
    ([1], Bag([1], "x")),
    (Config("l1"), Config("l2")),
    (Config("l1"), Config("l1")),
    ([[1, 2], 3], [1, 2]),
    ([1, 2], [[1, 2], 3]),
]


@pytest.mark.parametrize("first, second", MISMATCHES, ids=repr)
def test_structures_that_do_not_fit(first, second):
    same(lambda t: t.tree_map(lambda x, y: (x, y), first, second))


class OfNoEquality:
    pass


class OfNoHash:
    def __eq__(self, other):
        return True


class NoDataclass:
    def __init__(self, a):
        self.a = a


class Unknown:
    pass


def nothing(*arguments):
    return [], None


SINGLE_CALLS = {
    "registered twice": lambda t: t.register_pytree_node(list, nothing, nothing),
    "one half of json": lambda t: t.register_pytree_node(int, nothing, nothing, to_dumpable_context=nothing),
    "dataclass, missing": lambda t: t.register_dataclass(Layer, field_names=["weight", "name"]),
    "dataclass, unexpected": lambda t: t.register_dataclass(Layer, field_names=["weight", "bias", "name", "more"]),
    "no dataclass": lambda t: t.register_dataclass(NoDataclass),
    "constant without __eq__": lambda t: t.register_constant(OfNoEquality),
    "constant without __hash__": lambda t: t.register_constant(OfNoHash),
    "constant": lambda t: (t.is_constant_class(Config), t.is_constant_class(Bag), t.is_constant_class(3)),
    "held constant": lambda t: t._retrieve_constant(t.tree_structure(Config("l1"))),
    "no constant": lambda t: t._retrieve_constant(t.tree_structure([1])),
    "a leaf's context": lambda t: t.TreeSpec(None, 1, []),
    "a leaf's children": lambda t: t.TreeSpec(None, None, [t.treespec_leaf()]),
    "LeafSpec()": lambda t: t.LeafSpec(),
    "a leaf by hand": lambda t: t.TreeSpec(None, None, []) == t.treespec_leaf(),
    "children_specs": lambda t: t.tree_structure([1, 2]).children_specs,
    "child": lambda t: t.tree_structure([1, (2,)]).child(1),
    "context": lambda t: t.tree_structure({"a": 1}).context,
    "frozen": lambda t: setattr(t.tree_structure([1]), "type", tuple),
    "specs of a tuple": lambda t: t.treespec_tuple([t.treespec_leaf(), t.tree_structure([1])]),
    "a tuple of others": lambda t: t.treespec_tuple([1]),
    "specs of a dict": lambda t: t.treespec_dict({"a": t.treespec_leaf()}, b=t.tree_structure([1])),
    "a dict of others": lambda t: t.treespec_dict(a=1),
    "unflatten with no spec": lambda t: t.tree_unflatten([1], [1]),
    "dumps of no spec": lambda t: t.treespec_dumps([1]),
    "dumps, protocol": lambda t: t.treespec_dumps(t.tree_structure([1]), 2),
    "dumps, protocol 1": lambda t: t.treespec_dumps(t.tree_structure([1]), 1),
    "loads, protocol": lambda t: t.treespec_loads("[7, {}]"),
    "loads, unknown": lambda t: t.treespec_loads('[1, {"type": "Nobody", "context": null, "children_spec": []}]'),
    "loads, unknown named tuple": lambda t: t.treespec_loads(
        '[1, {"type": "collections.namedtuple", "context": "Nobody", "children_spec": []}]'
    ),
    "str_to_pytree": lambda t: t.str_to_pytree(t.treespec_dumps(t.tree_structure({"a": [1]}))),
    "a factory that is None": lambda t: t.treespec_dumps(t.tree_structure(defaultdict(None))),
    "keys that json cannot write": lambda t: t.treespec_dumps(t.tree_structure({Unknown: 1})),
    "a type that is gone": lambda t: t.treespec_dumps(t.TreeSpec(Unknown, None, [])),
    "no predicate": lambda t: t.map_only(3),
    "map_only": lambda t: list(map(t.map_only(int)(operator.neg), [1, "a", 2.0])),
    "_is_leaf": lambda t: t._is_leaf([1]),
    "_is_namedtuple_instance": lambda t: t._is_namedtuple_instance(Pair(1, 2)),
    "__all__": lambda t: sorted(t.__all__),
    "broadcast": lambda t: t._broadcast_to_and_flatten((0, None), t.tree_structure(([1, 2], {"a": 3}))),
    "broadcast, too deep": lambda t: t._broadcast_to_and_flatten([[0]], t.tree_structure([1])),
    "keys": lambda t: (t.SequenceKey(1) == t.SequenceKey(1), t.MappingKey("a") == t.MappingKey("b"), t.GetAttrKey("a")),
    "key of another kind": lambda t: t.key_get([1], (t.MappingKey("a"),)),
}


@pytest.mark.parametrize("name", SINGLE_CALLS)
def test_single_calls(name):
    ask = SINGLE_CALLS[name]
    (expected, noted), (found, note) = outcome(ask, theirs), outcome(ask, ours)
    assert found == expected or same_but_for_order(found, expected)
    assert note == noted
    for library in BOTH:  # PyTorch's registers before it refuses
        library.SUPPORTED_NODES.pop(int, None)


def same_but_for_order(found, expected):
    """Messages print sets of names."""
    return found[0] is expected[0] and sorted(re.findall(r"\w+", found[1])) == sorted(re.findall(r"\w+", expected[1]))


def test_deprecated_registration():
    def go(t, *more):
        t._register_pytree_node(Unknown, lambda x: ([1], None), lambda xs, _: list(xs), *more)
        found = t.tree_flatten(Unknown())
        del t.SUPPORTED_NODES[Unknown], t.SUPPORTED_SERIALIZED_TYPES[Unknown]
        return found

    same(go)
    expected, noted = outcome(go, theirs, nothing, nothing)
    found, note = outcome(go, ours, nothing, nothing)
    assert found == expected  # PyTorch's second warning names a file of typing_extensions
    assert [each[:2] for each in note] == [each[:2] for each in noted]


def test_registering_anew_warns():
    def go(t):
        t.register_constant(Config)

    (_, noted), (_, note) = outcome(go, theirs), outcome(go, ours)
    assert [each[:2] for each in note] == [each[:2] for each in noted] != []


def test_dataclass_without_names():
    @dataclasses.dataclass
    class Whole:
        a: object
        b: object = None
        c: int = dataclasses.field(default=0, init=False)

    def go(t):
        t.register_dataclass(Whole, serialized_type_name="Whole")
        spec = t.tree_structure(Whole([1], None))
        found = spec, t.treespec_dumps(spec), t.tree_map(str, Whole(1, 2)), t.tree_leaves_with_path(Whole(1, {"x": 2}))
        t._deregister_pytree_node(Whole)
        return found, t.tree_is_leaf(Whole(1))

    same(go)


@pytest.mark.parametrize(
    "thing", [1, (1,), Pair(1, 2), Pair, time.gmtime(0), time.struct_time, tuple, dict, DerivedDict()], ids=repr
)
def test_kinds_of_tuples(thing):
    for kind, end in itertools.product(("namedtuple", "structseq"), ("", "_class", "_instance")):
        same(lambda t: getattr(t, f"is_{kind}{end}")(thing))


def test_structures_are_pickled():
    spec = ours.tree_structure([1, {"a": (2, None)}])
    again = pickle.loads(pickle.dumps(spec))
    assert again == spec and again.unflatten([1, 2, 3]) == [1, {"a": (2, 3)}]


# ------------------------------------------------------------------------------------------------ named results


def test_return_types_are_containers():
    def go(t, library):
        result = library.tensor([[1.0, 4.0], [3.0, 2.0]]).max(0)
        leaves, spec = t.tree_flatten(result)
        doubled = t.tree_map(lambda x: x * 2, result)
        kinds = t.is_structseq(result), t.is_structseq_class(type(result)), t.is_namedtuple(result)
        paths = [(t.keystr(path), leaf.tolist()) for path, leaf in t.tree_leaves_with_path(result)]
        return plain(spec), [x.tolist() for x in leaves], repr(doubled), type(doubled) is type(result), kinds, paths

    assert go(ours, readtorch) == go(theirs, torch)


RETURN_TYPE = {
    "fields": lambda x: (x.values, x.indices, x.n_fields, x.n_sequence_fields, x.n_unnamed_fields, x.__match_args__),
    "no named tuple": lambda x: [hasattr(x, name) for name in ("_fields", "_make", "_asdict", "_replace")],
    "bases": lambda x: type(x).__bases__,
    "derived": lambda x: type("Derived", (type(x),), {}),
    "repr": repr,
    "too many": lambda x: type(x)((1, 2, 3)),
    "a slice": lambda x: x[:1] + (3,),
    "a copy": lambda x: (copy.deepcopy(x), type(copy.copy(x)) is type(x)),
    "a pickle": lambda x: pickle.loads(pickle.dumps(x)) == x,
    "dictionary": lambda x: type(x)((1, 2), {}),
}


@pytest.mark.parametrize("name", RETURN_TYPE)
def test_return_types(name):
    expected, found = (outcome(RETURN_TYPE[name], library.return_types.max((1, 2))) for library in (torch, readtorch))
    assert found == expected


def test_all_return_types():
    assert sorted(readtorch.return_types.__all__) == sorted(torch.return_types.__all__)
    for name in torch.return_types.__all__[2:]:
        expected, found = (getattr(library.return_types, name) for library in (torch, readtorch))
        assert found.__match_args__ == expected.__match_args__


OUT_CALLS = {
    "max": lambda t, outs: t.max(t.eye(3), 0, out=outs("float32", "int64")),
    "max, meta": lambda t, outs: t.max(t.eye(3).to("meta"), 0, out=[o.to("meta") for o in outs("float32", "int64")]),
    "sort": lambda t, outs: t.sort(t.eye(3), out=outs("float32", "int64")),
    "cummax": lambda t, outs: t.cummax(t.eye(3), 0, out=outs("float32", "int64")),
    "aminmax": lambda t, outs: t.aminmax(t.eye(3), dim=0, out=outs("float32", "float32")),
    "frexp": lambda t, outs: t.frexp(t.eye(3), out=outs("float32", "int32")),
    "linalg.qr": lambda t, outs: t.linalg.qr(t.eye(3), out=outs("float32", "float32")),
    "linalg.inv_ex": lambda t, outs: t.linalg.inv_ex(t.eye(3), out=outs("float32", "int32")),
    "linalg.slogdet": lambda t, outs: t.linalg.slogdet(t.eye(3), out=outs("float32", "float32")),
    "slogdet": lambda t, outs: t.slogdet(t.eye(3)),
}


@pytest.mark.parametrize("name", OUT_CALLS)
def test_results_of_out_forms(name):
    def go(library):
        result = OUT_CALLS[name](
            library, lambda *kinds: tuple(library.empty(0, dtype=getattr(library, k)) for k in kinds)
        )
        return type(result).__name__, result.__match_args__

    assert go(readtorch) == go(torch)
