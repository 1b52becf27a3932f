"""Quote PyTorch's source and ours, in a notebook and in the book.

PyTorch has no such room.

Chapters never copy code: they name an object, and the text is taken from the installed files when the cell
runs. A digest of the quoted text, written beside the line numbers that refer to it, makes the cell fail when
either side has changed, so that no mark points at a line that has moved.

    show.source("torch.nn.Module.__setattr__", ours="readtorch.nn.Module.__setattr__")
    show.table([("registers what you assign", "torch.nn.Module.__setattr__", "readtorch.nn.Module.__setattr__")])

`python -m readtorch.show NAME` prints an object's lines as they are counted here, and its digest.
CONTRIBUTING.md has the recipes.
"""

from __future__ import annotations

import itertools
import re
from html import escape
from importlib import resources
from pathlib import Path

from readtorch.show import _links, _program, _same, _stack
from readtorch.show._functions import functions_html, functions_text
from readtorch.show._locate import Quote, is_ours, locate, parse_place
from readtorch.show._render import HOW_TO_GET_IT, Pair, Pane, panel
from readtorch.show._source_tree import NoTree

__all__ = ["checkout", "digest", "functions", "program", "same", "source", "stack", "table"]

# The book's build moves what stands between these into one file for the whole site.
CSS_BEGIN, CSS_END = "<!--rt-show-css-->", "<!--/rt-show-css-->"
# And here it puts the code of a cell that compares.
CODE_SLOT = "<!--rt-show-code-->"
_serial = itertools.count(1)


def stylesheet() -> str:
    return resources.files(__name__).joinpath("show.css").read_text(encoding="utf8")


class _Display:
    """What a cell shows: HTML in a notebook and in the book, plain text elsewhere."""

    html: str
    text: str

    def _repr_html_(self) -> str:
        return f"{CSS_BEGIN}<style>{stylesheet()}</style>{CSS_END}{self.html}"

    def __repr__(self) -> str:
        return self.text


class source(_Display):
    """The source of one object, or of PyTorch's and ours side by side.

    `name` and `ours` name what is quoted (see `locate`). All line numbers count from the object's first line:

    keep, ours_keep    the lines to show, "1, 10-22"; the rest is folded and opens in place.
                       Without it only a long docstring is folded.
    emph, ours_emph    the lines to point at
    pairs              which lines do the same: ["11-15 ~ 7-11: a Parameter is registered", "22 ~ 13-14"];
                       each gets a letter, and the words after the colon stand in a legend
    digest,            of the quoted text. Required with two sides, and wherever lines are named;
    ours_digest        a wrong or missing one raises ValueError, which says the one to write.
    release            of PyTorch, that lines and digest are true for, if it is not the installed one's: C++ that no
                       wheel ships is quoted from a source tree, which may be older
    also               {release: {"digest": …, "keep": …, "emph": …, "pairs": …}}: what is true for another one

    In a release for which nothing is known the text stands without letters and folds. Where the source cannot be had, one
    line says how to get it.
    """

    def __init__(
        self,
        name,
        ours=None,
        *,
        keep="",
        emph="",
        ours_keep="",
        ours_emph="",
        pairs=(),
        digest=None,
        ours_digest=None,
        release=None,
        also=None,
    ):
        known = {release or _links.torch_release(): {"keep": keep, "emph": emph, "pairs": pairs, "digest": digest}} | (
            also or {}
        )
        quote = _quoted(name)
        marks = known.get(quote.release if quote else None, {}) if not is_ours(name) else next(iter(known.values()))
        pairs, digest = _read_pairs(marks.get("pairs", ())), marks.get("digest")
        keep, emph = marks.get("keep", ""), marks.get("emph", "")
        panes, wanted = [], []
        if quote:
            panes.append(_pane(quote, keep, emph, [(pair, pair.theirs) for pair in pairs]))
            counted = bool(marks and (ours or keep or emph))
            wanted.append(("digest", quote, digest, counted))
        if ours:
            panes.append(_pane(locate(ours), ours_keep, ours_emph, [(pair, pair.ours) for pair in pairs]))
            wanted.append(("ours_digest", panes[-1].quote, ours_digest, True))
        elif pairs or ours_keep or ours_emph or ours_digest:
            raise ValueError("pairs and ours_… need ours=, the name of our object")
        _check_digests(wanted)
        missing = "" if quote else name
        self.html = panel(panes, pairs, f"rt-show-{next(_serial)}", missing)
        self.text = "\n\n".join("\n".join([f"# {p.quote.where}", *p.quote.lines]) for p in panes)
        if missing:
            self.text = f"# {missing}, {HOW_TO_GET_IT}\n\n{self.text}".rstrip()


def checkout() -> Path:
    """The folder that `book`, `tests` and `benchmarks` stand in, for chapters that show recorded runs and results.

    It is the repository's; an installed package has brought along what the chapters read.
    """
    return _links.checkout()


def digest(name: str) -> str:
    """The eight letters that `source` wants to see for this object."""
    return locate(name).digest


def _quoted(name: str) -> Quote | None:
    """None for what stands in PyTorch's repository only, where there is none of its source trees."""
    try:
        return locate(name)
    except NoTree:
        return None


def _pane(quote: Quote, keep: str, emph: str, pairs: list[tuple[Pair, list[range]]]) -> Pane:
    side, title = ("ours", "readtorch") if is_ours(quote.name) else ("theirs", f"PyTorch {quote.release}")
    if quote.name.startswith("readtorch.mini."):
        title = "your program"
    pane = Pane(side, title, quote, keep=_ranges(keep, quote), emphasis=_lines(_ranges(emph, quote)))
    for pair, ranges in pairs:
        for part in ranges:
            _inside(part, quote)
            pane.pairs.update(dict.fromkeys(part, pair))
            pane.openings.add(part.start)
    return pane


def _check_digests(wanted: list[tuple[str, Quote, str | None, bool]]) -> None:
    problems = []
    for option, quote, given, required in wanted:
        if given is None and required:
            problems.append(f'{quote.name} is quoted without its digest: write {option}="{quote.digest}"')
        elif given is not None and given != quote.digest:
            problems.append(
                f"the source of {quote.name} has changed: read it again, put the line numbers right, "
                f'then write {option}="{quote.digest}" (now "{given}")'
            )
    if problems:
        raise ValueError("\n".join(problems))


def _read_pairs(pairs) -> list[Pair]:
    if isinstance(pairs, str):
        pairs = [pair for pair in pairs.split(";") if pair.strip()]
    return [_read_pair(chr(ord("A") + i), text) for i, text in enumerate(pairs)]


def _read_pair(letter: str, text: str) -> Pair:
    lines, _, note = text.partition(":")
    theirs, tilde, ours = lines.partition("~")
    if not tilde:
        raise ValueError(f'a pair looks like "11-15 ~ 7-11: what they do", not like {text!r}')
    return Pair(letter, _split(theirs), _split(ours), note.strip())


def _ranges(text: str, quote: Quote) -> list[range]:
    parts = [_inside(part, quote) for part in _split(text)]
    for before, after in itertools.pairwise(parts):
        if after.start < before.stop:
            raise ValueError(f"{quote.name}: {text!r} is not in rising order")
    return parts


def _split(text: str) -> list[range]:
    parts = []
    for part in re.split(r"[,\s]+", text.strip()) if text.strip() else []:
        if not re.fullmatch(r"\d+(-\d+)?", part):
            raise ValueError(f'lines look like "3, 10-22", not like {text!r}')
        first, _, last = part.partition("-")
        parts.append(range(int(first), int(last or first) + 1))
    return parts


def _inside(part: range, quote: Quote) -> range:
    if not 1 <= part.start < part.stop <= len(quote.lines) + 1:
        raise ValueError(f"{quote.name} has lines 1-{len(quote.lines)}, not {part.start}-{part.stop - 1}")
    return part


def _lines(parts: list[range]) -> set[int]:
    return {i for part in parts for i in part}


class stack(_Display):
    """The C++ functions that a call of PyTorch's runs through, as PyTorch itself prints them: the outermost first.

    program: statements that end in an error, for only errors carry their stack; `torch` is imported.
    notes: {function: what it does}, or a list: what it does each time that it is on the stack. ValueError unless these are on the
    stack in this order: what a chapter says of a call stays true.
    links: {function: address}, the section of the page that reads it, say.
    Without `addr2line` one line says so.
    """

    def __init__(self, program, *, notes=None, links=None):
        try:
            self.frames = _stack.frames(program)
        except _stack.NoNames as missing:
            self.frames, self.text = (), str(missing)
            self.html = f'<div class="rt-show"><p>{escape(self.text)}</p></div>'
            return
        _stack.check(self.frames, list(notes or ()))
        self.html = _stack_html(program, self.frames, notes or {}, links or {})
        self.text = "\n".join(frame.name for frame in self.frames)


def _stack_html(program: str, frames, notes: dict, links: dict) -> str:
    later = {name: iter(note) for name, note in notes.items() if not isinstance(note, str)}

    def row(frame):
        note = _of(frame, notes)
        note = note if note is None or isinstance(note, str) else next(_of(frame, later), None)
        return _frame(frame, note, _of(frame, links))

    rows = "".join(map(row, frames))
    label = f"Functions on the stack of {program}"
    return f'<div class="rt-show"><ol class="rt-stack" aria-label="{escape(label)}">{rows}</ol></div>'


def _of(frame, table: dict) -> str | None:
    return next((value for name, value in table.items() if f"::{frame.name}".endswith(f"::{name}")), None)


def _frame(frame, note: str | None, link: str | None) -> str:
    name = f'<code class="rt-name">{_breakable(frame.name, "::")}</code>'
    if link:
        name = f'<a href="{escape(link)}">{name}</a>'
    return f"<li>{name}{f' <span>{_marked(note)}</span>' if note else ''}</li>"


class same(_Display):
    """Run the cells before this one with readtorch, too, and say that it showed the same: Note [ Cells that run twice ].

        show.same("values, names, the error's words")

    what: what there was to compare, as the page says it. cells: how many of them; 0 if the cell itself has asserted it.
    Raises AssertionError with both outputs where they differ.
    The line opens: it says what was done, and in the book shows the code of its own cell.
    """

    def __init__(self, what: str = "output", cells: int = 1):
        if cells:
            _same.compare(_same.cells_before(cells))
        self.text = f"✓ the same in readtorch: {what}"
        self.html = (
            f'<div class="rt-show"><details class="rt-same"><summary>{escape(self.text)}</summary>'
            f"<p>{_same.how(cells)}</p>{CODE_SLOT}</details></div>"
        )


class program(_Display):
    """The reader's own program, folded: modules of `readtorch.mini`, and what they import as a list of chapters, with the number
    of lines of all.

    show.program("tensor")
    """

    def __init__(self, *modules: str):
        found = _program.quotes(*modules)
        self.text = "\n\n".join([_program.headline(found), *("\n".join(quote.lines) for quote in found)])
        self.html = _program.program_html(found, modules, checkout() / "book")


class table(_Display):
    """The "Where to read it" table: what, where PyTorch has it, and where we have it.

    A row is (what, theirs) or (what, theirs, ours). What is found by name gets its file and lines by itself.
    What PyTorch writes in C++ is given by hand as "torch::autograd::Engine::execute @ path/file.cpp:10-20",
    with the lines of the release's tag. None leaves a cell empty.
    """

    def __init__(self, rows):
        rows = [(what, *(_place(name) for name in names)) for what, *names in rows]
        width = max(len(row) for row in rows)
        heads = ["What", f"In PyTorch {_links.torch_release()}", "In readtorch"][:width]
        rows = [(*row, *[None] * (width - len(row))) for row in rows]
        self.html = _table_html(heads, rows)
        self.text = "\n".join(_table_text(row) for row in rows)


class functions(_Display):
    """The functions that a program runs, by the chapters that explain them.

    recorded: what `readtorch.viz.record_core` gives; book: the folder of the chapters, for their titles and their order, if it is
    not the checkout's.
    """

    def __init__(self, recorded, book=None):
        self.html = functions_html(recorded, Path(book).resolve() if book else checkout() / "book")
        self.text = functions_text(recorded)


def _place(name: str | None) -> tuple[str, str, str | None] | None:
    """-> (name, path:lines, URL)"""
    if name is None:
        return None
    label, at, place = name.partition(" @ ")
    if at:
        path, first, last = parse_place(place)
        lines = f"{first}–{last}" if last > first else f"{first}"
        return label.strip(), f"{path}:{lines}", _links.reference(path, first, last)
    quote = locate(name)
    return quote.name, quote.where, quote.url


def _table_html(heads, rows) -> str:
    head = "".join(f'<th role="columnheader" scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr role="row"><td role="cell">{_marked(what)}</td>'
        + "".join(_cell(head, place) for head, place in zip(heads[1:], places, strict=True))
        + "</tr>"
        for what, *places in rows
    )
    return (
        '<div class="rt-show"><table class="rt-table" role="table"><thead role="rowgroup"><tr role="row">'
        f'{head}</tr></thead><tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _cell(head: str, place) -> str:
    if place is None:
        return '<td role="cell" class="rt-none">–</td>'
    name, where, url = place
    link = f'<a href="{escape(url)}">{_breakable(where, "/|:")}</a>' if url else _breakable(where, "/|:")
    return (
        f'<td role="cell" data-head="{escape(head)}"><code class="rt-name">{_breakable(name, "::|[.:]")}</code> '
        f'<span class="rt-where">{link}</span></td>'
    )


def _breakable(text: str, separator: str) -> str:
    """A long name or path may go on in the next line after a separator, rather than within a word."""
    return re.sub(rf"(?<=\w)({separator})(?=\w)", r"\1<wbr>", escape(text))


def _marked(text: str) -> str:
    """`code` in a row's first cell."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text))


def _table_text(row) -> str:
    what, *places = row
    return "  ".join([what, *(f"{place[0]} ({place[1]})" for place in places if place)])
