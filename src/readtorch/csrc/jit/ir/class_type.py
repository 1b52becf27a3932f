"""The type of objects: modules and TorchScript classes. It holds what all objects of the class share.

In PyTorch: `aten/src/ATen/core/class_type.cpp`. Explained in the chapter "JIT: scripting".
"""

from dataclasses import dataclass

from .jit_type_base import Type


@dataclass
class ClassAttribute:
    """One attribute of a class. kind: "regular", "parameter" or "buffer"."""

    name: str
    type: Type
    kind: str = "regular"


class ClassType(Type):
    """attributes in the order of an object's slots, constants by name, methods by name.

    name: qualified, such as `__torch__.nets.Net`. compilation_unit: where its methods are kept.
    """

    def __init__(self, name, compilation_unit=None, is_module=False, doc=""):
        self.qualified = name
        self.compilation_unit = compilation_unit
        self.module = is_module
        self.doc = doc
        self.attributes = []
        self.constants = {}
        self.methods = {}  # name -> Function
        self.properties = {}  # name -> (getter, setter or None)
        self.static_methods = {}
        self.hooks, self.pre_hooks = [], []  # of forward: Functions

    def _parts(self):
        return id(self)

    def is_module(self):
        return self.module

    def name(self):
        return self.qualified.rpartition(".")[2]

    def qualified_name(self):
        return self.qualified

    def containedTypes(self):
        return [a.type for a in self.attributes]

    def hasFreeVariables(self):
        return False

    def provides(self, schemas):
        """Whether it has all methods of an interface: name -> FunctionSchema."""
        return all(
            name in self.methods and self.methods[name].schema.isSubtypeOf(schema) for name, schema in schemas.items()
        )

    # ------------------------------------------------------------------------------------ attributes

    def addAttribute(self, name, type, is_parameter=False, is_buffer=False):
        """A new slot; returns its number."""
        if self.hasAttribute(name):
            raise RuntimeError(
                f"attempting to add attribute '{name}' to {self.annotation_str} but a field of the same "
                "name already exists"
            )
        kind = "parameter" if is_parameter else "buffer" if is_buffer else "regular"
        self.attributes.append(ClassAttribute(name, type, kind))
        return len(self.attributes) - 1

    def findAttributeSlot(self, name):
        return next((i for i, a in enumerate(self.attributes) if a.name == name), None)

    def hasAttribute(self, name):
        return self.findAttributeSlot(name) is not None

    def findAttribute(self, name):
        """The attribute's type, or None."""
        slot = self.findAttributeSlot(name)
        return None if slot is None else self.attributes[slot].type

    def getAttribute(self, name):
        found = self.findAttribute(name)
        if found is None:
            raise RuntimeError(f"Couldn't find attribute: '{name}' in {self.annotation_str}")
        return found

    def removeAttribute(self, name):
        del self.attributes[self.findAttributeSlot(name)]

    def is_parameter(self, name):
        return self.attributes[self.findAttributeSlot(name)].kind == "parameter"

    def is_buffer(self, name):
        return self.attributes[self.findAttributeSlot(name)].kind == "buffer"

    # --------------------------------------------------------------------------------------- methods

    def addMethod(self, method):
        self.methods[method.name] = method

    def findMethod(self, name):
        return self.methods.get(name)

    def getMethod(self, name):
        if name not in self.methods:
            raise RuntimeError(f"Couldn't find method: '{name}' on class: '{self.annotation_str}'")
        return self.methods[name]

    def method_names(self):
        return list(self.methods)

    def str(self):
        return self.qualified

    @property
    def annotation_str(self):
        return self.qualified
