"""Still pictures of figures, in SVG: what stands in a figure's place without JavaScript, and on GitHub.

The picture is an <img>, so it has a ground of its own and its colours follow the reader's system. Use the
classes of STYLE for what has a meaning: pale (part of it), pick (the one looked at), gold (something to
notice), free (not part of it, dashed), dim (small words).
"""

from __future__ import annotations

import html
from urllib.parse import quote

STYLE = """
svg{--fg:#1b1f24;--dim:#57606a;--bg:#fff;--soft:#f3f5f7;--line:#6e7781;--blue:#0b6bb0;--pale:#dceefb;--on:#fff;--gold:#9a6700;--note:#fff1c9}
@media(prefers-color-scheme:dark){svg{--fg:#e6edf3;--dim:#a3adb8;--bg:#14181e;--soft:#1f252d;--line:#8b949e;--blue:#58b0f0;--pale:#17344c;
--on:#06121d;--gold:#e3b341;--note:#4a3a10}}
text{fill:var(--fg);font:13px system-ui,sans-serif}.mono{font-family:ui-monospace,monospace;font-size:12px}.dim{fill:var(--dim);font-size:12px}
.mid{text-anchor:middle}.end{text-anchor:end}.bold{font-weight:600}
rect,path,line,circle{stroke:var(--line);fill:var(--soft)}.ground{fill:var(--bg);stroke:none}.bare{fill:none}
.pale{fill:var(--pale);stroke:var(--blue)}.pick{fill:var(--blue);stroke:var(--blue)}text.pick{fill:var(--on);stroke:none;font-weight:600}
.gold{fill:var(--note);stroke:var(--gold);stroke-dasharray:4 2}.free{fill:var(--bg);stroke-dasharray:3 2}
"""


def tag(kind: str, *children: str, **attributes) -> str:
    """An element; class_ is written class, stroke_width is written stroke-width. Children are SVG already."""
    written = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for name, value in attributes.items()
    )
    return f"<{kind}{written}>{''.join(children)}</{kind}>"


def text(words, x: float, y: float, class_: str = "") -> str:
    return tag("text", html.escape(str(words), quote=False), x=x, y=y, class_=class_)


def box(x: float, y: float, width: float, height: float, class_: str = "", words: str = "") -> str:
    """A rectangle with words in its middle."""
    inside = text(words, x + width / 2, y + height / 2 + 4, f"mono mid {'pick' if 'pick' in class_ else ''}".strip())
    return tag("rect", x=x, y=y, width=width, height=height, class_=class_) + (inside if words != "" else "")


def lanes(rows, total, shade) -> str:
    """A whole picture of what happens side by side. rows: [(name, [(start, end, kind)])]; shade: a kind's class."""
    wide, parts = 330 / total, []
    for row, (name, blocks) in enumerate(rows):
        y = 12 + 26 * row
        parts.append(text(name, 2, y + 14, "dim"))
        for start, end, kind in blocks:
            x, width = f"{62 + wide * start:.1f}", f"{max(0.5, wide * (end - start)):.1f}"
            parts.append(tag("rect", x=x, y=y, width=width, height=18, class_=shade(row, kind)))
    return drawing(400, 24 + 26 * len(rows), *parts)


def drawing(width: float, height: float, *parts: str) -> str:
    """A whole picture."""
    ground = tag("rect", x=0, y=0, width=width, height=height, class_="ground")
    style = tag("style", " ".join(STYLE.split()))
    return tag(
        "svg", style, ground, *parts, xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}", height=f"{height:g}",
    )  # fmt: skip


def as_image(svg: str, alt: str) -> str:
    """The picture as an element of a page."""
    return f'<img alt="{html.escape(alt)}" src="data:image/svg+xml,{quote(svg, safe="")}">'
