"""The book's side of the figures of ``readtorch.viz``: pages that need no kernel and no other host.

* Each figure's text/html carries its front end, so that it works alone. Here that part moves out of the
  pages into one script for each kind of figure, loaded once by the reader's browser and cached; the style
  sheet, which all figures share, becomes one file.
* The widget state that myst-nb adds for Jupyter's own front end, and that front end (from a CDN), are
dropped.
* Links that move a figure, ``[event 1,311](#fig=allocator&step=1311)`` or with a chapter's file before the #, stay
as they are: they name no place of the page, and mount.js follows them.
* A page with a widget of another library fails the strict build, since it would show nothing without a
kernel.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

LOG = logging.getLogger(__name__)
FOLDER = "readtorch"  # under _static
ASSETS = re.compile(r"<!--rt-assets-->(.*?)<!--/rt-assets-->", re.DOTALL)
ASSET = re.compile(r'<script type="application/json" data-rt-asset="([^"]+)">(.*?)</script>', re.DOTALL)
MOUNT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
EXPORT = re.compile(r"^export default (\{[^;]*\});?\s*$", re.MULTILINE)
OURS = {"AnyModel", "LayoutModel"}


class KeepFigureLinks(SphinxTransform):
    """Of links within the page MyST asks where they lead (at priority 879)."""

    default_priority = 870

    def apply(self, **kwargs):
        for link in self.document.findall(nodes.reference):
            if link.get("refuri", "").startswith("#fig="):
                del link["id_link"]
                link["internal"] = True


class ResolveFigureLinks(SphinxPostTransform):
    """… and of links to another page, when they are resolved (at priority 9)."""

    default_priority = 8

    def run(self, **kwargs):
        for link in list(self.document.findall(addnodes.pending_xref)):
            fragment = link.get("reftargetid") or ""
            if fragment.startswith("fig="):
                page = self.app.builder.get_relative_uri(self.env.docname, link["reftarget"])
                link.replace_self(nodes.reference("", "", *link.children, refuri=f"{page}#{fragment}", internal=True))


class HoistAssets(SphinxPostTransform):
    """Take the front ends out of a page. Runs after myst-nb has chosen the mime type (at priority 4)."""

    default_priority = 50

    def run(self, **kwargs):
        if self.app.builder.format != "html":
            return
        files = {}  # a dict, for its order
        for node in list(self.document.findall(nodes.raw)):
            html = node.astext()
            for part in ASSETS.findall(html):
                files.update((name, None) for name in write_assets(Path(self.app.outdir), part))
            if ASSETS.search(html):
                node.replace_self(nodes.raw("", ASSETS.sub("", html), format="html"))
        self.document["rt_files"] = list(files)


def write_assets(outdir: Path, part: str) -> list[str]:
    """Write the scripts and the style sheet that one figure needs; their names, without mount.js."""
    folder = outdir / "_static" / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for key, source in ASSET.findall(part):
        asset = json.loads(source)
        for name, text in {f"{asset['cssKey']}.css": asset["css"], f"{key}.js": classic_script(key, asset)}.items():
            (folder / name).write_text(text, encoding="utf8")
            written.append(name)
    (folder / "mount.js").write_text(MOUNT.search(ASSET.sub("", part))[1], encoding="utf8")
    return written


def classic_script(key: str, asset: dict) -> str:
    """The ES module as a function in a classic script: browsers refuse modules from file://."""
    body, exports = EXPORT.subn(r"return \1;", asset["esm"])
    if exports != 1 or re.search(r"^\s*(import|export)\b", body, re.MULTILINE):
        raise ValueError(f"{key}: a front end needs exactly one `export default {{...}}` and no import")
    return (
        "(window.__readtorch=window.__readtorch||{assets:{},models:{},modules:{}})"
        f'.assets[{json.dumps(key)}]={{make:function(){{"use strict";\n{body}\n}}}};\n'
    )


def add_page_files(app, pagename, templatename, context, doctree):
    files = doctree.get("rt_files") if doctree is not None else None
    for name in files or []:
        if name.endswith(".css"):
            app.add_css_file(f"{FOLDER}/{name}", priority=900)
        else:
            app.add_js_file(f"{FOLDER}/{name}", loading_method="defer")
    if files:
        app.add_js_file(f"{FOLDER}/mount.js", loading_method="defer", priority=900)


def drop_widget_state(app, doctree):
    """Remove the state that Jupyter's front end would read, and refuse widgets that only it could show."""
    docname = app.env.docname
    scripts = getattr(app.env, "nb_metadata", {}).get(docname, {}).get("js_files", {})
    state = scripts.get("ipywidgets_state")
    if state is None:
        return
    models = json.loads(state[1]["body"].replace(r"<\/script>", "</script>"))["state"].values()
    foreign = sorted({model["model_name"] for model in models} - OURS)
    if foreign:
        LOG.warning(
            "widgets that a page without a kernel cannot show: %s",
            ", ".join(foreign),
            location=docname,
            type="rt_static",
        )
    for name in [name for name in scripts if name.startswith("ipywidgets")]:
        del scripts[name]


def setup(app):
    app.add_transform(KeepFigureLinks)
    app.add_post_transform(ResolveFigureLinks)
    app.add_post_transform(HoistAssets)
    app.connect("doctree-read", drop_widget_state)
    app.connect("html-page-context", add_page_files)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
