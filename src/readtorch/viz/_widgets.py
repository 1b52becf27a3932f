"""The widget classes: which front end belongs to which model, and which of its state can change.

The functions of ``readtorch.viz`` make these; the models come from the files beside this one.
"""
from __future__ import annotations

from traitlets import Int, List, Unicode

from ._base import StaticWidget, front_end


class AutogradExplorer(StaticWidget):
    _esm = front_end("autograd")
    fallback = "Autograd explorer: the graph behind a tensor and the order of backward (needs JavaScript)."

    step = Int(0).tag(sync=True)
    selected = Int(-1).tag(sync=True)
