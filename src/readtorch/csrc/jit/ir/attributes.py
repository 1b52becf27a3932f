"""What is written in a node's square brackets: `prim::GetAttr[name="weight"]`, `prim::Constant[value=2]`.

Each attribute has a kind, named by a letter or two as in PyTorch: `node.s_("name", "weight")`,
`node.s("name")`.

In PyTorch: `torch/csrc/jit/ir/attributes.h`.
"""

KINDS = {
    "i": "int",
    "is": "ints",
    "f": "float",
    "fs": "floats",
    "c": "complex",
    "s": "str",
    "ss": "strs",
    "t": "Tensor",
    "ts": "Tensors",
    "g": "Graph",
    "gs": "Graphs",
    "ty": "Type",
    "tys": "Types",
    "ival": "any value",
}


def _setter(kind):
    def set(self, name, value):
        self._attributes[name] = (kind, value)
        return self

    set.__doc__ = f"Write a {KINDS[kind]} attribute; returns the node."
    return set


def _getter(kind):
    def get(self, name):
        have, value = self._attributes[name]
        if have != kind:
            raise RuntimeError(f"required keyword attribute '{name}' has kind {have}, not {kind}")
        return value

    get.__doc__ = f"The {KINDS[kind]} attribute called `name`."
    return get


class Attributes:
    """The part of a node that has attributes, in the order in which they were set: name -> (kind, value)."""

    __slots__ = ()

    i, i_ = _getter("i"), _setter("i")
    is_ = _setter("is")  # its getter would be called `is`, which Python cannot have: ask `attribute(name)`
    f, f_ = _getter("f"), _setter("f")
    fs, fs_ = _getter("fs"), _setter("fs")
    c, c_ = _getter("c"), _setter("c")
    s, s_ = _getter("s"), _setter("s")
    ss, ss_ = _getter("ss"), _setter("ss")
    t, t_ = _getter("t"), _setter("t")
    ts, ts_ = _getter("ts"), _setter("ts")
    g, g_ = _getter("g"), _setter("g")
    gs, gs_ = _getter("gs"), _setter("gs")
    ty, ty_ = _getter("ty"), _setter("ty")
    tys, tys_ = _getter("tys"), _setter("tys")
    ival, ival_ = _getter("ival"), _setter("ival")

    def attribute(self, name):
        """The value of an attribute of any kind."""
        return self._attributes[name][1]

    def attributeNames(self):
        return list(self._attributes)

    def hasAttributes(self):
        return bool(self._attributes)

    def hasAttribute(self, name):
        return name in self._attributes

    def kindOf(self, name):
        """The attribute's kind: "i", "s", "ival" …"""
        return self._attributes[name][0]

    def removeAttribute(self, name):
        del self._attributes[name]
        return self

    def copyAttributes(self, other):
        self._attributes = dict(other._attributes)
        return self
