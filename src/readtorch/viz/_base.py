"""One base class for all figures: alive with a kernel (Jupyter) and without one (a static page).

Note [ One module, two homes ]
A figure's front end is a plain ES module, ``export default { render }``, that reads its state from
``model``. In Jupyter anywidget loads the module and connects ``model`` with the Python object. Everywhere
else the widget's text/html carries the state as JSON, the module's source, and ``mount.js``: eighty lines
that give the same module a ``model`` which lives in the page. No request leaves the page, so it works from
a file and without a network. In the book ``rt_static`` (book/_ext) takes the part between BEGIN and END out
of every page and puts it into one script for each kind of figure.
"""

from __future__ import annotations

import hashlib
import html
import json
from pathlib import Path

from readtorch.c10.extras import extra

with extra("viz", "readtorch.viz"):
    import anywidget
    import traitlets

STATIC = Path(__file__).parent / "static"
BEGIN, END = "<!--rt-assets-->", "<!--/rt-assets-->"
JUPYTERS_OWN_TRAITS = {"layout", "tabbable", "tooltip"}


def read_static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf8")


def front_end(name: str, *helpers: str) -> str:
    """The ES module of one figure. Modules cannot import one another here, so the helpers come along."""
    return "".join(read_static(f"{part}.js") for part in ("_common", *helpers, name))


def script_json(value) -> str:
    """JSON that may stand inside a <script> element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def short_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class StaticWidget(anywidget.AnyWidget):
    """An anywidget whose repr also carries a text/html that needs neither kernel nor network.

    A subclass sets ``_esm = front_end("its-file")``, ``fallback`` (the sentence that stands in its place
    without JavaScript) and its traits, tagged ``sync=True`` and holding JSON only. ``Note [ One module, two
    homes ]``

    kind: its name in addresses, that of its file; ``#fig=allocator&step=7`` moves an allocator explorer, and
    the second one of a page is ``allocator-2``. Every trait but ``data`` can be set so. ``Note [ Figures in
    the address ]`` in mount.js
    """

    _css = read_static("widgets.css")
    kind = ""
    fallback = "Interactive figure (needs JavaScript)."

    data = traitlets.Dict().tag(sync=True)

    def __init__(self, data: dict, title: str, **traits):
        super().__init__(data={"title": title, **data}, **traits)

    def static_assets(self) -> tuple[str, dict]:
        """The front end's key and source; the key changes with the source, so that no cache can be stale."""
        # read from the instance: anywidget turns the class attributes into traits
        esm, css = str(self._esm), str(self._css)
        key = f"{type(self).__name__.lower()}-{short_digest(esm + css)}"
        return key, {"esm": esm, "css": css, "cssKey": short_digest(css)}

    def static_state(self) -> dict:
        names = [k for k in self.keys if not k.startswith("_") and k not in JUPYTERS_OWN_TRAITS]
        return self.get_state(names)

    def fallback_html(self) -> str:
        return f'<p class="rt-fallback">{html.escape(self.fallback)}</p>'

    def static_html(self) -> str:
        key, assets = self.static_assets()
        return (
            f'<div class="rt-static" data-rt-module="{key}" data-rt-model="{self.model_id}" data-rt-name="{self.kind}">'
            f"{self.fallback_html()}"
            f'<script type="application/json" class="rt-state">{script_json(self.static_state())}</script>'
            "</div>"
            f'{BEGIN}<script type="application/json" data-rt-asset="{key}">{script_json(assets)}</script>'
            f"<script>{read_static('mount.js')}</script>{END}"
        )

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)
        if bundle is None:
            return None
        data, metadata = bundle
        return {**data, "text/html": self.static_html()}, metadata
