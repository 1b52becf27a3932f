"""Which module's call a traced node belongs to, and which inlined calls it went through.

In PyTorch: `torch/csrc/jit/ir/scope.h`. Explained in the chapter "JIT: tracing".
"""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Scope:
    """A node of the tree of module calls; the root has no name."""

    name: str = ""
    parent: "Scope | None" = None

    def push(self, name):
        return Scope(name, self)

    def names_from_root(self, separator="/"):
        above = self.parent.names_from_root(separator) if self.parent else ""
        return separator.join(filter(None, [above, self.name]))


@dataclass(frozen=True)
class InlinedCall:
    """One call that inlining replaced by the callee's body. function: its name; range: where it was
    called.
    """

    function: str
    range: object
    module: str | None = None  # of a method: attribute path and type of the object


class ScopeGuard:
    """`with ScopeGuard(graph, scope):` new nodes get `scope`."""

    def __init__(self, graph, scope):
        self.graph = graph
        self.scope = scope

    def __enter__(self):
        self.previous = self.graph.current_scope
        self.graph.current_scope = self.scope

    def __exit__(self, *exception):
        self.graph.current_scope = self.previous
