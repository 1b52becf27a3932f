"""An object in TorchScript: a class and the values of its attributes.

In PyTorch: `torch/csrc/jit/api/object.h`, `c10::ivalue::Object`. Explained in the chapter "Scripting".
"""


class ScriptObject:
    """type: a ClassType; slots: the values of its attributes, in the type's order."""

    __slots__ = ("type", "slots", "__weakref__")

    def __init__(self, type, slots=None):
        self.type = type
        self.slots = [None] * len(type.attributes) if slots is None else list(slots)

    def script_type(self):
        return self.type

    def _slot(self, name):
        slot = self.type.findAttributeSlot(name)
        if slot is None:
            raise AttributeError(f"'{self.type.annotation_str}' object has no attribute '{name}'")
        if slot >= len(self.slots):  # the type has grown since
            self.slots += [None] * (slot + 1 - len(self.slots))
        return slot

    def getattr(self, name):
        return self.slots[self._slot(name)]

    def setattr(self, name, value):
        self.slots[self._slot(name)] = value

    def hasattr(self, name):
        return self.type.hasAttribute(name)

    def method(self, name):
        """A function of the method's other arguments."""
        function = self.type.getMethod(name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)

    def named_children(self):
        """(name, object) of each submodule."""
        return [(a.name, value) for a, value in zip(self.type.attributes, self.slots) if a.type.is_module()]

    def __repr__(self):
        return f"<object of {self.type.annotation_str}>"
