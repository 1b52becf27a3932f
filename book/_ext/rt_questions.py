"""The page "Questions": a field above it leaves the questions that hold the words that were typed.

`questions.html?q=retain_graph` opens the page so; without the script it shows all of them.
"""

from __future__ import annotations

import rt_files

PAGE = "book/questions"


def add_files(app, pagename, templatename, context, doctree):
    if pagename == PAGE:
        app.add_css_file("rt_questions.css")
        app.add_js_file("rt_questions.js", loading_method="defer")


def setup(app):
    app.connect("builder-inited", rt_files.copying("rt_questions.css", "rt_questions.js"))
    app.connect("html-page-context", add_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
