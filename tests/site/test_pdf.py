"""make pdf: the fixture book, printed."""

import sys

import pytest

from . import pages
from .conftest import HERE, ROOT

sys.path.insert(0, str(ROOT / "tools"))
pypdf = pytest.importorskip("pypdf")

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def printed(fixture_site, browser, tmp_path_factory):
    """(the site, its chapters as they were printed, the PDF)"""
    import pdf

    out = tmp_path_factory.mktemp("pdf") / "book.pdf"
    chapters = pdf.chapters_of(fixture_site.resolve(), HERE / "fixture/_toc.yml")
    pdf.write_book(browser, chapters, out)
    return fixture_site, chapters, pypdf.PdfReader(out)


def test_pages_are_numbered_and_contents_name_them(printed):
    _, chapters, book = printed
    contents = book.pages[0].extract_text()
    for chapter in chapters:
        assert f"{chapter.title} {chapter.first + 1}" in " ".join(contents.split())
        page = book.pages[chapter.first].extract_text()
        assert chapter.title in page and page.split()[-1] == str(chapter.first + 1)


def test_links_between_pages_are_jumps(printed):
    site, chapters, book = printed
    first = {chapter.file.name: chapter for chapter in chapters}
    assert "object_index.html" not in first, "is to be looked at on a screen"
    jumps, addresses = [], []
    for page in book.pages:
        for link in page.get("/Annots", ()):
            link = link.get_object()
            if "/Dest" in link:
                jumps.append(book.get_page_number(link["/Dest"][0].get_object()))
            else:
                addresses.append(link["/A"]["/URI"])
    assert {chapter.first for chapter in chapters} <= set(jumps), "the contents lead to each"
    assert not [address for address in addresses if address.startswith("file:")]
    outside = {link for chapter in chapters for link in pages.Page(chapter.file).links if link.startswith("https:")}
    assert set(addresses) <= outside and addresses


def test_the_outline_has_every_section(printed):
    _, chapters, book = printed

    def titles(items):
        return [title for item in items for title in (titles(item) if isinstance(item, list) else [item.title])]

    expected = [title for chapter in chapters for title in (chapter.title, *(text for _, text, _ in chapter.sections))]
    assert titles(book.outline) == expected
