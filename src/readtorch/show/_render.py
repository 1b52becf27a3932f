"""Quotes as HTML: numbered lines, folded ranges, lettered pairs, two panes.

No markup here depends on the page around it: the same text stands in JupyterLab and in the book. Colours
and layout are `show.css`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from readtorch.c10.extras import extra
from readtorch.show import _links
from readtorch.show._locate import Quote

with extra("show", "readtorch.show"):
    from pygments.lexers import get_lexer_by_name
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

HOW_TO_GET_IT = "which `make pytorch-source` brings"
ROWS_OF_A_FOLD = 2  # the height of a closed fold, in lines: see show.css
LONGEST_DOCSTRING = 3  # lines; a longer one starts folded unless the caller says what to keep

# A handful of colours serve reading better than Pygments' sixty classes. The first that contains the token wins.
COLOURS = [
    (Comment, "c"),
    (String.Doc, "c"),
    (String, "s"),
    (Number, "n"),
    (Keyword, "k"),
    (Operator.Word, "k"),
    (Name.Function, "f"),
    (Name.Class, "f"),
    (Name.Decorator, "d"),
    (Name.Builtin, "b"),
    (Name.Tag, "f"),
]


@dataclass(frozen=True)
class Pair:
    """Lines of one side and the lines of the other that do the same."""

    letter: str
    theirs: list[range]
    ours: list[range]
    note: str


@dataclass
class Pane:
    """One quoted object, with what is to be folded and marked; lines are counted from 1 in the quote."""

    side: str  # "theirs" or "ours"
    title: str
    quote: Quote
    keep: list[range] = field(default_factory=list)
    emphasis: set[int] = field(default_factory=set)
    pairs: dict[int, Pair] = field(default_factory=dict)
    openings: set[int] = field(default_factory=set)  # lines that carry their pair's letter
    gaps: dict[int, int] = field(default_factory=dict)  # line -> rows left free above it where panes are aligned

    def html(self) -> str:
        quote, name = self.quote, escape(self.quote.name)
        where = escape(quote.where)
        link = f'<a class="rt-where" href="{escape(quote.url)}">{where}</a>' if quote.url else where
        if quote.made:
            link += ", written by PyTorch's generators"
        return (
            f'<div class="rt-pane rt-{self.side}"><div class="rt-caption"><span class="rt-who">{self.title}</span>'
            f' <code class="rt-name">{name}</code> <span class="rt-where">{link}</span></div>'
            f'<div class="rt-code" tabindex="0" role="group" aria-label="Source of {name}">{self._body()}</div></div>'
        )

    def _body(self) -> str:
        coloured = colour(self.quote)
        return "".join(
            self._rows(part, coloured) if shown else self._folded(part, coloured) for part, shown in self._parts()
        )

    def _parts(self) -> Iterator[tuple[range, bool]]:
        """Cut all lines into kept and folded ranges, in order."""
        at, end = 1, len(self.quote.lines) + 1
        for kept in self.keep or unfolded(self.quote):
            if at < kept.start:
                yield range(at, kept.start), False
            yield kept, True
            at = kept.stop
        if at < end:
            yield range(at, end), False

    def _folded(self, part: range, coloured: list[str]) -> str:
        first, last = self.quote.first + part.start - 1, self.quote.first + part.stop - 2
        label = f"{len(part)} lines folded ({first}–{last})" if len(part) > 1 else f"1 line folded ({first})"
        return f'<details class="rt-folded"><summary>{label}</summary>{self._rows(part, coloured)}</details>'

    def _rows(self, part: range, coloured: list[str]) -> str:
        return f"<pre>{''.join(self._row(i, coloured[i - 1]) for i in part)}</pre>"

    def _row(self, i: int, code: str) -> str:
        line, pair = self.quote.lines[i - 1], self.pairs.get(i)
        classes = "rt-line" + (" rt-emphasis" if i in self.emphasis else "")
        badge = ""
        if pair:
            classes += f" rt-pair rt-pair-{colour_of(pair)}"
            badge = f'<span class="rt-letter" data-letter="{pair.letter}"></span>' if i in self.openings else ""
        indent = len(line) - len(line.lstrip())
        number = self.quote.first + i - 1
        gap = f'<span class="rt-gap" style="--rows:{self.gaps[i]}"></span>' if i in self.gaps else ""
        return f'{gap}<span class="{classes}" data-n="{number}" style="--indent:{indent}ch">{badge}{code}\n</span>'

    def rows_above(self, line: int) -> int | None:
        """How many rows stand above a line while folds are closed and gaps open; None if it is in a fold."""
        rows = sum(n for below, n in self.gaps.items() if below < line)
        for part, shown in self._parts():
            if line in part:
                return rows + line - part.start if shown else None
            rows += len(part) if shown else ROWS_OF_A_FOLD
        return None


def align(theirs: Pane, ours: Pane, pairs: list[Pair]) -> None:
    """Leave rows free in either pane, so that the first lines of each pair stand side by side where that is possible."""
    reached = 0
    for pair in sorted(pairs, key=lambda pair: pair.theirs[0].start):
        lines = pair.theirs[0].start, pair.ours[0].start
        rows = theirs.rows_above(lines[0]), ours.rows_above(lines[1])
        if None in rows or lines[1] < reached:  # folded away, or it crosses a pair before it
            continue
        reached = lines[1]
        if missing := rows[0] - rows[1]:
            pane, line = (ours, lines[1]) if missing > 0 else (theirs, lines[0])
            pane.gaps[line] = abs(missing)


def colour_of(pair: Pair) -> int:
    return (ord(pair.letter) - ord("A")) % 8 + 1


def colour(quote: Quote) -> list[str]:
    """The lines of a quote as HTML. No element crosses a line, so that each can stand by itself."""
    lines: list[str] = [""]
    source = "".join(
        re.sub(r" +\\$", r" \\", line) + "\n" for line in quote.lines
    )  # a macro's far column of backslashes
    for kind, text in get_lexer_by_name(quote.language, stripnl=False, ensurenl=False).get_tokens(source):
        css = next((name for group, name in COLOURS if kind in group), None)
        for n, piece in enumerate(text.split("\n")):
            if n:
                lines.append("")
            if piece:
                lines[-1] += f'<span class="rt-{css}">{escape(piece)}</span>' if css else escape(piece)
    return lines[:-1]  # without its newline a `//` comment on the last line would be no comment to Pygments


def unfolded(quote: Quote) -> list[range]:
    """Everything but a long docstring."""
    whole = [range(1, len(quote.lines) + 1)]
    if quote.language != "python":
        return whole
    try:
        definition = ast.parse("\n".join(quote.lines)).body[0]
    except SyntaxError:
        return whole
    if not isinstance(definition, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return whole
    docstring = definition.body[0]
    if not (isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)):
        return whole
    if docstring.end_lineno - docstring.lineno < LONGEST_DOCSTRING:
        return whole
    parts = [range(1, docstring.lineno), range(docstring.end_lineno + 1, len(quote.lines) + 1)]
    return [part for part in parts if part]


def panel(panes: list[Pane], pairs: list[Pair], group: str, missing: str = "") -> str:
    """One pane, or two with a switch between them where there is no room for both; above them what could not be quoted."""
    if len(panes) == 2:
        align(*panes, pairs)
    body = _missing(missing) + "".join(pane.html() for pane in panes)
    if len(panes) == 2:
        body = f'{_align_switch(panes)}{_switch(panes, group)}<div class="rt-panes">{body}</div>{_legend(pairs)}'
    single = "" if len(panes) == 2 else " rt-single"
    return f'<div class="rt-show"><div class="rt-source{single}">{body}</div></div>'


def _missing(name: str) -> str:
    if not name:
        return ""
    path, _, thing = name.partition("::")
    where = f'<a href="{escape(_links.reference_file(path))}">{escape(path)}</a>'
    how = re.sub(r"`([^`]+)`", r"<code>\1</code>", HOW_TO_GET_IT)
    return f'<p class="rt-missing"><code class="rt-name">{escape(thing)}</code> is in {where}, {how}.</p>'


def _switch(panes: list[Pane], group: str) -> str:
    buttons = "".join(
        f'<label><input type="radio" name="{group}" class="rt-pick-{p.side}"{" checked" * (p.side == "theirs")}>'
        f" {p.title}</label>"
        for p in panes
    )
    return f'<div class="rt-switch" role="radiogroup" aria-label="Which source">{buttons}</div>'


def _align_switch(panes: list[Pane]) -> str:
    """A switch for two panes beside each other, where there is something to align."""
    if not any(pane.gaps for pane in panes):
        return ""
    return '<label class="rt-align-switch"><input type="checkbox" class="rt-align"> Align corresponding lines</label>'


def _legend(pairs: list[Pair]) -> str:
    if not any(pair.note for pair in pairs):
        return ""
    rows = "".join(
        f'<li class="rt-pair-{colour_of(p)}"><span class="rt-letter" data-letter="{p.letter}"></span>'
        f'<span class="rt-unseen">{p.letter}: </span>{escape(p.note)}</li>'
        for p in pairs
        if p.note
    )
    return f'<ul class="rt-legend" aria-label="Lines that correspond">{rows}</ul>'
