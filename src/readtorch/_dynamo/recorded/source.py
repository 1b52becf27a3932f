"""Where a function reads a value from. In PyTorch: `torch/_dynamo/source.py`."""

from typing import Any, NamedTuple

MISSING = object()


class Source(NamedTuple):
    """holder[key], holder.key or a closure's cell. name: how a reader would spell it; kind: "item", "attribute" or "cell"."""

    name: str
    holder: Any
    key: Any = None
    kind: str = "item"

    def value(self):
        """Its current value; MISSING if there is none."""
        try:
            if self.kind == "cell":
                return self.holder.cell_contents
            return getattr(self.holder, self.key) if self.kind == "attribute" else self.holder[self.key]
        except (AttributeError, LookupError, ValueError):
            return MISSING

    def text(self, holder):
        """The expression that reads it, where the name `holder` stands for the holder."""
        if self.kind == "cell":
            return f"{holder}.cell_contents"
        return f"{holder}.{self.key}" if self.kind == "attribute" else f"{holder}[{self.key!r}]"
