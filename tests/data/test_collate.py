"""default_collate, default_convert, the registry and the fetchers, next to the reference."""

import collections
import types

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import readtorch.utils.data  # noqa: F401
from tests.programs import same

Point = collections.namedtuple("Point", "x y")


class Labelled(dict):
    """A mapping with something beside its items."""

    label = None


class Frozen(collections.abc.Mapping):
    """A mapping that cannot be changed but made of a dict."""

    def __init__(self, items):
        self.items_ = dict(items)

    def __getitem__(self, key):
        return self.items_[key]

    def __iter__(self):
        return iter(self.items_)

    def __len__(self):
        return len(self.items_)

    def __repr__(self):
        return f"Frozen({self.items_})"


class Stubborn(Frozen):
    """Not even that: made of two things."""

    def __init__(self, items, second):
        super().__init__(items)


class Letters(collections.UserList):
    """A sequence that can be changed, with a class of its own."""

    def __repr__(self):
        return f"Letters({self.data})"


def leaf_of(kind, number, T):
    leaves = {
        "int": int(number),
        "float": float(number),
        "bool": number > 0,
        "str": f"s{number}",
        "bytes": b"%d" % number,
        "tensor": T.full((2,), float(number)),
        "integers": T.tensor([[number]], dtype=T.int16),
        "array": np.full((2, 1), number, np.float32),
        "scalar": np.float32(number),
        "whole": np.int8(number),
        "truth": np.bool_(number > 0),
        "double": np.float64(number),
        "empty": T.zeros(0, 3),
    }
    return leaves[kind]


def built(shape, number, T):
    """The sample of a shape: a name of a leaf, or a container of shapes."""
    kind, inner = shape
    if kind == "leaf":
        return leaf_of(inner, number, T)
    parts = [built(part, number + i, T) for i, part in enumerate(inner)]
    makers = {
        "list": list,
        "tuple": tuple,
        "letters": Letters,
        "dict": lambda parts: {f"k{i}": part for i, part in enumerate(parts)},
        "frozen": lambda parts: Frozen(enumerate(parts)),
        "ordered": lambda parts: collections.OrderedDict(enumerate(parts)),
        "point": lambda parts: Point(parts[0], parts[-1]) if parts else Point(1, 2),
    }
    return makers[kind](parts)


LEAVES = st.tuples(
    st.just("leaf"),
    st.sampled_from(
        [
            "int",
            "float",
            "bool",
            "str",
            "bytes",
            "tensor",
            "integers",
            "array",
            "scalar",
            "whole",
            "truth",
            "double",
            "empty",
        ]
    ),
)
SHAPES = st.recursive(
    LEAVES,
    lambda inner: st.tuples(
        st.sampled_from(["list", "tuple", "letters", "dict", "frozen", "ordered", "point"]), st.lists(inner, max_size=3)
    ),
    max_leaves=6,
)


@given(SHAPES, st.integers(1, 4))
def test_collate_anything(shape, batch_size):
    def program(T, show):
        show(T.utils.data.default_collate([built(shape, number, T) for number in range(batch_size)]))

    same(program)


@given(SHAPES)
def test_convert_anything(shape):
    def program(T, show):
        show(T.utils.data.default_convert(built(shape, 3, T)))

    same(program)


def test_types_of_containers():
    def program(T, show):
        D = T.utils.data
        labelled = Labelled(a=1.0)
        labelled.label = "kept"
        for function in (lambda v: D.default_collate([v, v]), D.default_convert):
            made = function(labelled)
            show(type(made).__name__, made.label, made)
            show(function(types.MappingProxyType({"a": np.ones(2)})))
            show(function(Stubborn({"a": 1.5}, None)))
            show(function(range(3)))
            show(function(collections.deque([1, 2])), function([]), function({}), function(()))
            show(function(Point(np.int64(1), "one")))

    same(program)


def test_convert_leaves_alone():
    def program(T, show):
        convert = T.utils.data.default_convert
        tensor, letters, array = T.ones(2), np.array(["a", "b"]), np.zeros(2)
        show(convert(tensor) is tensor, convert(letters) is letters)
        show(convert("text"), convert(b"b"), convert(3))
        show(convert(None), convert({1}), convert(np.array([{}])), convert(np.str_("s")))
        convert(array)[0] = 5
        show(array)

    same(program)


def test_what_collate_refuses():
    def program(T, show):
        collate = T.utils.data.default_collate
        no_batches = [
            [None],
            [{1, 2}],
            [object()],
            [np.array(["a"])],
            [np.array([{}])],
            [[1, 2], [3]],
            [(1,), ()],
            [{"a": None}],
            [{"a": 1}, {"b": 1}],
            [T.ones(2), T.ones(3)],
            [np.ones(2), np.ones(3)],
            [],
            [1, "a"],
            [[None]],
            [T.eye(2).to_sparse()] * 2,
            [{"a": T.ones(2).to_sparse()}],
            [np.datetime64("2020-01-01")],
            [np.str_("a")],
            [1j],
        ]
        for batch in no_batches:
            show.error(lambda: show(collate(batch)))

    same(program)


def test_numbers_become_tensors_of_these_types():
    def program(T, show):
        for value in (1, 1.5, True, np.float16(1), np.uint8(3), np.bool_(True), np.float64(2), np.int32(1)):
            made = T.utils.data.default_collate([value, value])
            show(made.dtype, made.shape)

    same(program)


def test_collate_keeps_gradients_and_promotes():
    def program(T, show):
        a, b = T.ones(2, requires_grad=True), T.ones(2, requires_grad=True)
        stacked = T.utils.data.default_collate([a, b])
        stacked.sum().backward()
        show(type(stacked.grad_fn).__name__, a.grad)
        show(T.utils.data.default_collate([T.ones(1, dtype=T.int32), T.ones(1)]).dtype)

    same(program)


def test_batches_are_row_major():
    def program(T, show):
        column_major = T.arange(6.0).view(2, 3).t()
        for sample in (column_major, T.ones(2, 1, 3).expand(2, 4, 3), T.ones(0, 3).t(), T.arange(8)[::2]):
            made = T.utils.data.default_collate([sample] * 3)
            show(made.stride(), made)

    same(program)


def test_registry():
    class Word(str):
        pass

    def program(T, show):
        module = T.utils.data._utils.collate
        calls = []

        def shout(batch, *, collate_fn_map=None):
            calls.append(sorted(str(key) for key in collate_fn_map))
            return "!".join(batch)

        show(module.collate([["a", Word("b")], ["c", Word("d")]], collate_fn_map={str: shout}), calls)
        own = {int: None, str: shout, Word: lambda batch, collate_fn_map: 1}
        show(module.collate([Word("b")], collate_fn_map=own))
        show.error(lambda: module.collate([1, 2]))
        show.error(lambda: module.collate([1, 2], collate_fn_map={}))
        show.error(lambda: module.collate(["ab", "cd"], collate_fn_map={int: shout}))
        show([key if isinstance(key, tuple) else key.__name__ for key in module.default_collate_fn_map])
        show([f.__name__ for f in module.default_collate_fn_map.values()])
        module.default_collate_fn_map[complex] = lambda batch, *, collate_fn_map: T.tensor(batch)
        try:
            show(T.utils.data.default_collate([(1j, 2j), (3j, 4j)]))
        finally:
            del module.default_collate_fn_map[complex]

    same(program)


class Squares:
    def __getitem__(self, index):
        return index * index


class Whole(Squares):
    def __getitems__(self, indices):
        return [-index for index in indices]


class Switched(Squares):
    __getitems__ = None


@pytest.mark.parametrize("dataset", [Squares(), Whole(), Switched()])
def test_fetch_of_a_map(dataset):
    def program(T, show):
        fetcher = T.utils.data._utils.fetch._MapDatasetFetcher
        show(fetcher(dataset, True, tuple, False).fetch([3, 1]), fetcher(dataset, False, str, False).fetch(4))

    same(program)


@given(st.integers(0, 7), st.integers(1, 4), st.booleans(), st.booleans())
def test_fetch_of_a_stream(length, batch_size, drop_last, auto_collation):
    def program(T, show):
        make = T.utils.data._utils.fetch._IterableDatasetFetcher
        fetcher = make(range(length), auto_collation, repr, drop_last)
        for _ in range(length + 2):
            show.error(lambda: show(fetcher.fetch([None] * batch_size), fetcher.ended))

    same(program)


def test_fetch_of_neither():
    def program(T, show):
        show.error(lambda: T.utils.data._utils.fetch._BaseDatasetFetcher([], True, list, False).fetch([0]))

    same(program)
