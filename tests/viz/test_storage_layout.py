"""Views described by four numbers over a storage: every element must lie where the description says."""

import itertools

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from readtorch.viz.storage_layout import describe_views, number_text

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def element(described, view, index):
    """The text that the storage holds where the description puts this element."""
    storage = described["storages"][view["storage"]]
    at = view["offset"] + sum(i * s for i, s in zip(index, view["stride"]))
    return storage["values"][at * view["itemsize"] // storage["cell"]]


def assert_sound(described):
    for view in described["views"]:
        indices = itertools.product(*map(range, view["shape"]))
        for index, text in zip(indices, view["values"], strict=True):
            assert element(described, view, index) == text


@LIBRARIES
def test_views_of_one_storage(T):
    x = T.arange(12.0).reshape(3, 4)
    described = describe_views(
        [("x", x), ("t", x.t()), ("slice", x[1:, ::2]), ("row", x[0].expand(3, 4)), ("one", x[2, 3])]
    )
    assert len(described["storages"]) == 1
    assert [view["stride"] for view in described["views"]] == [[4, 1], [1, 4], [4, 2], [0, 1], []]
    assert [view["offset"] for view in described["views"]] == [0, 0, 4, 0, 11]
    assert [view["contiguous"] for view in described["views"]] == [True, False, False, False, True]
    assert_sound(described)


@LIBRARIES
def test_tensors_of_their_own_have_storages_of_their_own(T):
    described = describe_views({"a": T.zeros(2), "b": T.ones(2, dtype=T.int64)})
    found = [(s["nbytes"], s["cell"], s["dtype"]) for s in described["storages"]]
    assert found == [(8, 4, "float32"), (16, 8, "int64")]
    assert_sound(described)


def test_a_view_of_another_width_shares_the_cells_of_the_narrower():
    x = torch.tensor([1, 2], dtype=torch.int32)
    described = describe_views([("x", x), ("halves", x.view(torch.int16))])
    (storage,) = described["storages"]
    assert storage["cell"] == 2 and storage["values"] == ["1", "0", "2", "0"]


@given(st.data())
def test_any_strided_view(data):
    shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
    stride = data.draw(st.lists(st.integers(0, 4), min_size=len(shape), max_size=len(shape)))
    x = torch.arange(32).as_strided(shape, stride, data.draw(st.integers(0, 4)))
    assert_sound(describe_views(x))


def test_too_large_and_not_a_tensor():
    with pytest.raises(ValueError, match="at most 400"):
        describe_views(torch.zeros(21, 20))
    with pytest.raises(TypeError):
        describe_views([1, 2])


@pytest.mark.parametrize(
    "value, text",
    [
        (3, "3"),
        (True, "True"),
        (2.0, "2."),
        (0.1, "0.1"),
        (-1.5, "-1.5"),
        (1 / 3, "0.3333"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        (1e9, "1e+09"),
        (1 + 2j, "1.+2j"),
    ],
)
def test_numbers_fit_a_cell(value, text):
    assert number_text(value) == text
