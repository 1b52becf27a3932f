"""`viz.plot`: SVG that takes the page's colours, keeps its text, and has a sentence for who cannot see it."""

import re
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("matplotlib")
from readtorch import viz


def draw(axes):
    axes.plot([1, 2, 3], label="a line")
    axes.plot([3, 2, 1], label="another")
    axes.set_xlabel("layer")
    axes.legend()


def svg_of(alt="Two lines & a crossing"):
    return ElementTree.fromstring(viz.plot(draw, alt).svg)


def test_is_an_image_with_a_description():
    svg = svg_of()
    assert svg.attrib["role"] == "img" and svg.attrib["aria-label"] == "Two lines & a crossing"


def test_takes_the_colour_of_the_text():
    text = viz.plot(draw, "lines").svg
    assert "currentColor" in text and not re.search(r"#000000|#ffffff|black|white", text)


def test_text_stays_text():
    texts = ["".join(node.itertext()).strip() for node in svg_of().iter("{http://www.w3.org/2000/svg}text")]
    assert {"layer", "a line", "another"} <= set(texts)


def test_lines_differ_without_colour():
    dashes = re.findall(r"stroke-dasharray: ([\d. ,]+)", viz.plot(draw, "lines").svg)
    assert dashes, "the second line is dashed"


def test_is_the_same_each_time_and_asks_for_nothing():
    first, second = (viz.plot(draw, "lines").svg for _ in range(2))
    assert first == second
    assert not re.search(r"(href|src)=\"(?!#)", first)
