"""An object in TorchScript: a class and the values of its attributes.

In PyTorch: `torch/csrc/jit/api/object.h`, `c10::ivalue::Object`. Explained in the chapter "JIT: scripting".
"""


class ScriptObject:
    """type: a ClassType; slots: the values of its attributes, in the type's order."""

    __slots__ = ("type", "slots", "__weakref__")
    __module__ = "readtorch"  # where everybody finds it

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

    def __setstate__(self, state):
        """What an archive knows of it: its attributes, or what its own `__getstate__` has given. Raises
        RuntimeError if an attribute is missing or of another type.
        """
        from readtorch.csrc.jit.python.pybind_utils import REJECTED, to_ivalue  # it calls functions

        restore = self.type.findMethod("__setstate__")
        if restore is not None and self.type.findMethod("__getstate__") is not None:
            restore(self, state)
            return
        for i, attribute in enumerate(self.type.attributes):
            if type(state) is not dict or attribute.name not in state:
                raise RuntimeError(
                    f"the archive has no value for the attribute '{attribute.name}' of {self.type.annotation_str}"
                )
            self.slots[i] = to_ivalue(state[attribute.name], attribute.type)
            if self.slots[i] is REJECTED:
                raise RuntimeError(
                    f"the attribute '{attribute.name}' of {self.type.annotation_str} must be of the "
                    f"type {attribute.type.annotation_str}"
                )

    def __deepcopy__(self, memo):
        import copy

        made = memo[id(self)] = type(self)(self.type)
        made.slots = [copy.deepcopy(value, memo) for value in self.slots]
        return made

    def copy(self):
        """Another object with the same values; submodules are copied, too."""
        return type(self)(self.type, [v.copy() if isinstance(v, ScriptObject) else v for v in self.slots])

    def method(self, name):
        """A function of the method's other arguments."""
        function = self.type.getMethod(name)
        return lambda *args, **kwargs: function(self, *args, **kwargs)

    def named_children(self):
        """(name, object) of each submodule."""
        return [(a.name, value) for a, value in zip(self.type.attributes, self.slots) if a.type.is_module()]

    def __repr__(self):
        return f"<object of {self.type.annotation_str}>"
