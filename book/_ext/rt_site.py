"""Repairs of the stock theme: what it loads, and what its pages say to those who do not see them."""

from __future__ import annotations

import os
import re
from pathlib import Path

# sphinx-thebe is always on in Jupyter Book 1: it names another host, and its script, added twice, throws.
# sphinx-design comes along with it; the book has no cards and tabs.
UNUSED = ("THEBE_JS_URL", "sphinx-thebe", "sphinx-design", "design-tabs.js")


def drop_unused_files(app, pagename, templatename, context, doctree):
    for kind in ("script_files", "css_files"):
        if files := context.get(kind):
            files[:] = [f for f in files if not any(word in _told_by(f) for word in UNUSED)]


def _told_by(file) -> str:
    return f"{getattr(file, 'filename', '')} {getattr(file, 'attributes', {}).get('body', '')}"


REWRITES = [
    # 1.5 MB of script for fifteen icons, which are in icons.css
    (re.compile(r"\s*<!-- So that users can add custom icons -->\s*<script [^>]*fontawesome\.js[^>]*></script>"), ""),
    # the stock search, for a dialog that searches while one types; ours opens the search page
    (re.compile(r'\s*<script src="[^"]*(?:searchtools|language_data|searchindex)\.js[^"]*"></script>'), ""),
    # the text that is seen (Search, Ctrl, K) must be part of the accessible name
    (re.compile(r'(<button class="btn search-button-field[^>]*?) title="Search" aria-label="Search"'), r"\1"),
    # the icons in the colour-mode button have titles that differ from its name
    (re.compile(r'(<i class="theme-switch [^>]*?)\s+title="[^"]*"></i>'), r'\1 aria-hidden="true"></i>'),
    # a folded cell's summary has a text already
    (re.compile(r'<summary aria-label="Toggle hidden content">'), "<summary>"),
    # the arrow beside a page with pages below it has no text
    (re.compile(r'<summary>(?=<span class="toctree-toggle")'), '<summary aria-label="Pages below">'),
    # an aside within the main text is no landmark; each footnote has its own role
    (re.compile(r'<aside class="footnote-list brackets">'), '<aside class="footnote-list brackets" role="none">'),
    # nor is a note in the margin
    (re.compile(r'<aside class="margin sidebar">'), '<aside class="margin sidebar" role="note">'),
    # the corner of a table, above the names of its rows, heads nothing
    (re.compile(r"<th( class=\"head[^\"]*\")?>\s*(?:<p></p>)?\s*</th>"), r"<td\1></td>"),
    # Markdown that a cell shows: its links to chapters are resolved by nobody
    (
        re.compile(r'<a class="reference external" href="([\w./-]+)\.md(#[^"]*)?"'),
        r'<a class="reference internal" href="\1.html\2"',
    ),
    # names, modules, punctuation and spaces of code have the colour of the text around them: a sixth of a page
    (re.compile(r'<span class="(?:n|nn|p|w)">([^<>]*)</span>'), r"\1"),
    # the site's name stands outside of every landmark
    (
        re.compile(r'<div class="sidebar-primary-items__start sidebar-primary__section">'),
        '<div class="sidebar-primary-items__start sidebar-primary__section" role="navigation" aria-label="Site">',
    ),
]


def rewrite_pages(app, exception):
    if exception or app.builder.format != "html":
        return
    for page in built_pages(app):
        old = page.read_text(encoding="utf8")
        new = repair(old)
        if new != old:
            page.write_text(new, encoding="utf8")


def built_pages(app) -> list[Path]:
    """The site's pages; among the static files are templates that end in .html, too."""
    out = Path(app.outdir)
    return [page for page in out.rglob("*.html") if "_static" not in page.relative_to(out).parts]


def repair(text: str) -> str:
    for pattern, replacement in REWRITES:
        text = pattern.sub(replacement, text)
    return text


def one_chapter_alone(app, config):
    """`make chapter`: links to chapters and to the glossary, which are not built this time, are not mistakes."""
    if os.environ.get("READTORCH_ONE_CHAPTER"):
        config.suppress_warnings = [*config.suppress_warnings, "myst.xref_missing", "ref.term"]


def setup(app):
    app.connect("config-inited", one_chapter_alone)
    app.connect("html-page-context", drop_unused_files, priority=950)
    app.connect("build-finished", rewrite_pages, priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
