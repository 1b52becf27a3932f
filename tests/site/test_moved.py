"""Addresses that pages and sections once had lead to where these are now."""

import io
import re

import pytest
import yaml

from . import pages

pytest.importorskip("sphinx")
from sphinx.application import Sphinx  # noqa: E402

MOVED = {
    "here#old": "here#new",
    "here#left": "sub/there#new-place",
    "sub/gone": "here#new",
    "elsewhere#x": "unknown#y",  # a page that is not built this time
}
PAGES = {
    "index.rst": "Start\n=====\n\n.. toctree::\n\n   here\n   sub/there\n",
    "here.rst": "Here\n====\n\nNew\n---\n\nText.\n",
    "sub/there.rst": "There\n=====\n\nNew place\n---------\n\nText.\n",
}


@pytest.fixture
def build(tmp_path, monkeypatch):
    """build(moved) -> (the folder of the site, the warnings)"""
    monkeypatch.syspath_prepend(pages.ROOT / "book/_ext")

    def build(moved):
        for name, text in PAGES.items():
            (tmp_path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "source" / name).write_text(text)
        settings = {"extensions": ["rt_moved"], "rt_moved": moved, "html_theme": "basic"}
        warnings = io.StringIO()
        folders = [str(tmp_path / part) for part in ("site", "doctrees")]
        Sphinx(
            str(tmp_path / "source"), None, *folders, "html", confoverrides=settings, status=None, warning=warnings
        ).build()
        return tmp_path / "site", warnings.getvalue()

    return build


def test_a_section_keeps_its_old_anchor(build):
    site, warnings = build(MOVED)
    assert warnings == ""
    assert {"old", "new"} <= pages.Page(site / "here.html").anchors


def test_a_page_that_is_gone_leads_on(build):
    site, _ = build(MOVED)
    gone = (site / "sub/gone.html").read_text()
    assert '<meta http-equiv="refresh" content="0; url=../here.html#new">' in gone
    assert pages.dead_links(site) == []
    assert not (site / "elsewhere.html").exists()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("old", "now"), [("here.html#left", "sub/there.html#new-place"), ("sub/gone.html", "here.html#new")]
)
def test_the_browser_is_led_on(build, browser, old, now):
    site, _ = build(MOVED)
    page = browser.new_page()
    page.goto(f"file://{site}/{old}")
    page.wait_for_url(f"file://{site}/{now}", timeout=5_000)
    page.context.close()


@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ({"here#old": "sub/there#nowhere"}, "there is no sub/there#nowhere"),
        ({"here#old": "here#nowhere"}, "there is no here#nowhere"),
        ({"here#new": "here#here"}, "here#new is still there"),
    ],
)
def test_a_wrong_entry_is_named(build, moved, said):
    assert said in build(moved)[1]


def test_the_pages_of_the_table_are_there():
    """The builder leaves out what leads to pages that it does not build."""
    moved = yaml.safe_load((pages.ROOT / "_config.yml").read_text(encoding="utf8"))["sphinx"]["config"]["rt_moved"]
    assert [new for new in moved.values() if not (pages.ROOT / f"{new.partition('#')[0]}.md").exists()] == []
    assert all(re.fullmatch(r"book/\w+(#[\w.-]+)?", address) for pair in moved.items() for address in pair)
