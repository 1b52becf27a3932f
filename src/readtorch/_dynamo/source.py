"""Where a value came from: a path that starts at an argument, or at an object that the compiled code holds itself.

    L['self'].layers[0]     GetItemSource(AttrSource(LocalSource("self"), "layers"), 0)

A source is written twice: `read` is the expression that gives the value inside the generated function, `name` is what logs
show. In PyTorch: `torch/_dynamo/source.py`.
"""

MEMBERS = ("_parameters", "_buffers", "_modules")  # the dictionaries in which a module has its parts


class Source:
    """base: the source that it starts from; key: what is read of it. Equal paths are equal sources."""

    __slots__ = ("base", "key", "_hash")

    def __init__(self, base, key):
        self.base, self.key = base, key
        self._hash = hash((type(self), base, key if isinstance(key, (str, int)) else id(key)))

    def __eq__(self, other):
        if self is other:
            return True
        if type(self) is not type(other) or type(self.key) is not type(other.key) or self.base != other.base:
            return False
        return self.key == other.key if isinstance(self.key, (str, int)) else self.key is other.key

    def __hash__(self):
        return self._hash

    def read(self, writer):
        """The expression that reads it; what lies before it on the path is read first."""
        raise NotImplementedError


class LocalSource(Source):
    """An argument. key: the name of the variable in the generated function; shown: its name in the program."""

    __slots__ = ("shown",)

    def __init__(self, key, shown=None):
        super().__init__(None, key)
        self.shown = shown or key

    def read(self, writer):
        return self.key

    @property
    def name(self):
        return f"L[{self.shown!r}]"


class ConstantSource(Source):
    """An object that the generated function holds: a class, a module of Python, a function, a dictionary of globals."""

    __slots__ = ()

    def __init__(self, value):
        super().__init__(None, value)

    def read(self, writer):
        return writer.hold(self.key)

    @property
    def name(self):
        if isinstance(self.key, dict) and "__name__" in self.key:
            return "G"
        return getattr(self.key, "__qualname__", None) or getattr(self.key, "__name__", type(self.key).__name__)


class AttrSource(Source):
    __slots__ = ()

    def read(self, writer):
        return f"{writer.get(self.base)}.{self.key}"

    @property
    def name(self):
        return f"{self.base.name}.{self.key}"


class OwnAttrSource(AttrSource):
    """An attribute that stands in the object's own dictionary. Where a class has a `__getattr__`, as modules do, CPython looks for
    any attribute the long way: one look for the dictionary, and then into that, is quicker from the second attribute on.
    """

    __slots__ = ()

    def read(self, writer):
        return f"{writer.get(AttrSource(self.base, '__dict__'))}[{self.key!r}]"


class GetItemSource(Source):
    __slots__ = ()

    def read(self, writer):
        return f"{writer.get(self.base)}[{writer.literal(self.key)}]"

    @property
    def name(self):
        shown = type(self.key).__name__ if hasattr(self.key, "_array") else repr(self.key)  # no elements of a tensor
        return f"{self.base.name}[{shown}]"


class WeakRefCallSource(Source):
    """What a weak reference refers to."""

    __slots__ = ()

    def __init__(self, base):
        super().__init__(base, "()")

    def read(self, writer):
        return f"{writer.get(self.base)}()"

    @property
    def name(self):
        return f"{self.base.name}()"


def is_held(source):
    """Whether nobody can put another object there."""
    return isinstance(source, ConstantSource)


def fqn_of(source):
    """The name of a module, or of what is in one, as the program writes it: L['self'].layers.0.weight"""
    base = source.base
    if isinstance(source, GetItemSource) and isinstance(base, AttrSource) and base.key in MEMBERS:
        return f"{fqn_of(base.base)}.{source.key}"
    if isinstance(source, AttrSource):
        return f"{fqn_of(base)}.{source.key}"
    return source.name


def root_of(source):
    """Where the path begins."""
    while source.base is not None:
        source = source.base
    return source
