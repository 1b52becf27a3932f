"""The chapters in a second browser: nothing goes wrong while one loads, and its first figure answers the keyboard."""

import pytest

from tests.browsing import need

from . import firefox, keyboard, pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]
pytest.importorskip("websocket")

CHAPTERS = [name for name in pages.listed(pages.ROOT / "_toc.yml") if "/api" not in name]
MOUNTED = """() => new Promise(done => { const look = () =>
    [...document.querySelectorAll('.rt-static')].every(one => one.dataset.rtMounted === 'yes') ? done() : setTimeout(look, 20);
    look(); })"""
FIRST = "() => document.querySelector('.rt-static')"
UNFOLD = (
    """figure => { for (let at = figure; at; at = at.parentElement) if (at.localName === 'details') at.open = true; }"""
)
WIDTH = "() => document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def running():
    need(firefox.program(), "no Firefox on this machine: install one")
    started = firefox.Firefox()
    yield started
    started.close()


def look_at(running, file):
    """(what went wrong while the page loaded and its first figure was worked, its width, whether the figure answered)"""
    already = len(running.said)
    page = running.open(file)
    page.evaluate(MOUNTED)
    answered, figure = None, page.evaluate(FIRST)
    if figure:
        page.evaluate(UNFOLD, figure)
        answered = keyboard.work(page, figure)
    width = page.evaluate(WIDTH)
    page.close()
    return running.said[already:], width, answered


@pytest.mark.parametrize("name", CHAPTERS)
def test_a_chapter(running, book_site, name):
    said, width, answered = look_at(running, book_site / name)
    assert said == []
    assert width <= 1400, "the page scrolls sideways"
    assert answered in (True, None), "no key changes the figure"


def test_what_goes_wrong_is_noticed(running, tmp_path):
    page = tmp_path / "page.html"
    figure = "<div class='rt-static' data-rt-mounted='yes'><button>still</button></div>"
    page.write_text(
        f"<!doctype html><meta charset='utf8'>{figure}<script>console.error('first'); throw Error('second')</script>"
    )
    said, _, answered = look_at(running, page)
    assert sorted(line.split()[-1] for line in said) == ["first", "second"]
    assert answered is False
