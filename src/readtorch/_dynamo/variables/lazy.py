"""A value that nothing has looked at yet: no guard. In PyTorch: `torch/_dynamo/variables/lazy.py`."""

from .base import VariableTracker


class LazyVariableTracker(VariableTracker):
    """build: a function (value, source) -> variable, called when somebody asks."""

    def __init__(self, value, source, build):
        self.value, self.source, self.build = value, source, build
        self.seen = None

    def realize(self):
        if self.seen is None:
            self.seen = self.build(self.value, self.source)
        return self.seen

    def reconstruct(self, codegen):
        return codegen(self.seen) if self.seen is not None else codegen.writer.get(self.source)
