"""Bare pages with figures in them, as a browser opens them from a file."""

import pytest

PAGE = """<!doctype html><html lang="en"><head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>figures</title></head><body><main><h1>Figures</h1>{figures}</main></body></html>"""


@pytest.fixture
def page_with(tmp_path):
    """page_with(widget, …) -> the file of a page that holds nothing but these."""

    def write(*widgets):
        file = tmp_path / "figures.html"
        file.write_text(PAGE.format(figures="".join(w.static_html() for w in widgets)), encoding="utf8")
        return file

    return write


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: no number here is random."""
