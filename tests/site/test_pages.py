"""Every page, in a real browser, opened as a file: of the book in _build/html, and of the fixture book."""

import pytest

from ..browsing import examine
from . import pages

pytestmark = [pytest.mark.browser, pytest.mark.slow]

BOOK = pages.listed(pages.ROOT / "_toc.yml")
FIXTURE = pages.listed(pages.ROOT / "tests/site/fixture/_toc.yml")
VIEWS = [(1400, "light"), (1400, "dark"), (390, "light"), (390, "dark")]
HEAVIEST = 6_000_000  # bytes a reader may have to load for one page, before compression


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
@pytest.mark.parametrize("name", BOOK)
def test_page_of_the_book(visit, axe, book_site, name, view):
    examine(visit, axe, book_site / name, *view)


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view[0]}-{view[1]}")
@pytest.mark.parametrize("name", FIXTURE)
def test_page_of_the_fixture(visit, axe, fixture_site, name, view):
    examine(visit, axe, fixture_site / name, *view)


def test_every_listed_page_is_built(book_site):
    assert set(BOOK) <= set(pages.built(book_site)), "make book"


def test_links_lead_somewhere(book_site):
    assert pages.dead_links(book_site) == []


def test_nothing_is_loaded_from_elsewhere(book_site):
    assert pages.foreign_loads(book_site) == []


def test_no_page_is_heavy(book_site):
    heavy = {name: pages.weight(book_site, name) for name in pages.built(book_site)}
    assert {name: weight for name, weight in heavy.items() if weight > HEAVIEST} == {}


def test_the_front_door_leads_to_the_first_page(browser, book_site):
    page = browser.new_page()
    page.goto(f"file://{book_site}/index.html")
    page.wait_for_url("**/book/index.html", timeout=5_000)
    page.context.close()
