"""What a new object knows: every attribute, with its plain value, so that two libraries' objects can be compared."""

import inspect
import warnings


def arguments_of(cls, known):
    """One for each that has no default, by its name: from `known`, otherwise 4."""
    return {p.name: known.get(p.name, 4) for p in parameters(cls) if p.default is p.empty}


def parameters(cls):
    return [
        p for p in inspect.signature(cls).parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    ]


def variations(cls):
    """For each argument with a default that is a number or a truth value: {its name: another one}."""
    yield {}
    for p in parameters(cls):
        if isinstance(p.default, (bool, int, float)) and p.default is not p.empty:
            for other in [not p.default] if isinstance(p.default, bool) else [p.default + 1, -1 - p.default, 0]:
                yield {p.name: other}


def described(value):
    """Of a tensor its shape, of another object its class."""
    kind = type(value).__name__
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (tuple, list)):
        return kind, [described(v) for v in value]
    if isinstance(value, set):
        return kind, sorted(map(str, value))
    if isinstance(value, dict):  # keys that are numbers are ids of hooks, which count on for the whole process
        return kind, [(key if isinstance(key, str) else type(key).__name__, described(v)) for key, v in value.items()]
    if "Uninitialized" not in kind and hasattr(value, "requires_grad"):
        return kind, tuple(value.shape), value.requires_grad
    return str(value).rpartition(".")[2] if kind == "dtype" else kind


def new(make, private=False):
    """The attributes of what `make()` returns, or how it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = make()
        except Exception as error:
            return type(error).__name__, str(error).replace("readtorch", "torch")
    return {name: described(value) for name, value in sorted(vars(made).items()) if private or name[0] != "_"}


def subclassed(base):
    """What becomes of keywords and of other bases when a class is derived from this one."""
    seen = []

    class Other:
        def __init_subclass__(cls, **keywords):
            seen.append((cls.__name__, keywords))
            super().__init_subclass__()

    type(base)("Both", (base, Other), {}, extra=3)
    try:
        type(base)("Alone", (base,), {}, extra=3)
    except TypeError as error:
        seen.append(str(error))
    return seen
