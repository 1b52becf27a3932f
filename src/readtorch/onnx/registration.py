"""The table of symbolic functions: operator -> version of ONNX -> function.

In PyTorch: `torch/onnx/_internal/torchscript_exporter/registration.py`. Explained in the chapter
"export and ONNX".
"""

from readtorch.onnx import _constants


class SymbolicRegistry:
    """`functions[name][version]`: how the operator `name` is written in ONNX since `version`.

    A function that a user registers has priority over ours, and can be removed again.
    """

    def __init__(self):
        self.functions = {}
        self.custom = {}

    def register(self, name, opset, function, custom=False):
        table = self.custom if custom else self.functions
        table.setdefault(name, {})[opset] = function

    def unregister(self, name, opset):
        self.custom.get(name, {}).pop(opset, None)

    def get(self, name, opset):
        """The newest function that is not newer than `opset`, or None."""
        versions = {**self.functions.get(name, {}), **self.custom.get(name, {})}
        fitting = [version for version in versions if version <= opset]
        return versions[max(fitting)] if fitting else None

    def first_version(self, name):
        """From which version on the operator can be exported, or None."""
        return min([*self.functions.get(name, {}), *self.custom.get(name, {})], default=None)

    def all_functions(self):
        """The names of all operators that can be exported."""
        return {*self.functions, *self.custom}


registry = SymbolicRegistry()


def onnx_symbolic(*names, opset=_constants.ONNX_MIN_OPSET):
    """Decorator: `function(g, *values)` writes the operators `names` in ONNX, from version `opset` on."""

    def register(function):
        for name in names:
            registry.register(name, opset, function)
        return function

    return register
