"""The layered drawing: what holds of any graph, and a few whose best drawing is known."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from readtorch.viz._base import read_static
from readtorch.viz.graph_layout import GAP, isotonic_fit, layered_layout


@st.composite
def graphs(draw):
    count = draw(st.integers(1, 12))
    pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    return [("n" * draw(st.integers(1, 20)),) for _ in range(count)], edges


@given(graphs())
def test_edges_go_down_and_boxes_keep_their_distance(graph):
    labels, edges = graph
    drawing = layered_layout(labels, edges)
    for a, b in edges:
        assert drawing.boxes[a][4] < drawing.boxes[b][4]
    rows = {}
    for x, y, width, height, layer in drawing.boxes:
        assert width / 2 <= x <= drawing.width - width / 2 and 0 < y < drawing.height
        rows.setdefault(layer, []).append((x - width / 2, x + width / 2))
    for row in rows.values():
        row.sort()
        assert all(right + GAP <= left + 0.3 for (_, right), (left, _) in zip(row, row[1:]))


@given(graphs())
def test_every_edge_is_drawn_from_box_to_box(graph):
    labels, edges = graph
    drawing = layered_layout(labels, edges)
    for (a, b), path in zip(edges, drawing.paths, strict=True):
        (xa, ya, _, ha, la), (xb, yb, _, hb, lb) = drawing.boxes[a], drawing.boxes[b]
        assert path[0] == [xa, ya + ha / 2] and path[-1] == [xb, yb - hb / 2]
        assert len(path) == lb - la + 1


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="cycle"):
        layered_layout([("a",), ("b",)], [(0, 1), (1, 0)])


def test_crossings_that_can_be_avoided_are():
    # two chains and the leaves of each, given in an order that crosses
    edges = [(0, 2), (1, 3), (2, 5), (3, 4), (2, 7), (3, 6)]
    assert layered_layout([("node",)] * 8, edges).crossings == 0


def test_a_chain_stands_straight():
    drawing = layered_layout([("first",), ("a longer name",), ("x",)], [(0, 1), (1, 2)])
    assert len({box[0] for box in drawing.boxes}) == 1


@given(st.lists(st.tuples(st.floats(-100, 100), st.floats(0.1, 10)), min_size=1, max_size=8))
def test_isotonic_fit_never_falls_and_keeps_the_weighted_mean(pairs):
    values, weights = [v for v, _ in pairs], [w for _, w in pairs]
    fitted = isotonic_fit(values, weights)
    assert all(a <= b + 1e-9 for a, b in zip(fitted, fitted[1:]))
    total = sum(v * w for v, w in pairs)
    assert sum(f * w for f, w in zip(fitted, weights)) == pytest.approx(total, abs=1e-6)


@pytest.mark.browser
@pytest.mark.slow
def test_the_page_draws_the_same_layers(browser):
    """static/_layered.js is this module in JavaScript."""
    source = random.Random(3)
    graphs = []
    for _ in range(40):
        count = source.randint(1, 24)
        labels = [["x" * source.randint(1, 20)] * source.randint(1, 2) for _ in range(count)]
        pairs = [(a, b) for a in range(count) for b in range(a + 1, count)]
        graphs.append([labels, source.sample(pairs, min(len(pairs), source.randint(0, count + 6)))])
    page = browser.new_page()
    drawn = page.evaluate(
        f"graphs => {{ {read_static('_layered.js')}; return graphs.map(g => layeredLayout(...g)); }}", graphs
    )
    page.close()
    for (labels, edges), theirs in zip(graphs, drawn):
        ours = layered_layout([tuple(lines) for lines in labels], edges)
        assert [box["layer"] for box in theirs["boxes"]] == [box[4] for box in ours.boxes]
        for box, (x, y, w, h, _) in zip(theirs["boxes"], ours.boxes):
            assert [box["x"], box["y"], box["w"], box["h"]] == pytest.approx([x, y, w, h], abs=0.06)
        for one, other in zip(theirs["paths"], ours.paths):
            assert one == [pytest.approx(point, abs=0.06) for point in other]
