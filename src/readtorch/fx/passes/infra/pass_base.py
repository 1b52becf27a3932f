"""What a pass is. In PyTorch: `torch/fx/passes/infra/pass_base.py`."""

import abc
from collections import namedtuple

__all__ = ["PassResult", "PassBase"]


class PassResult(namedtuple("PassResult", ["graph_module", "modified"])):
    """graph_module: what came of it. modified: whether it is another than before."""

    __slots__ = ()

    def __new__(cls, graph_module, modified):
        return super().__new__(cls, graph_module, modified)


class PassBase(abc.ABC):
    """A pass over a GraphModule: `call` does the work, `requires` and `ensures` raise if what they check does not hold."""

    def __call__(self, graph_module):
        self.requires(graph_module)
        result = self.call(graph_module)
        self.ensures(graph_module)
        return result

    @abc.abstractmethod
    def call(self, graph_module):
        """The PassResult, or None."""

    def requires(self, graph_module):
        """Checks the module before the pass."""

    def ensures(self, graph_module):
        """Checks it afterwards."""
