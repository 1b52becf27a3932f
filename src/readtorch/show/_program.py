"""The program that grows through the book, as it is at the end of a chapter: a module and all that it imports.

PyTorch has no such file.
"""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from pathlib import Path

from readtorch.show import _citations
from readtorch.show._locate import Quote, locate
from readtorch.show._render import Pane, panel
from readtorch.viz.wording import counted

PACKAGE = "readtorch.mini"
IMPORTED = re.compile(r"^from \.(\w+) import", re.M)
WRITTEN = re.compile(r'"""Written in the chapter "(.+?)"')


def modules(*wanted: str) -> list[str]:
    """The modules that are wanted and all that they need, each behind those that it imports itself."""
    found = []
    for name in wanted:
        text = (resources.files(PACKAGE) / f"{name}.py").read_text(encoding="utf8")
        found += [*modules(*IMPORTED.findall(text)), name]
    return list(dict.fromkeys(found))


def quotes(*wanted: str) -> list[Quote]:
    return [locate(f"{PACKAGE}.{name}") for name in modules(*wanted)]


def headline(found: list[Quote]) -> str:
    return f"Your program now: {counted(len(found), 'module')}, {sum(len(quote.lines) for quote in found)} lines"


def program_html(found: list[Quote], wanted: tuple[str, ...], book: Path) -> str:
    """The wanted modules in full; those that they import, which earlier chapters show, by name and chapter."""
    names = {f"{PACKAGE}.{name}" for name in wanted}
    new = [quote for quote in found if quote.name in names]
    old = [quote for quote in found if quote.name not in names]
    pages = _citations.chapters(book)  # none where there is no such folder
    imported = f"<ul>{''.join(_line(quote, pages) for quote in old)}</ul>" if old else ""
    panes = "".join(panel([Pane("ours", "mini", quote)], [], "") for quote in new)
    return f'<div class="rt-show"><details class="rt-written"><summary>{headline(found)}</summary>{imported}{panes}</details></div>'


def _line(quote: Quote, pages: dict[str, str]) -> str:
    """An imported module, with a link to the chapter that writes it. pages: title -> name of the file"""
    title = WRITTEN.match(quote.lines[0])[1]
    chapter = f'<a href="{pages[title]}.html">{escape(title)}</a>' if title in pages else escape(title)
    return f"<li><code>{escape(quote.name)}</code>, {counted(len(quote.lines), 'line')}: {chapter}</li>"
