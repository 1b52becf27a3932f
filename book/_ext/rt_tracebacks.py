"""Tracebacks without the folders of the machine that built the book: a file goes by the path under which Python imports it.

`File /home/me/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py:1995` becomes `File torch/nn/modules/module.py:1995`.
"""

from __future__ import annotations

import re

from docutils import nodes
from sphinx.transforms import SphinxTransform

# The last folder of a path from which Python imports: the packages that are installed, this one's, the standard library.
FOLDERS = re.compile(
    r"^(\s*File \"?)[/~][^:\n]*?/(?:lib(?:64)?/python3[^/\n]*/(?:\w+-packages/)?|src/(?=readtorch/))", re.M
)


def shortened(traceback: str) -> str:
    return FOLDERS.sub(r"\1", traceback)


class ShortenPaths(SphinxTransform):
    """When a page is read, so that its search text is shortened, too."""

    default_priority = 500

    def apply(self, **kwargs):
        for block in self.document.findall(nodes.literal_block):
            if "traceback" in block["classes"]:
                block.rawsource = shortened(block.astext())  # which says that its colours are still to be found
                block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    app.add_transform(ShortenPaths)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
