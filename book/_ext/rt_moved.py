"""Addresses that a page or a section once had. `rt_moved` in _config.yml says where each of them is now:

    book/autograd#backward: book/autograd#the-engine    a section has another title
    book/autograd#hooks: book/hooks#gradients           a section is on another page
    book/engine: book/autograd#the-engine               a page has become a section

Within a page the section gets the old anchor as a second one. From a page that is still there a script leads on, for what
follows # is not sent to a server. In place of a page that is gone stands one that leads on, without a script.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path

from sphinx.util import logging

logger = logging.getLogger(__name__)

LEAD_ON = """(() => {{
  const moved = {table};
  const follow = () => {{
    const now = moved[decodeURIComponent(location.hash.slice(1))];
    if (now) location.replace(now);
  }};
  addEventListener("hashchange", follow);
  follow();
}})();"""
GONE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={address}">
<title>{title}</title>
<style>:root {{ color-scheme: light dark; font-family: system-ui, sans-serif; }}</style>
</head>
<body><main><h1>This page has moved</h1><p><a href="{address}">{title}</a></p></main></body>
</html>
"""


def moves(app) -> list[tuple[str, str, str, str]]:
    """(old page, old anchor, page, anchor) of each address that leads to a page of this build."""
    apart = [(*old.partition("#")[::2], *new.partition("#")[::2]) for old, new in app.config.rt_moved.items()]
    return [move for move in apart if move[2] in app.env.found_docs]


def within_a_page(app, doctree):
    """Give sections their old anchors."""
    here = app.env.docname
    for old_page, old, page, anchor in moves(app):
        if old and old_page == page == here:
            if old in doctree.ids:
                logger.warning("rt_moved: %s#%s is still there", page, old, type="rt_moved")
            elif anchor in doctree.ids:
                doctree.ids[anchor]["ids"].append(old)


def check_targets(app, env):
    for _, _, page, anchor in moves(app):
        if anchor and anchor not in env.get_doctree(page).ids:
            logger.warning("rt_moved: there is no %s#%s", page, anchor, type="rt_moved")


def from_a_page(app, pagename, templatename, context, doctree):
    """Give a page the script that leads on from it."""
    here = [move for move in moves(app) if move[0] == pagename and move[1] and move[2] != pagename]
    if here and doctree is not None:
        table = {old: address(app, pagename, page, anchor) for _, old, page, anchor in here}
        body = LEAD_ON.format(table=json.dumps(table).replace("<", "\\u003c"))
        app.add_js_file(None, body=body)


def address(app, start: str, page: str, anchor: str) -> str:
    return app.builder.get_relative_uri(start, page) + (f"#{anchor}" if anchor else "")


def in_place_of_pages(app, exception):
    if exception or app.builder.format != "html":
        return
    for old_page, old, page, anchor in moves(app):
        if not old and old_page not in app.env.found_docs:
            file = Path(app.outdir) / f"{old_page}.html"
            file.parent.mkdir(parents=True, exist_ok=True)
            title = app.env.titles[page].astext()
            text = GONE.format(address=escape(address(app, old_page, page, anchor)), title=escape(title))
            file.write_text(text, encoding="utf8")


def setup(app):
    app.add_config_value("rt_moved", {}, "env")
    app.connect("doctree-read", within_a_page)
    app.connect("env-check-consistency", check_targets)
    app.connect("html-page-context", from_a_page)
    app.connect("build-finished", in_place_of_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
