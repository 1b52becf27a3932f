"""The Sphinx side of `readtorch.show`: one style sheet for the site instead of one in every panel, and cells that compare
folded into the line that says the outcome."""

from __future__ import annotations

import re
from pathlib import Path

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from readtorch import show
from readtorch.show import _generated

LOG = logging.getLogger(__name__)
SHEET = "rt-show.css"
EMBEDDED = re.compile(f"{re.escape(show.CSS_BEGIN)}.*?{re.escape(show.CSS_END)}", re.S)


class DropEmbeddedSheets(SphinxPostTransform):
    default_priority = 50  # after myst-nb has chosen which form of an output to show (4)

    def run(self, **kwargs):
        for node in list(self.document.findall(nodes.raw)):
            text = node.astext()
            if show.CSS_BEGIN in text:
                node.replace_self(raw(EMBEDDED.sub("", text)))


class FoldComparisons(SphinxPostTransform):
    """Move the code of a cell that ends in `show.same` into its line, in place of the theme's "Show code cell source"."""

    default_priority = 190  # before myst-nb folds inputs (199)

    def run(self, **kwargs):
        for line in list(self.document.findall(nodes.raw)):
            before, slot, after = line.astext().partition(show.CODE_SLOT)
            if slot:
                output = nodes.container("", raw(before), *taken_code(line), raw(after), classes=line["classes"])
                line.parent.replace(line, output)


def raw(html: str) -> nodes.raw:
    return nodes.raw("", html, format="html")


def taken_code(output: nodes.Node) -> list[nodes.Node]:
    """The code that a folded cell's output belongs to, out of its cell."""
    cell = output
    while cell is not None and cell.get("nb_element") != "cell_code":
        cell = cell.parent
    if cell is None or not cell.attributes.pop("hide_mode", ""):
        return []
    code = [part for part in cell.children if part.get("nb_element") == "cell_code_source"]
    for part in code:
        cell.remove(part)
    return code


def write_sheet(app):
    if app.builder.format == "html":
        static = Path(app.outdir) / "_static"
        static.mkdir(parents=True, exist_ok=True)
        (static / SHEET).write_text(show.stylesheet(), encoding="utf8")


# Of each kind some: functions, in-place forms, views.
ASKED = ["add.Tensor", "mm", "index_select", "add_.Tensor", "relu_", "view", "transpose.int", "expand"]


def check_places(app, env):
    """Quoted C++ that was generated here is what the library was built from: its dispatcher names the very lines."""
    if not _generated.are_there():
        return
    import torch

    for operator in ASKED:
        for problem in _generated.misplaced(operator, torch._C._dispatch_dump_table(f"aten::{operator}")):
            LOG.warning("generated C++ is not that of the installed PyTorch: %s", problem, type="rt_source")


def setup(app):
    app.add_post_transform(DropEmbeddedSheets)
    app.add_post_transform(FoldComparisons)
    app.add_css_file(SHEET)
    app.connect("builder-inited", write_sheet)
    app.connect("env-check-consistency", check_places)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
