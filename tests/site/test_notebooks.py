"""Chapters as notebooks to take along: they read well in plain Jupyter, and run in an empty folder with the package from its wheel."""

import datetime
import json
import re
import sys

import pytest

from .conftest import ROOT

pytestmark = pytest.mark.slow
sys.path[:0] = [str(ROOT / "book/_ext"), str(ROOT / "tools")]

import rt_notebook  # noqa: E402
import run_notebooks  # noqa: E402

CHAPTERS = run_notebooks.chapters()
HEADER = "---\njupytext:\n  text_representation:\n    extension: .md\n    format_name: myst\nkernelspec:\n  display_name: Python 3\n  language: python\n  name: python3\n---\n"


def cells_of(text, **options):
    written = rt_notebook.as_notebook(HEADER + text, "Install it.\n", **options)
    return [(cell["cell_type"], "".join(cell["source"]), cell["metadata"]) for cell in json.loads(written)["cells"]]


def prose_of(text, **options):
    """The Markdown of a page that has no cells."""
    [_, (kind, prose, _)] = cells_of(text, **options)
    assert kind == "markdown"
    return prose


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("{term}`view` and {term}`its base <base of a view>`", "view and its base"),
        ('{math}`x^2`, but `f"{name}`', '$x^2$, but `f"{name}`'),
        ("$$\na = b\n$$ (eq-one)", "$$\na = b\n$$"),
        ("(here)=\n## Title", "## Title"),
        (
            "see [this](other.md#part) and [that](https://x.org/a.md)",
            "see [this](other.ipynb) and [that](https://x.org/a.md)",
        ),
        ("```{note}\nOne.\n\nTwo.\n```", "> **Note**\n>\n> One.\n>\n> Two."),
        (":::{margin} History\n:class: x\nIn 2016.\n:::", "> **History**\n>\n> In 2016."),
        ("````{admonition} T\n```text\na {term}`x`\n```\n````", "> **T**\n>\n> ```text\n> a {term}`x`\n> ```"),
        ("```{exercise} Why?\n:label: ex-a\n\nSay it.\n```", "### Exercise 1: Why?\n\nSay it."),
        (
            "```{exercise} A\n:label: ex-a\n```\n\n```{solution} ex-a\n:label: s\n:class: dropdown\n\nSo.\n```",
            "### Exercise 1: A\n\n<details>\n<summary>Solution to exercise 1</summary>\n\nSo.\n\n</details>",
        ),
    ],
)
def test_what_only_the_book_understands_is_written_otherwise(markdown, expected):
    assert prose_of(markdown) == expected


def test_links_lead_to_the_site_where_it_has_an_address():
    prose = prose_of("see [this](other.md#part)", site="https://example.org/", page="book/page")
    assert prose == "see [this](https://example.org/book/other.html#part)"


def test_solutions_and_helpers_are_folded():
    text = """
```{code-cell} python
:tags: [hide-input]
helper()
```
```{exercise-start} Count
:label: ex-c
```
Count them.
```{code-cell} python
check()
```
```{exercise-end}
```
````{solution-start} ex-c
:label: sol-c
:class: dropdown
````
It is short.
```{code-cell} python
solved()
```
````{solution-end}
````
```{code-cell} python
later()
```
"""
    cells = cells_of(text)
    assert {
        source: bool(metadata.get("jupyter", {}).get("source_hidden"))
        for kind, source, metadata in cells
        if kind == "code"
    } == {"helper()": True, "check()": False, "solved()": True, "later()": False}
    prose = "\n".join(source for kind, source, _ in cells if kind == "markdown")
    assert "### Exercise 1: Count\n\nCount them." in prose and "**Solution to exercise 1**, folded" in prose
    assert "<summary>In words</summary>\n\nIt is short.\n\n</details>" in prose


RAW = re.compile(
    r"^\s*(?:`{3,}|:{3,})\s*\{|^:(?:label|class|name):|(?<!`)\{(?:term|ref|eq|math|doc)\}`|\]\([\w/]+\.md", re.M
)


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_markup_of_the_book_is_left(name):
    cells = json.loads(run_notebooks.notebook(name))["cells"]
    assert "needs the package `readtorch`" in "".join(cells[0]["source"])
    prose = [
        re.sub(r"^```.*?^```", "", "".join(cell["source"]), flags=re.M | re.S)
        for cell in cells
        if cell["cell_type"] == "markdown"
    ]
    assert [match[0] for text in prose for match in RAW.finditer(text)] == []


# All of them take longer than a test should: `make notebooks` runs them. Here run the two that show recordings, and of the others
# a few, each day the next ones.
WITH_RECORDINGS = ["caching_allocator", "how_close_is_it"]
OTHERS = [name for name in CHAPTERS if name not in WITH_RECORDINGS]
A_DAY = 2


def todays():
    start = datetime.date.today().toordinal() * A_DAY
    return [OTHERS[(start + i) % len(OTHERS)] for i in range(A_DAY)]


def test_notebooks_run_in_an_empty_folder():
    results = run_notebooks.run_all([*WITH_RECORDINGS, *todays()], jobs=2)
    assert {name: problem for name, _, problem in results if problem} == {}
