"""Scripts and style sheets that an extension keeps beside itself: the site gets copies."""

from __future__ import annotations

from pathlib import Path

HERE = Path(__file__).parent


def copying(*names: str):
    """A listener for `builder-inited` that copies these files of this folder to the site's static ones."""

    def copy(app):
        if app.builder.format == "html":
            static = Path(app.outdir) / "_static"
            static.mkdir(parents=True, exist_ok=True)
            for name in names:
                (static / name).write_text((HERE / name).read_text(encoding="utf8"), encoding="utf8")

    return copy
