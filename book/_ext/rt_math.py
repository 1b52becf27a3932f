"""Formulas as MathML, converted when the book is built: a page has no script to load for them."""

from __future__ import annotations

import re
from html import escape

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging

LOG = logging.getLogger(__name__)

# What authors write, and what the converter knows by another name.
SPELLINGS = [
    (re.compile(r"\\(begin|end)\{aligned\}"), r"\\\1{split}"),
    (re.compile(r"\\mathrm\{([\w ]+)\}"), r"\\text{\1}"),
    (re.compile(r"\\operatorname\*"), r"\\operatorname"),
    (re.compile(r"\\boldsymbol\b"), r"\\mathbf"),
    (re.compile(r"(\\text(?:tt|rm|bf)?\{[^{}]*\})"), lambda match: match[1].replace(r"\_", "_")),
]
# The bar of \\overline: which character stretches over more than one letter depends on the browser and its fonts, so
# readtorch.css draws it (.rt-overbar), and the character is there for those who listen.
BAR = '<mo accent="true">&#x02015;</mo></mover>'
DRAWN_BAR = '<mo class="rt-overbar" stretchy="true">&#x000AF;</mo></mover>'
UNKNOWN = re.compile(r">(\\[A-Za-z]+|&)<")  # a command or an & that came through as it was


def to_mathml(latex: str, display: str) -> str:
    for pattern, spelling in SPELLINGS:
        latex = pattern.sub(spelling, latex)
    mathml = convert(latex, display=display).replace(BAR, DRAWN_BAR)
    if unknown := UNKNOWN.search(mathml):
        raise ValueError(f"{unknown[1]!r} is not known to latex2mathml")
    return mathml


def visit_math(self, node):
    self.body.append(f'<span class="math">{_converted(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_math_block(self, node):
    anchor = f' id="{node["ids"][0]}"' if node.get("ids") else ""
    self.body.append(f'<div class="math rt-formula"{anchor} tabindex="0" role="group" aria-label="Formula">')
    self.body.append(_converted(node, "block"))
    if node.get("number"):
        self.body.append(f'<span class="eqno">({node["number"]})</span>')
    self.body.append("</div>\n")
    raise nodes.SkipNode


def _converted(node, display: str) -> str:
    try:
        return to_mathml(node.astext(), display)
    except Exception as error:
        LOG.warning("cannot show %r as MathML: %s", node.astext(), error, location=node, type="rt_math")
        return f"<code>{escape(node.astext())}</code>"


def setup(app):
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
