"""The index of objects and the API reference: every entry leads to its chapter, to PyTorch's lines and to ours."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import readtorch
from readtorch import show
from readtorch.show import _citations, _links
from readtorch.show._locate import locate

from . import pages

PACKAGE = Path(readtorch.__file__).parent
SETATTR = "torch.nn.Module.__setattr__"


class Rows(HTMLParser):
    """The rows of the tables of a page: [(text of the first cell, [every link of the row])]"""

    def __init__(self, text):
        super().__init__()
        self.rows, self.cell = [], 0
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag == "tr":
            self.rows.append(["", []])
            self.cell = 0
        elif tag == "td":
            self.cell += 1
        elif tag == "a" and self.rows:
            self.rows[-1][1].append(attributes.get("href"))

    def handle_data(self, data):
        if self.cell == 1:
            self.rows[-1][0] += data.strip()


# -- docstrings ---------------------------------------------------------------------------------------


def test_titles_of_chapters_are_read():
    text = (
        'x. See the chapters "JIT: tracing" and "Hooks and\n__call__"; the chapter "Autograd", too. A "word" is none.'
    )
    assert _citations.titles(text) == ["JIT: tracing", "Hooks and __call__", "Autograd"]


def test_paths_of_files_are_read():
    text = (
        "In PyTorch: `torch/nn/init.py`, `aten/src/ATen/native/{Blas,Linear}.cpp`, `torch/csrc/jit`. Not `nn/init.py`."
    )
    assert _citations.files(text) == [
        "torch/nn/init.py",
        "aten/src/ATen/native/Blas.cpp",
        "aten/src/ATen/native/Linear.cpp",
        "torch/csrc/jit",
    ]


def test_every_chapter_that_a_docstring_cites_is_there():
    known = _citations.chapters(pages.ROOT / "book")
    lost = [
        f"{d.owner}: {title}"
        for d in _citations.docstrings(PACKAGE)
        for title in _citations.titles(d.text)
        if title not in known
    ]
    assert lost == []


def test_chapters_are_cited_by_title():
    """Numbers would change with the table of contents."""
    numbered = [
        f"{d.owner}: {match[0]}"
        for d in _citations.docstrings(PACKAGE)
        for match in _citations.NUMBERED.finditer(d.text)
    ]
    assert numbered == []


def test_every_python_file_that_a_docstring_cites_is_there():
    torch = pytest.importorskip("torch")
    home = Path(torch.__file__).parents[1]
    lost = {
        f"{d.owner}: {file}"
        for d in _citations.docstrings(PACKAGE)
        for file in _citations.files(d.text)
        if re.fullmatch(r"torch/[\w/]+\.py", file) and not (home / file).exists()
    }
    assert lost == set()


# -- the page -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def index(fixture_site):
    return (fixture_site / "book/object_index.html").read_text()


@pytest.mark.slow
def test_an_entry_leads_to_the_quotation_and_to_both_sources(index):
    [links] = [links for name, links in Rows(index).rows if name == SETATTR]
    assert "parts.html#quoted-torch.nn.Module.__setattr__" in links
    where = locate(SETATTR).url.partition("v2.13.0/")[2].replace("#L", ":").replace("-L", "–")
    assert f"<a>{where}</a>" in index, "rt_index.js finds its address"
    assert locate("readtorch.show.source").where in index


@pytest.mark.slow
@pytest.mark.browser
def test_places_lead_to_their_lines(visit, fixture_site):
    with visit(fixture_site / "book/object_index.html") as seen:
        row = seen.page.locator("#rt-index-objects tr", has=seen.page.get_by_text(SETATTR, exact=True))
        assert row.locator(f'a[href="{locate(SETATTR).url}"]').count() == 1
        files = seen.page.locator("#rt-index-files td:first-child a")
        assert files.count() > 100
        for file in files.all():
            path = file.inner_text()
            kind = "blob" if "." in Path(path).name else "tree"
            assert file.get_attribute("href") == f"https://github.com/pytorch/pytorch/{kind}/v2.13.0/{path}"
        assert seen.page.locator(".rt-index a:not([href])").count() == 0
        rows, filled = seen.page.get_by_role("row").count(), seen.page.locator(".rt-index td:not(:empty)").count()
        seen.view(390, "light")
        assert seen.page.get_by_role("row").count() == rows > 200, "narrow screens lay the tables out as blocks"
        assert seen.page.get_by_role("cell").count() == filled


def test_a_place_names_its_file(monkeypatch):
    """The page "The core" lists our functions under their files, with their lines alone."""
    monkeypatch.syspath_prepend(pages.ROOT / "book/_ext")
    place = pytest.importorskip("rt_index").PLACE
    row = '<code class="rt-name">add_</code> <span class="rt-where">{}</span>'
    assert place.search(row.format("torch/nn/init.py:27–38"))["where"] == "torch/nn/init.py:27–38"
    assert not place.search(row.format("27–38"))


@pytest.mark.slow
def test_our_lines_are_linked_where_they_are_published(monkeypatch):
    monkeypatch.syspath_prepend(pages.ROOT / "book/_ext")
    rt_index = pytest.importorskip("rt_index")
    monkeypatch.setattr(_links, "repository", lambda: "https://github.com/somebody/readtorch")
    place = "src/readtorch/nn/init.py"
    url = _links.ours(place, 3, 7)
    assert rt_index.linked(f"{place}:3–7", url) == f"<a>{place}:3–7</a>"
    assert rt_index.address(f"{place}:3–7") == url
    assert url in rt_index.linked(f"{place}:3–8", url), "what does not follow from the text is written out"
    monkeypatch.setattr(_links, "repository", lambda: None)
    assert rt_index.linked(f"{place}:3–7", None) == f"{place}:3–7"


@pytest.mark.slow
def test_a_name_in_the_text_is_an_entry(index):
    names = [name for name, _ in Rows(index).rows]
    assert "torch.nn.Linear" in names
    assert "torch/csrc/autograd/edge.h:13-40" in names
    assert names.count(SETATTR) == 1


@pytest.mark.slow
def test_files_lead_to_those_that_stand_for_them(index):
    assert "<a>torch/nn/parameter.py</a>" in index
    assert "src/readtorch/nn/parameter.py" in index


@pytest.mark.slow
def test_each_quotation_has_an_anchor_of_its_own(fixture_site):
    anchors = re.findall(r'id="(quoted-[^"]+)"', (fixture_site / "book/parts.html").read_text())
    assert len(anchors) == len(set(anchors)) >= 5


@pytest.mark.slow
def test_a_quotation_of_pytorch_links_to_its_lines(fixture_site):
    """So that any line that is shown can be opened where it stands."""
    panes = re.findall(
        r'<div class="rt-pane rt-theirs">.*?</div>', (fixture_site / "book/parts.html").read_text(), re.S
    )
    assert panes
    assert all(
        re.search(r'href="https://github.com/pytorch/pytorch/blob/v2\.13\.0/[^"#]+#L\d+-L\d+"', pane) for pane in panes
    )


@pytest.mark.slow
def test_the_api_shows_signature_docstring_and_places(fixture_site):
    text = (fixture_site / "book/api.html").read_text()
    assert 'id="readtorch.optim.swa_utils.AveragedModel"' in text
    assert "multi_avg_fn=None" in text
    assert re.search(r"blob/v2\.13\.0/torch/optim/swa_utils\.py#L\d+-L\d+", text)
    assert show.digest.__doc__.split("`")[0] in text
    assert "src/readtorch/show/__init__.py" in text


@pytest.mark.slow
def test_the_search_knows_the_names(fixture_site):
    found = "".join(file.read_text() for file in (fixture_site / "_static/search").iterdir())
    assert "AveragedModel" in found
    assert "__setattr__" in found


@pytest.mark.slow
@pytest.mark.browser
def test_the_filter_leaves_the_rows_that_fit(visit, fixture_site):
    with visit(fixture_site / "book/object_index.html") as seen:
        rows = seen.page.locator("#rt-index-objects tbody tr:has(td)")
        everything = rows.count()
        seen.page.locator("#rt-filter-objects").focus()
        seen.page.keyboard.type("MODULE setattr")
        shown = [row for row in rows.all() if row.is_visible()]
        assert 1 <= len(shown) < everything
        assert all("__setattr__" in row.inner_text() for row in shown)
        assert f"{len(shown)} found" in seen.page.locator(".rt-filter output").first.inner_text()
        for _ in "MODULE setattr":
            seen.page.keyboard.press("Backspace")
        assert all(row.is_visible() for row in rows.all())
