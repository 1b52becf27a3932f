"""All functions and classes that belong together, by qualified name.

In PyTorch: `torch/csrc/jit/api/compilation_unit.h`. Explained in the chapter "JIT: scripting".
"""

import re

from .function_impl import GraphFunction


class CompilationUnit:
    """functions: qualified name -> GraphFunction, methods among them; types: qualified name -> class, tuple,
    enum type.
    """

    def __init__(self):
        self.functions = {}
        self.types = {}
        self._mangled = 0

    def create_function(self, name, graph, creator=None, defaults=None, mangle=True):
        """A new function; if the name is taken it gets another one."""
        if mangle and name in self.functions:
            name = self.mangle(name)
        function = GraphFunction(name, graph, creator, defaults)
        self.functions[name] = function
        return function

    def find_function(self, name):
        return self.functions.get(name)

    def register_type(self, type):
        self.types[type.qualified] = type
        return type

    def get_type(self, name):
        return self.types.get(name)

    def mangle(self, name):
        """`__torch__.a.B` -> `__torch__.a.___torch_mangle_0.B`, with a number that has not been used."""
        prefix, _, last = name.rpartition(".")
        prefix = re.sub(r"\.?___torch_mangle_\d+$", "", prefix)
        mangled = f"{prefix}.___torch_mangle_{self._mangled}.{last}"
        self._mangled += 1
        return mangled

    def free_name(self, name):
        """`name`, or a mangled one if a function or class is called so."""
        return self.mangle(name) if name in self.types or name in self.functions else name


# What scripted and traced code of this process goes into. In PyTorch: `torch.jit._state._python_cu`.
python_cu = CompilationUnit()
