"""A chapter as a notebook that reads and runs anywhere: in plain Jupyter, in an empty folder, with only the package installed.

Jupyter knows no directives and no roles of the book's: exercises become headings, solutions fold, notes become quotations, links lead
to the neighbouring notebooks or to the site. Cells that the book folds or leaves out are folded.
"""

from __future__ import annotations

import re
from urllib.parse import quote

FOLDED = {"hide-input", "hide-cell", "remove-input", "remove-cell", "parity"}
HEADER = "{code-cell} python"

FENCE = re.compile(r"^(`{3,}|:{3,})\s*\{([\w-]+)\}[ \t]*(.*)$")
CODE = re.compile(r"^(`{3,}|~{3,}).*?^\1[ \t]*$", re.M | re.S)
OPTION = re.compile(r"^:([\w-]+):")
ROLE = re.compile(r"(?<!`)\{(term|ref|numref|doc|any|eq|math|abbr|sub|sup)\}`([^`<]+?)(?:\s*<([^>`]*)>)?`")
LABEL = re.compile(r"^\([\w-]+\)=\n?", re.M)
EQUATION = re.compile(r"^(\$\$)[ \t]*\([\w-]+\)[ \t]*$", re.M)
CHAPTER = re.compile(r"\]\((?!\w+:)([\w/.-]+)\.md(#(?:[^()\s]|\([^()\s]*\))*)?\)")


def as_notebook(text: str, install: str, site: str = "", page: str = "") -> str:
    """The chapter's Markdown as the text of an .ipynb.

    install: Markdown of the cells before its first. site: the address of the book, and page the name of this one, for links.
    """
    import jupytext

    notebook = jupytext.reads(text, fmt="md:myst")
    notebook.metadata.pop("jupytext", None)
    rewrite_cells(notebook.cells, site, page)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code" or cell.source.strip()]
    notebook.cells[:0] = jupytext.reads(install, fmt="md:myst").cells
    for n, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{n}"  # jupytext's are random; the same page should give the same file
    return jupytext.writes(notebook, fmt="ipynb")


def rewrite_cells(cells, site="", page="") -> None:
    writer = Writer(site, page)
    for cell in cells:
        if cell.cell_type == "markdown":
            cell.source = writer.prose(cell.source)
        elif writer.solving or FOLDED.intersection(cell.metadata.get("tags", [])):
            cell.metadata.setdefault("jupyter", {})["source_hidden"] = True


class Writer:
    """What is remembered from cell to cell: how many exercises there were, and whether a solution has begun."""

    def __init__(self, site: str, page: str):
        self.site, self.page = site, page
        self.titles: dict[str, str] = {}  # label -> how the exercise is called
        self.solving = ""  # the exercise whose solution these cells are

    def prose(self, text: str) -> str:
        """A Markdown cell, without what only the book understands."""
        parts, before = [], []
        lines = text.split("\n")
        while lines:
            line = lines.pop(0)
            if match := FENCE.match(line):
                parts.append(self._folded(before))
                parts.append(self._directive(match, _body(match[1], lines)))
                before = []
            elif line.startswith(("```", "~~~")):  # code that is not run
                before += [line, *_body(re.match(r"[`~]+", line)[0], lines, keep_end=True)]
            else:
                before.append(line)
        parts.append(self._folded(before))
        return "\n\n".join(part for part in parts if part)

    def _folded(self, lines: list[str]) -> str:
        text = self._inline("\n".join(lines)).strip("\n")
        return _details("In words", text) if self.solving and text.strip() else text

    def _directive(self, match: re.Match, body: list[str]) -> str:
        name, title = match[2], match[3]
        options, body = _options(body)
        if name in ("exercise", "exercise-start"):
            called = f"exercise {len(self.titles) + 1}"
            self.titles[options.get("label", "")] = called
            heading = f"### {called.capitalize()}: {self._inline(title)}" if title else f"### {called.capitalize()}"
            return "\n\n".join(filter(None, [heading, self.prose("\n".join(body))]))
        if name in ("solution", "solution-start"):
            called = self.titles.get(title.strip(), "the exercise")
            if name == "solution-start":
                self.solving = called
                return f"**Solution to {called}**, folded: the dots below open it."
            return _details(f"Solution to {called}", self.prose("\n".join(body)))
        if name in ("exercise-end", "solution-end"):
            self.solving = "" if name == "solution-end" else self.solving
            return ""
        return self._aside(name, title, body)

    def _aside(self, name: str, title: str, body: list[str]) -> str:
        """A note, a warning, something in the margin: a quotation with a bold title."""
        if name == "admonition" or name == "dropdown":
            head, inside = title, body
        elif name in ("margin", "sidebar"):
            head, inside = title, body
        elif name in ("note", "tip", "warning", "important", "hint", "seealso", "caution", "attention"):
            head, inside = name.capitalize(), [title, *body] if title else body
        elif name == "math":
            return "\n".join(["$$", *body, "$$"])
        else:
            return "\n".join(["```", *body, "```"]) if any(line.strip() for line in body) else ""
        text = "\n\n".join(filter(None, [f"**{self._inline(head)}**" if head else "", self.prose("\n".join(inside))]))
        return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))

    def _inline(self, text: str) -> str:
        """Without labels and roles, except in code."""
        done, at = [], 0
        for code in CODE.finditer(text):
            done += [self._words(text[at : code.start()]), code[0]]
            at = code.end()
        return "".join([*done, self._words(text[at:])])

    def _words(self, text: str) -> str:
        text = EQUATION.sub(r"\1", LABEL.sub("", text))
        return CHAPTER.sub(self._link, ROLE.sub(_role, text))

    def _link(self, match: re.Match) -> str:
        """Another chapter: on the site where its address is known, else the notebook beside this one."""
        name, anchor = match[1], match[2] or ""
        if self.site:
            folder = self.page.rpartition("/")[0]
            return f"]({self.site}{quote(f'{folder}/' if folder else '')}{name}.html{anchor})"
        return f"]({name}.ipynb)"


def _role(match: re.Match) -> str:
    kind, text = match[1], match[2].strip()
    if kind == "math":
        return f"${text}$"
    if kind == "eq":
        return "the formula"
    return re.sub(r"\s*\(.*\)$", "", text) if kind == "abbr" else text


def _body(fence: str, lines: list[str], keep_end: bool = False) -> list[str]:
    """The lines up to the end of a fence, taken from `lines`."""
    body = []
    while lines:
        line = lines.pop(0)
        if line.strip() and set(line.strip()) == {fence[0]} and len(line.strip()) >= len(fence):
            return [*body, line] if keep_end else body
        body.append(line)
    return body


def _options(body: list[str]) -> tuple[dict[str, str], list[str]]:
    options = {}
    while body and (match := OPTION.match(body[0])):
        options[match[1]] = body.pop(0)[match.end() :].strip()
    while body and not body[0].strip():
        body.pop(0)
    return options, body


def _details(summary: str, text: str) -> str:
    return f"<details>\n<summary>{summary}</summary>\n\n{text}\n\n</details>"


# -- how to install ------------------------------------------------------------------------------------

NEEDED = "show,viz,reference,simulator,tensorboard,onnx"  # what chapters import

INSTALL = """\
*This notebook needs the package `readtorch`, which the next cell installs where it is missing.{from_where} After that it runs in any folder.*

```{{code-cell}} python
import importlib.util

if importlib.util.find_spec("readtorch") is None:
    %pip install --quiet "{requirement}"
```
"""
CHECKOUT = """\
*This notebook needs the package `readtorch`, and PyTorch to compare with. In a checkout of the book, `pip install ".[{needed}]"` installs both; after that it
runs in any folder.*
"""


def installing(repository: str = "", wheel: str = "", site: str = "") -> str:
    """What a notebook away from its checkout begins with.

    repository: its address, or nothing. wheel: the path of the package's wheel within the site. site: the site's address, if it has one.
    """
    if repository:
        return INSTALL.format(from_where="", requirement=f"readtorch[{NEEDED}] @ git+{repository}")
    if wheel and site:
        return INSTALL.format(from_where="", requirement=f"readtorch[{NEEDED}] @ {site}{wheel}")
    if wheel:
        name = wheel.rpartition("/")[2]
        where = f" First put `{name}` beside the notebook: the book's page has it in the same download menu."
        return INSTALL.format(from_where=where, requirement=f"./{name}[{NEEDED}]")
    return CHECKOUT.format(needed=NEEDED)
