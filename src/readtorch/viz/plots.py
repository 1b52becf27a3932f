"""Plots: what matplotlib draws, as SVG within the page.

The text stays text, takes the page's colour, and is read out as one sentence; the lines have colours that can be
told from a white and from a black page, and a dash pattern each. A plot is drawn small, so that its letters can be
read on a telephone, where it is as wide as the page.
"""

from __future__ import annotations

import html
import io
import logging
import re

from readtorch.c10.extras import extra

# Else the first plot of all says on stderr that a cache of fonts is being made.
logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)

with extra("viz", "viz.plot"):
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

BLACK = "#000000"  # stands for the colour of the page's text
LINES = cycler(
    color=["#2f7fc1", "#c4711b", "#b058a0", "#46905c", "#7d7f86"],
    linestyle=["-", "--", "-.", (0, (1, 1.2)), (0, (6, 1, 1, 1, 1, 1))],
)
STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "readtorch",
    "font.size": 10,
    "axes.titlesize": 11,
    "axes.prop_cycle": LINES,
    "lines.linewidth": 1.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": BLACK,
    "grid.alpha": 0.15,
    "legend.frameon": False,
}


class Plot:
    """A drawing that shows itself as the last value of a cell."""

    def __init__(self, svg: str):
        self.svg = svg

    def _repr_html_(self) -> str:
        return f'<div class="rt-plot" style="max-width: 36rem; margin: 1rem auto">{self.svg}</div>'


def plot(draw, alt: str, width: float = 4.5, height: float = 3.0) -> Plot:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure.add_subplot())
        target = io.StringIO()
        figure.savefig(target, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    return Plot(_for_a_page(target.getvalue(), alt))


def _for_a_page(svg: str, alt: str) -> str:
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.S)
    svg = svg.replace(BLACK, "currentColor")
    size = re.search(r'viewBox="[^"]*"', svg)[0]
    start = (
        f'<svg {size} role="img" aria-label="{html.escape(alt)}" fill="currentColor" '
        'style="width: 100%; height: auto" xmlns="http://www.w3.org/2000/svg" '
        'xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return re.sub(r"<svg\b[^>]*>", lambda _: start, svg, count=1)
