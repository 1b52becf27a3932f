"""The Sphinx side of `readtorch.show`: one style sheet for the site instead of one in every panel."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform

from readtorch import show

SHEET = "rt-show.css"
EMBEDDED = re.compile(f"{re.escape(show.CSS_BEGIN)}.*?{re.escape(show.CSS_END)}", re.S)


class DropEmbeddedSheets(SphinxPostTransform):
    default_priority = 50  # after myst-nb has chosen which form of an output to show (4)

    def run(self, **kwargs):
        for node in list(self.document.findall(nodes.raw)):
            text = node.astext()
            if show.CSS_BEGIN in text:
                node.replace_self(nodes.raw("", EMBEDDED.sub("", text), format="html"))


def write_sheet(app):
    if app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        static.mkdir(parents=True, exist_ok=True)
        (static / SHEET).write_text(show.stylesheet(), encoding="utf8")


def setup(app):
    app.add_post_transform(DropEmbeddedSheets)
    app.add_css_file(SHEET)
    app.connect("builder-inited", write_sheet)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
