"""The index of PyTorch objects, collected while the chapters are read.

Two things make an entry: a quotation (`show.source`, a row of `show.table`), which also gets an anchor to
come back to, and a name in the text, set as code, that PyTorch knows. The page is written anew whenever a
chapter has changed; a chapter's own cells need not run for that.
"""

from __future__ import annotations

import importlib
import re
from collections import defaultdict
from functools import cache
from html import escape, unescape
from pathlib import Path
from typing import NamedTuple

import rt_files
import rt_places
from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import readtorch
from readtorch.show import _citations, _links

PANEL = re.compile(r'(?=<div class="rt-source)|(?=<tr role="row">)')  # what stands together: two panes, a row
PLACE = re.compile(  # with its file: a list of one file's functions, which gives their lines alone, says it elsewhere
    r'<code class="rt-name">(?P<name>[^<]+)</code>\s*<span class="rt-where">'
    r'(?:<a (?:class="rt-where" )?href="(?P<url>[^"]+)">)?(?P<where>[^<:]+:[^<]+)<'
)
NAME = re.compile(r"(?:torch|nn|F|optim|Tensor|Module|cuda|distributed|dist|jit|autograd)(?:\.\w+)+")
SHORT = {  # what chapters write, and what it is short for
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "optim": "torch.optim",
    "Tensor": "torch.Tensor",
    "Module": "torch.nn.Module",
    "cuda": "torch.cuda",
    "distributed": "torch.distributed",
    "dist": "torch.distributed",
    "jit": "torch.jit",
    "autograd": "torch.autograd",
}
CLASS = re.compile(r"[A-Z]\w*[a-z]\w*(?=$|[(.])")  # `Linear`: a class, in the first of these rooms that has one
ROOMS = [
    "torch.nn",
    "torch.optim",
    "torch.optim.lr_scheduler",
    "torch.optim.swa_utils",
    "torch.utils.data",
    "torch.nn.parallel",
    "torch.autograd",
    "torch.jit",
    "torch",
]
MOST_LINKS = 4  # of one chapter


class Mention(NamedTuple):
    """One place in a chapter."""

    name: str  # PyTorch's name; ours where PyTorch has none
    docname: str
    anchor: str
    section: str
    quoted: bool
    theirs: rt_places.Place | None = None
    ours: tuple[str, rt_places.Place] | None = None  # our name, and where it is


# -- reading chapters -------------------------------------------------------------------------------


def collect(app, doctree):
    docname = app.env.docname
    if docname == app.config.root_doc or "kernelspec" not in app.env.metadata.get(docname, {}):
        return  # no chapter: the front page, this page itself, the glossary, the API reference
    mentions = [*quotations(doctree, docname), *names(doctree, docname)]
    kept(app.env)[docname] = mentions
    app.env.rt_index_changed = True


def kept(env) -> dict[str, list[Mention]]:
    if not hasattr(env, "rt_mentions"):
        env.rt_mentions = {}
    return env.rt_mentions


def forget(app, env, docname):
    kept(env).pop(docname, None)


def quotations(doctree, docname: str) -> list[Mention]:
    """What the page's panels and tables of places show; each gets an anchor."""
    found, taken = [], set()
    for node in list(doctree.findall(nodes.raw)):
        text = node.astext()
        if 'class="rt-name"' not in text:
            continue
        _, section = section_of(node)
        parts = PANEL.split(text)
        for i, part in enumerate(parts):
            places = [match.groupdict() for match in PLACE.finditer(part.replace("<wbr>", ""))]
            if places:
                anchor = unused(f"quoted-{slug(unescape(places[0]['name']))}", taken)
                parts[i] = part.replace('<code class="rt-name">', f'<code class="rt-name" id="{anchor}">', 1)
                found += mentions_of(places, docname, anchor, section)
        node.replace_self(nodes.raw("", "".join(parts), format="html"))
    return found


def mentions_of(places: list[dict], docname: str, anchor: str, section: str) -> list[Mention]:
    """The entries that one panel or row makes."""
    named = [
        (unescape(p["name"]), rt_places.Place(unescape(p["where"]), p["url"] and unescape(p["url"]))) for p in places
    ]
    named = [(name if re.search(r"\w", name) else place.text, place) for name, place in named]  # "…": the line says it
    theirs = [pair for pair in named if not pair[0].startswith("readtorch")]
    ours = next((pair for pair in named if pair[0].startswith("readtorch")), None)
    if not theirs and ours:
        twin = re.sub(r"^readtorch\b", "torch", ours[0])
        theirs = [(twin, rt_places.theirs(twin))] if rt_places.exists_there(twin) else [(ours[0], None)]
    return [Mention(name, docname, anchor, section, True, place, ours) for name, place in theirs]


def names(doctree, docname: str) -> list[Mention]:
    """PyTorch's names in the text: the first in each section."""
    found = {}
    for node in doctree.findall(nodes.literal):
        text = node.astext()
        match = NAME.match(text) or CLASS.match(text)
        if match and not isinstance(node.parent, nodes.title):
            anchor, section = section_of(node)
            name = in_full(match[0])
            if name and anchor:
                found.setdefault((name, anchor), Mention(name, docname, anchor, section, False, rt_places.theirs(name)))
    return list(found.values())


def in_full(name: str) -> str | None:
    """`nn.Linear`, `Linear` -> torch.nn.Linear; None for what PyTorch does not have."""
    first, _, rest = name.partition(".")
    if not rest:
        return next((f"{room}.{name}" for room in ROOMS if is_class(f"{room}.{name}")), None)
    full = f"{SHORT.get(first, first)}.{rest}"
    return full if rt_places.exists_there(full) else None


@cache
def is_class(name: str) -> bool:
    owner, _, last = name.rpartition(".")
    return isinstance(getattr(importlib.import_module(owner), last, None), type)


def section_of(node) -> tuple[str, str]:
    """-> (anchor, title) of the section around a node"""
    while node is not None and not (isinstance(node, nodes.section) and isinstance(node[0], nodes.title)):
        node = node.parent
    return (node["ids"][0], node[0].astext()) if node is not None else ("", "")


def slug(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def unused(anchor: str, taken: set[str]) -> str:
    number, free = 1, anchor
    while free in taken:
        number += 1
        free = f"{anchor}-{number}"
    taken.add(free)
    return free


# -- the page ---------------------------------------------------------------------------------------


class object_index(nodes.General, nodes.Element):
    """Stands for the table until every chapter has been read."""


class file_index(nodes.General, nodes.Element):
    """Likewise."""


class ObjectIndex(SphinxDirective):
    def run(self):
        return [object_index()]


class FileIndex(SphinxDirective):
    def run(self):
        return [file_index()]


def pages_to_write(app, env):
    """The index follows from the other pages, whether or not it has changed itself."""
    changed, env.rt_index_changed = getattr(env, "rt_index_changed", False), False
    return ["book/object_index"] if changed and "book/object_index" in env.all_docs else []


def fill(app, doctree, docname):
    for kind, table in ((object_index, objects_table), (file_index, files_table)):
        for node in list(doctree.findall(kind)):
            node.replace_self(nodes.raw("", table(app, docname), format="html"))


def objects_table(app, docname: str) -> str:
    entries = defaultdict(list)
    for mentions in kept(app.env).values():
        for mention in mentions:
            entries[mention.name].append(mention)
    groups = defaultdict(list)
    for name in sorted(entries, key=lambda name: (name.lower(), name)):
        groups[group_of(name, entries[name])].append(_object_row(app, docname, name, entries[name]))
    return _table("objects", ["Object", "Chapters", "PyTorch", "readtorch"], sorted(groups.items()))


def group_of(name: str, mentions: list[Mention]) -> str:
    """The room that an object belongs to, as a heading: `torch.nn.Module.__call__` -> torch.nn."""
    if name.startswith("readtorch"):
        return "In readtorch alone"
    if not name.startswith("torch.") or " " in name:
        file = next((m.theirs.text.partition(":")[0] for m in mentions if m.theirs), "")
        return "C++" if file.endswith((".cpp", ".h", ".hpp", ".cu", ".cuh")) else "Tables and files"
    room = [part for part in name.split(".")[:-1] if part.islower() and not part.startswith("__")][:3]
    return ".".join(room)


def _object_row(app, docname: str, name: str, mentions: list[Mention]) -> list[str]:
    theirs = next((m.theirs for m in mentions if m.theirs), None)
    ours = dict(m.ours for m in mentions if m.ours)
    if not ours and (twin := rt_places.ours(name)):
        ours = {name: twin}
    same = {name, re.sub(r"^torch\b", "readtorch", name)}
    places = [_place(place, "" if label in same else label) for label, place in sorted(ours.items())]
    return [escape(name), _chapters(app, docname, mentions), _place(theirs), _several(places)]


def _chapters(app, docname: str, mentions: list[Mention]) -> str:
    """A line for each chapter: the first link with its title, further ones with their sections."""
    by_chapter = defaultdict(dict)
    for mention in mentions:
        by_chapter[mention.docname].setdefault((not mention.quoted, mention.section), mention)
    order = {name: place for place, name in enumerate(app.env.toctree_includes.get(app.config.root_doc, []))}
    lines = []
    for chapter in sorted(by_chapter, key=lambda name: (order.get(name, len(order)), name)):
        found = [mention for _, mention in sorted(by_chapter[chapter].items())]
        shown = ([m for m in found if m.quoted] or found)[:MOST_LINKS]
        links = [_link(app, docname, m, title_of(app, chapter) if n == 0 else str(n + 1)) for n, m in enumerate(shown)]
        lines.append(" ".join(links))
    return _several(lines)


def title_of(app, docname: str) -> str:
    return app.env.titles[docname].astext() if docname in app.env.titles else docname


def _link(app, docname: str, mention: Mention, text: str) -> str:
    url = f"{app.builder.get_relative_uri(docname, mention.docname)}#{mention.anchor}"
    shown = f"<b>{escape(text)}</b>" if mention.quoted else escape(text)
    label = "" if len(text) > 2 else f' aria-label="{text}: {escape(mention.section)}"'
    return f'<a href="{escape(url)}" title="{escape(mention.section)}"{label}>{shown}</a>'


def _place(place, label: str = "") -> str:
    if place is None:
        return ""
    name = f"<code>{escape(label)}</code> " if label else ""
    return name + linked(place.text, place.url)


# Note [ Addresses of lines ]
#
# The page names thousands of lines as `path:first–last`. Their addresses repeat these paths after the same beginning, and
# would be a third of the page. So the table knows the two beginnings, a place is an <a> without an address, and rt_index.js
# puts the address there. Without the script the places can still be read. An address that does not follow from its text is
# written out.


def linked(text: str, url: str | None) -> str:
    if url is None:
        return escape(text)
    return f"<a>{escape(text)}</a>" if url == address(text) else f'<a href="{escape(url)}">{escape(text)}</a>'


def address(place: str) -> str:
    """What rt_index.js makes of a place: `torch/nn/init.py:3–7` -> https://…/torch/nn/init.py#L3-L7"""
    path, _, lines = place.partition(":")
    first, _, last = lines.partition("–")
    fragment = (f"#L{first}" if first else "") + (f"-L{last}" if last else "")
    return f"{beginnings()['ours' if path.startswith('src/') else 'theirs']}{path}{fragment}"


def beginnings() -> dict[str, str]:
    """Of the addresses of PyTorch's lines and, where it is known where they are published, of ours."""
    _, ours = _links.permalink(_links.our_root() / "__init__.py", 1, 1)
    return {"theirs": _links.reference_file(""), "ours": ours.partition("src/readtorch/__init__.py")[0] if ours else ""}


# -- files ------------------------------------------------------------------------------------------


def files_table(app, docname: str) -> str:
    """PyTorch's files, the files of ours that stand for them, and the chapters that say so."""
    package = Path(next(iter(readtorch.__path__)))
    entries = defaultdict(lambda: (set(), set()))
    explained = {docstring.owner: _citations.titles(docstring.text) for docstring in docstrings(package)}
    for docstring in docstrings(package):
        if docstring.line > 1:  # of a function or class
            continue
        for file in _citations.files(docstring.text):
            ours, chapters = entries[file]
            ours.add(docstring.path)
            chapters.update(nearest(explained, docstring.owner))
    groups = defaultdict(list)
    for file in sorted(entries):
        ours, cited = entries[file]
        groups["/".join(file.split("/")[:3] if file.count("/") > 2 else file.split("/")[:2])].append(
            [_reference_file(file), _cited(app, docname, cited), _several([_our_file(path) for path in sorted(ours)])]
        )
    return _table("files", ["File", "Chapters", "readtorch"], sorted(groups.items()))


def nearest(explained: dict[str, list[str]], owner: str) -> list[str]:
    """The chapters that a docstring cites, or the one around it, up to the room."""
    while owner.count("."):
        if titles := explained.get(owner):
            return titles
        owner = owner.rpartition(".")[0]
    return []


@cache
def docstrings(package: Path) -> list[_citations.Docstring]:
    return list(_citations.docstrings(package))


def _reference_file(path: str) -> str:
    kind = "blob" if "." in path.rpartition("/")[2] else "tree"
    return linked(path, None if "*" in path else f"{_links.PYTORCH}/{kind}/{_links.torch_tag()}/{path}")


def _our_file(path: Path) -> str:
    where, url = _links.permalink(path, 1, 1)
    return linked(where, url and url.partition("#")[0])


def _cited(app, docname: str, titles: set[str]) -> str:
    known = _citations.chapters(Path(app.srcdir) / "book")
    links = []
    for title in sorted(titles):
        chapter = f"book/{known[title]}" if title in known else None
        if chapter in app.env.all_docs:
            links.append(f'<a href="{app.builder.get_relative_uri(docname, chapter)}">{escape(title)}</a>')
    return _several(links)


# -- tables -----------------------------------------------------------------------------------------


def _table(name: str, heads: list[str], groups) -> str:
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    bodies = "".join(_group(title, len(heads), rows) for title, rows in groups)
    bodies = re.sub("</(td|tr|li)>", "", bodies)  # HTML needs none of them, and 13,000 of them are a tenth of the page
    bases = "".join(f' data-{whose}="{escape(url)}"' for whose, url in beginnings().items())
    return (
        f'<div class="rt-filter" role="search" aria-label="Filter {name}" hidden><label for="rt-filter-{name}">Filter</label>'
        f'<input id="rt-filter-{name}" data-table="rt-index-{name}" type="text" autocomplete="off" spellcheck="false">'
        '<output aria-live="polite"></output></div>'
        f'<table class="rt-index" id="rt-index-{name}"{bases}><thead><tr>{head}</tr></thead>{bodies}</table>'
    )


def _group(title: str, columns: int, rows: list[list[str]]) -> str:
    cells = ("".join(f"<td>{cell}</td>" for cell in row) for row in rows)
    body = "".join(f"<tr>{row}</tr>" for row in cells)
    return f'<tbody><tr><th scope="rowgroup" colspan="{columns}">{escape(title)}</th></tr>{body}</tbody>'


def _several(lines: list[str]) -> str:
    """What a cell holds: a list, if it is more than one thing."""
    return f"<ul>{''.join(f'<li>{line}</li>' for line in lines)}</ul>" if len(lines) > 1 else "".join(lines)


# -- Sphinx -----------------------------------------------------------------------------------------


def add_script(app, pagename, templatename, context, doctree):
    if pagename == "book/object_index":
        app.add_js_file("rt_index.js", loading_method="defer")


def setup(app):
    app.add_directive("object-index", ObjectIndex)
    app.add_directive("file-index", FileIndex)
    app.add_node(object_index)
    app.add_node(file_index)
    app.add_css_file("rt_index.css")
    app.connect("builder-inited", rt_files.copying("rt_index.css", "rt_index.js"))
    app.connect("doctree-read", collect)
    app.connect("env-purge-doc", forget)
    app.connect("env-updated", pages_to_write)
    app.connect("doctree-resolved", fill)
    app.connect("html-page-context", add_script)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
