"""The program that grows through the book, as it is at the end of a chapter: a module and all that it imports.

PyTorch has no such file.
"""

from __future__ import annotations

import re
from importlib import resources

from readtorch.show._locate import Quote, locate
from readtorch.show._render import Pane, panel

PACKAGE = "readtorch.mini"
IMPORTED = re.compile(r"^from \.(\w+) import", re.M)


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
    count = "1 module" if len(found) == 1 else f"{len(found)} modules"
    return f"Your program now: {count}, {sum(len(quote.lines) for quote in found)} lines"


def program_html(found: list[Quote]) -> str:
    panes = "".join(panel([Pane("ours", "mini", quote)], [], "") for quote in found)
    return (
        f'<div class="rt-show"><details class="rt-written"><summary>{headline(found)}</summary>{panes}</details></div>'
    )
