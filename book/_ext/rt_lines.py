"""Lines of code as elements, so that a narrow screen can wrap each with a hanging indent (readtorch.css).

A wrapped line goes on two letters deeper than it began: `--i` is how deep that is. A line without letters, as a traceback draws it,
is a rule: it ends at the edge.
"""

from __future__ import annotations

import re

from pygments.formatters import HtmlFormatter
from sphinx.highlighting import PygmentsBridge

TAG = re.compile(r"<[^>]*>")
RULE = re.compile(r"([-=─━])\1{19,}")


class HangingLines(HtmlFormatter):
    """Pygments' formatter, with each line in an element of its own."""

    def _format_lines(self, tokens):
        for is_code, line in super()._format_lines(tokens):
            yield is_code, element(line) if is_code else line


def element(line: str) -> str:
    text = TAG.sub("", line)
    indent = len(text) - len(text.lstrip(" "))
    deep = f' style="--i:{indent}"' if indent else ""
    rule = " rt-rule" if RULE.match(text) else ""
    return f'<span class="rt-l{rule}"{deep}>{line}</span>'


def setup(app):
    PygmentsBridge.html_formatter = HangingLines
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
