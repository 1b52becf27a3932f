"""The list of functions that a program runs, by the chapters that explain them. PyTorch has no such file."""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

from . import _citations, _links


def reading_order(book: Path) -> dict[str, tuple[str, str]]:
    """The chapters as `_toc.yml` has them: title -> (name of the file, its number or letter)"""
    names = {name: title for title, name in _citations.chapters(book).items()}
    listed = re.findall(
        r"file: book/(\w+)\n(?:\s+title: \"(\w+)\. )?", (book.parent / "_toc.yml").read_text(encoding="utf8")
    )
    return {names[name]: (name, number) for name, number in listed if name in names}


def by_chapter(functions, order) -> dict[str, dict[str, list]]:
    """title -> file -> functions: chapters as they are read, files and functions as they were entered."""
    grouped = {title: {} for title in order}
    for function in functions:
        grouped[function.chapter].setdefault(function.file, []).append(function)
    return {title: files for title, files in grouped.items() if files}


def functions_html(functions, book: Path) -> str:
    order = reading_order(book)
    grouped = by_chapter(functions, order)
    rows = [_row(*order[title], title, files) for title, files in grouped.items()]
    everything = [f for files in grouped.values() for group in files.values() for f in group]
    head = "".join(
        f'<th role="columnheader" scope="col">{text}</th>' for text in ("Chapter", "Files", "Functions", "Lines")
    )
    total = _counts("all", {f.file for f in everything}, everything)
    return (
        f'<div class="rt-show"><table class="rt-table rt-counts" role="table"><thead role="rowgroup"><tr role="row">{head}</tr>'
        f'</thead><tbody role="rowgroup">{"".join(rows)}{total}</tbody></table>'
        + "".join(_details(order[title][1], title, files) for title, files in grouped.items())
        + "</div>"
    )


def functions_text(functions) -> str:
    return "\n".join(f"{f.file}:{f.first}–{f.last} {f.name}" for f in functions)


def lines_of(functions) -> int:
    """How many lines functions have; those of a function within another one count once."""
    return len(
        {(f.name if f.file == "generated" else f.file, line) for f in functions for line in range(f.first, f.last + 1)}
    )


def _row(name, number, title, files):
    link = f'<a href="{name}.html">{escape(_numbered(number, title))}</a>'
    return _counts(link, files, [f for group in files.values() for f in group])


def _counts(first, files, functions):
    heads = (("Files", len(set(files) - {"generated"})), ("Functions", len(functions)), ("Lines", lines_of(functions)))
    cells = "".join(f'<td role="cell" data-head="{head}">{number:,}</td>' for head, number in heads)
    return f'<tr role="row"><td role="cell">{first}</td>{cells}</tr>'


def _numbered(number, title):
    return f"{number}. {title}" if number else title


def _details(number, title, files):
    """A chapter's functions, folded."""
    count = sum(map(len, files.values()))
    head = "".join(
        f'<th role="columnheader" scope="col">{text}</th>' for text in ("File", "Functions, as they are entered")
    )
    rows = "".join(_file_row(file, group) for file, group in files.items())
    return (
        f'<details class="rt-folded rt-chapter"><summary>{escape(_numbered(number, title))}: {count} function{"s" * (count > 1)}</summary>'
        f'<table class="rt-table rt-functions" role="table"><thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{rows}</tbody></table></details>'
    )


def _file_row(file, functions):
    items = "".join(f"<li>{_function(f)}</li>" for f in functions)
    name = "generated" if file == "generated" else f'<code class="rt-name">{escape(file).replace("/", "/<wbr>")}</code>'
    about = "texts that were written while the program ran" if file == "generated" else escape(functions[0].about)
    return f'<tr role="row"><td role="cell">{name} <span class="rt-about">{about}</span></td><td role="cell"><ul>{items}</ul></td></tr>'


def _function(f):
    name = f'<code class="rt-name">{re.sub(r"(?<=[.,(])", "<wbr>", escape(f.name))}</code>'
    if f.file == "generated":
        return f'{name} <span class="rt-where">{f.last} lines</span>'
    _, url = _links.permalink(_links.our_root() / f.file, f.first, f.last)
    lines = f"{f.first}–{f.last}" if f.last > f.first else f"{f.first}"
    where = f'<a href="{escape(url)}">{lines}</a>' if url else lines
    return f'{name} <span class="rt-where">{where}</span>'
