"""Context managers of the library. In PyTorch: `torch/_dynamo/variables/ctx_manager.py`.

Those that are written in Python, the program's own and those of `contextlib`, are objects like others.
"""

from readtorch.amp.autocast_mode import _enter_autocast, _exit_autocast, autocast

from .base import VariableTracker


class ContextWrappingVariable(VariableTracker):
    """What `with` may stand before, and is a matter of the graph."""

    def python_type(self):
        return self.cls

    def call_bool(self, tx):
        return True

    def var_getattr(self, tx, name):
        if name in ("__enter__", "__exit__"):
            return tx.method_of(self, name)
        self.unknown(f"attribute {name}")

    def call_method(self, tx, name, args, kwargs):
        if name == "__enter__":
            return self.enter(tx)
        if name == "__exit__":
            return self.exit(tx)
        self.unknown(f"call of method {name}")


class AutocastModeVariable(ContextWrappingVariable):
    """`autocast(device_type, dtype, enabled, cache_enabled)`: nodes of the graph begin and end the region.

    arguments: these four.
    """

    cls = autocast

    def __init__(self, arguments, source=None):
        self.arguments, self.source, self.node = arguments, source, None

    def describe(self):
        return f"AutocastModeVariable({self.arguments[0]})"

    def enter(self, tx):
        if self.node is not None:
            self.unknown("__enter__ within itself")
        self.node = tx.output.graph.call_function(_enter_autocast, self.arguments)
        tx.output.autocast_regions.append(self.arguments)
        tx.output.has_autocast = True
        return self

    def exit(self, tx):
        tx.output.graph.call_function(_exit_autocast, (self.node,))
        tx.output.autocast_regions.pop()
        self.node = None
        return tx.constant(False)


class GradModeVariable(ContextWrappingVariable):
    """`no_grad()`, `enable_grad()`, `set_grad_enabled(mode)`: nodes of the graph switch the mode.

    previous: the mode to go back to, None before `__enter__`.
    """

    def __init__(self, cls, mode, source=None):
        self.cls, self.mode, self.source = cls, mode, source
        self.previous = None

    def describe(self):
        return f"GradModeVariable({self.cls.__name__})"

    def enter(self, tx):
        if self.cls.__name__ != "set_grad_enabled":
            self.previous = tx.output.grad_mode
        tx.output.set_grad_mode(self.mode)
        return tx.constant(None)

    def exit(self, tx):
        tx.output.set_grad_mode(self.previous)
        return tx.constant(None)

    def var_getattr(self, tx, name):
        return tx.method_of(self, name) if name == "clone" else super().var_getattr(tx, name)

    def call_method(self, tx, name, args, kwargs):
        if name == "clone":
            return GradModeVariable(self.cls, self.mode)
        return super().call_method(tx, name, args, kwargs)

    def reconstruct(self, codegen):
        """Made anew it must know the same mode to go back to, and leave the mode as it is."""
        has_argument = self.cls.__name__ == "set_grad_enabled"
        set_mode = codegen.set_grad_mode
        if self.previous is not None:
            codegen.line(f"{set_mode}({self.previous})")
        name = codegen.temporary(f"{codegen.writer.hold(self.cls)}({self.mode if has_argument else ''})")
        if self.previous is not None and not has_argument:
            codegen.line(f"{name}.__enter__()")
        codegen.line(f"{set_mode}({codegen.output.grad_mode})")
        return name
