"""What names stand for that are not variables of the program that is compiled.

In PyTorch: `torch/csrc/jit/frontend/resolver.h`. Explained in the chapter "JIT: scripting".
"""

from .sugared_value import BuiltinModule


class Resolver:
    """Resolves no name. allows_closures: whether functions may be defined inside of functions."""

    allows_closures = False

    def resolve_value(self, name, emitter, range):
        """The SugaredValue that a name stands for, or None."""
        return None

    def resolve_type(self, name, range):
        """The type that a (dotted) name stands for, or None."""
        return None

    def resolve_generic(self, name):
        """What `typing` calls the generic type that a name stands for: "List" for `typing_List`, as generated code has it."""
        return name


class NativeResolver(Resolver):
    """Of programs that are not part of a Python module: `torch` is the only name."""

    def resolve_value(self, name, emitter, range):
        return BuiltinModule("aten") if name == "torch" else None
