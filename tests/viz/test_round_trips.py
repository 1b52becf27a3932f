"""`viz.round_trip`: values forward, gradients back."""

import re

import pytest
import torch

import readtorch as rt
from readtorch import viz


@pytest.fixture(params=[torch, rt], ids=["torch", "readtorch"])
def picture(request):
    lib = request.param

    def run():
        x = lib.tensor([0.0, 1.0], requires_grad=True)
        root = x.sqrt()
        kept = lib.where(x > 0, root, 0.0)
        return {"x": x, "sqrt": root, "<where>": kept, "sum": kept.sum()}

    return viz.round_trip(run)


def test_says_what_is_computed(picture):
    assert repr(picture) == (
        "Forward: x is [0, 1], sqrt is [0, 1], <where> is [0, 1], sum is 1. "
        "Backward: sum gets 1, <where> gets [1, 1], sqrt gets [0, 1], x gets [nan, 0.5]."
    )


def test_every_value_comes_at_its_beat(picture):
    text = picture._repr_html_()
    values = re.findall(
        r'rt-trip-(forth|back)( rt-trip-nan)?" style="--rt-trip-beat: ([\d.]+);[^>]*>(?:<i>.</i>)?<b>([^<]+)', text
    )
    came = [(way, value, nan != "") for way, nan, _, value in sorted(values, key=lambda found: float(found[2]))]
    forward = [("forth", value, False) for value in ("[0, 1]", "[0, 1]", "[0, 1]", "1")]
    assert came == [
        *forward,
        ("back", "1", False),
        ("back", "[1, 1]", False),
        ("back", "[0, 1]", False),
        ("back", "[nan, 0.5]", True),
    ]
    assert "&lt;where&gt;" in text and "<where>" not in text


@pytest.mark.browser
def test_rests_for_those_who_asked_for_it(browser, tmp_path, picture):
    file = tmp_path / "picture.html"
    file.write_text(f"<!DOCTYPE html><meta charset=utf-8>{picture._repr_html_()}")
    moving = "document.getAnimations().length"
    for options, moves in (({}, True), ({"reduced_motion": "reduce"}, False)):
        page = browser.new_page(**options)
        page.goto(f"file://{file}")
        assert (page.evaluate(moving) > 0) == moves
        assert page.get_by_role("button").count() == moves
        assert page.get_by_role("img").count() == 1
        page.context.close()


@pytest.mark.browser
def test_plays_again_and_fits_a_telephone(browser, tmp_path, picture):
    file = tmp_path / "picture.html"
    file.write_text(
        f'<!DOCTYPE html><meta charset=utf-8><meta name=viewport content="width=device-width">{picture._repr_html_()}'
    )
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(f"file://{file}")
    page.evaluate("document.getAnimations().forEach(one => one.finish())")
    assert page.evaluate(
        "[...document.querySelectorAll('.rt-trip-value b')].every(one => getComputedStyle(one).opacity === '1')"
    )
    page.get_by_role("button", name="Play again").press("Enter")
    assert page.evaluate("document.getAnimations().some(one => one.playState === 'running')")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.context.close()
