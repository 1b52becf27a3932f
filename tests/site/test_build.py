"""The builder: what it makes of a sound book, and that it refuses an unsound one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browsing import need

from . import pages
from .conftest import HERE, ROOT, build_book, run_builder

pytestmark = pytest.mark.slow

BROKEN = {  # page of tests/site/broken: what the builder's log must say about it
    "error": "a cell failed",
    "stderr": "stderr was found in the cell outputs",
    "stale": "the source of torch.nn.Module.__setattr__ has changed",
    "foreign": "widgets that a page without a kernel cannot show: IntSlider",
    "math": "'\\\\nosuchcommand' is not known to latex2mathml",
    "link": "cross-reference target not found: 'nowhere.md'",
}


@pytest.fixture(scope="module")
def broken_book(tmp_path_factory):
    folder = tmp_path_factory.mktemp("broken_book")
    chapters = folder / "chapters"
    (chapters / "book").mkdir(parents=True)
    for page in (HERE / "broken").glob("*.md"):
        (chapters / "book" / page.name).write_text(page.read_text())
    names = "\n".join(f"- file: book/{name}" for name in BROKEN if name != "math")
    (chapters / "_toc.yml").write_text(f"format: jb-book\nroot: book/math\nchapters:\n{names}\n")
    return build_book(folder, chapters)


def test_an_unsound_book_is_refused(broken_book):
    assert broken_book.returncode != 0


@pytest.mark.parametrize("page", BROKEN)
def test_what_is_unsound_is_named(broken_book, page):
    assert BROKEN[page] in " ".join(broken_book.stdout.split()), broken_book.stdout[-6000:]
    assert f"{page}.md" in broken_book.stdout


def test_every_broken_page_is_tried():
    assert {page.stem for page in (HERE / "broken").glob("*.md")} == set(BROKEN)


def test_cells_run_once(fixture_book):
    folder, first = fixture_book
    (folder / "book/parts.md").open("a").write("\nAnother sentence.\n")
    second = run_builder(folder)
    assert second.returncode == 0, second.stdout[-6000:]
    assert "Executed notebook" in first
    assert "Executed notebook" not in second.stdout
    assert "Another sentence." in (folder / "_build/html/book/parts.html").read_text()


def test_links_lead_somewhere(fixture_site):
    assert pages.dead_links(fixture_site) == []


def test_nothing_is_loaded_from_elsewhere(fixture_site):
    assert pages.foreign_loads(fixture_site) == []


def test_one_style_sheet_for_all_panels(fixture_site):
    text = (fixture_site / "book/parts.html").read_text()
    assert text.count('class="rt-source') == 3
    assert "rt-show.css" in text
    assert ".rt-pane {" not in text
    assert ".rt-pane {" in (fixture_site / "_static/rt-show.css").read_text()


def test_formulas_are_mathml(fixture_site):
    text = (fixture_site / "book/parts.html").read_text()
    assert text.count("<math ") == 4
    assert "mathjax" not in text.lower()


def test_a_chapter_can_be_taken_along_as_notebook(fixture_site, tmp_path):
    notebook = fixture_site / "_sources/book/parts.ipynb"
    assert "_sources/book/parts.ipynb" in (fixture_site / "book/parts.html").read_text()
    cells = json.loads(notebook.read_text())["cells"]
    assert sum(cell["cell_type"] == "code" for cell in cells) == 12
    assert any("Every part of a chapter" in "".join(cell["source"]) for cell in cells)


def test_the_notebook_runs(fixture_site, tmp_path):
    from .conftest import ROOT

    copy = tmp_path / "parts.ipynb"
    copy.write_text((fixture_site / "_sources/book/parts.ipynb").read_text())
    done = subprocess.run(
        [Path(sys.executable).with_name("jupyter"), "execute", "--inplace", copy],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src"), "JUPYTER_PREFER_ENV_PATH": "1"},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    outputs = [output for cell in json.loads(copy.read_text())["cells"] for output in cell.get("outputs", [])]
    panels = [
        o["data"]["text/html"] for o in outputs if 'class="rt-source' in "".join(o.get("data", {}).get("text/html", ""))
    ]
    assert len(panels) == 3
    assert all(".rt-pane {" in "".join(panel) for panel in panels), "a panel in a notebook brings its own style"


def test_links_in_what_a_cell_shows_lead_to_pages(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    import rt_site

    link = '<a class="reference external" href="{}">here</a>'
    assert rt_site.repair(link.format("hooks.md#a-b")) == '<a class="reference internal" href="hooks.html#a-b">here</a>'
    assert rt_site.repair(link.format("hooks.md")) == '<a class="reference internal" href="hooks.html">here</a>'
    for other in ("https://example.org/a.md", "notes.txt"):
        assert rt_site.repair(link.format(other)) == link.format(other)


def test_code_has_elements_only_for_what_is_coloured(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    import rt_site

    code = '<span class="n">x</span><span class="w"> </span><span class="o">=</span><span class="p">(</span><span class="nb">abs</span>'
    assert rt_site.repair(code) == 'x <span class="o">=</span>(<span class="nb">abs</span>'


def test_the_theme_s_rules_are_those_of_classes_that_the_site_has(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    import rt_theme

    page = """<p class="seen two"></p><script>document.body.classList.add("set")</script>"""
    classes = rt_theme.classes_in([page], ["one.className = 'drawn'"])
    sheet = (
        '@charset "x";/*! whose */:root{--a:1}.seen,.gone{a:b}.gone .seen{a:b}p:not(.gone){a:b}'
        '@media print{.set{a:b}.gone{a:b}}@media all{.gone{a:b}}.drawn:is(.gone,.two)>a[href=".x,.y"]{a:b}@font-face{a:b}'
    )
    assert rt_theme.used_rules(sheet, classes) == (
        '@charset "x";/*! whose */:root{--a:1}.seen{a:b}p:not(.gone){a:b}'
        '@media print{.set{a:b}}.drawn:is(.gone,.two)>a[href=".x,.y"]{a:b}@font-face{a:b}'
    )


@pytest.mark.slow
def test_pages_load_the_theme_s_used_rules_alone(fixture_site):
    sheet = fixture_site / "_static/styles/pydata-used.css"
    assert 50_000 < sheet.stat().st_size < 150_000
    for name in pages.built(fixture_site):
        text = (fixture_site / name).read_text(encoding="utf8")
        assert "pydata-sphinx-theme.css" not in text and text.count("pydata-used.css?digest=") <= 1, name


def test_tracebacks_name_no_folder_of_the_builder(monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    from rt_tracebacks import shortened

    for path in (
        "/home/me/book/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py",
        "~/.local/lib/python3.13t/site-packages/torch/nn/modules/module.py",
        "/usr/lib/python3/dist-packages/torch/nn/modules/module.py",
    ):
        assert shortened(f"E\n\nFile {path}:9, in f(a)\n") == "E\n\nFile torch/nn/modules/module.py:9, in f(a)\n"
    assert shortened("File /home/me/book/src/readtorch/_tensor.py:1") == "File readtorch/_tensor.py:1"
    assert shortened('  File "/usr/lib/python3.11/json/decoder.py", line 3') == '  File "json/decoder.py", line 3'
    for other in ("File train.py:3", "Cell In[2], line 1", "-> 5 open('/usr/lib/python3.11/x')", "File /tmp/net.py:3"):
        assert shortened(other) == other


def test_the_cache_follows_the_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(HERE.parents[1] / "book/_ext")
    import rt_cache

    (tmp_path / "module.py").write_text("x = 1")
    before = rt_cache.hash_of([tmp_path], ["torch==2.13.0"])
    assert rt_cache.hash_of([tmp_path], ["torch==2.13.0"]) == before
    assert rt_cache.hash_of([tmp_path], ["torch==2.13.1"]) != before
    (tmp_path / "module.py").write_text("x = 2")
    assert rt_cache.hash_of([tmp_path], ["torch==2.13.0"]) != before


def test_the_lab_finds_a_place_for_its_settings(tmp_path):
    """IPython warns at every start that its folder "is not a writable location" where there is none."""
    need(shutil.which("make"), "no make on this machine")
    shutil.copy(ROOT / "Makefile", tmp_path)
    for file in ("requirements.txt", "pyproject.toml", ".venv/.ready", ".venv/bin/jupyter"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text('#!/bin/sh\ntest -w "$IPYTHONDIR"\n')
    (tmp_path / ".venv/bin/jupyter").chmod(0o755)
    done = subprocess.run(["make", "lab"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
