"""Tensors that exist, in the stride figure: their numbers, their views, and the texts of their storage's cells."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from readtorch import viz
from readtorch.viz.figures.strides import FIGURE
from readtorch.viz.storage_layout import describe_views, number_text

LIBRARIES = pytest.mark.parametrize("T", [torch, readtorch], ids=["torch", "readtorch"])


def shown(start, extra):
    """The texts that the figure shows of a view, in the order of its indices."""
    values = FIGURE.result(**start)["stages"][-1]["values"]
    return [extra["values"][value] for value in values]


@LIBRARIES
def test_views_of_one_storage(T):
    x = T.arange(12.0).reshape(3, 4)
    views = {"x": x, "t": x.t(), "slice": x[1:, ::2], "row": x[0].expand(3, 4), "one": x[2, 3]}
    start, extra = describe_views(views)
    assert start == {"count": 12, "dtype": "float32", "program": "x", "sizes": [3, 4], "strides": [4, 1], "offset": 0}
    assert [numbers["strides"] for _, numbers in extra["views"]] == [[4, 1], [1, 4], [4, 2], [0, 1], []]
    for name, numbers in extra["views"]:
        assert shown({**start, **numbers}, extra) == [number_text(v) for v in views[name].reshape(-1).tolist()]


@given(st.data())
def test_any_strided_view(data):
    shape = data.draw(st.lists(st.integers(0, 3), max_size=3))
    stride = data.draw(st.lists(st.integers(0, 4), min_size=len(shape), max_size=len(shape)))
    x = torch.arange(32).as_strided(shape, stride, data.draw(st.integers(0, 4)))
    assert shown(*describe_views(x)) == [str(value) for value in x.reshape(-1).tolist()]


def test_what_the_figure_does_not_show():
    with pytest.raises(ValueError, match="b is of another storage or dtype than a"):
        describe_views({"a": torch.zeros(2), "b": torch.zeros(2)})
    with pytest.raises(ValueError, match="another storage or dtype"):
        describe_views({"x": (x := torch.zeros(2)), "bytes": x.view(torch.uint8)})
    with pytest.raises(ValueError, match="draws 100 elements; this tensor has 110"):
        viz.strides(torch.zeros(11, 10))
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
