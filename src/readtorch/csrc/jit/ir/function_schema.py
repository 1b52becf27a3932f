"""The signature of an operator or a function, with the types that graphs have.

In PyTorch: `aten/src/ATen/core/function_schema.h`. Explained in the chapter "JIT: scripting".
"""

from dataclasses import dataclass, replace

from readtorch.c10.device import device

from .formatting import constant_text
from .type import FutureType, IntType, ListType, OptionalType, Type


@dataclass(frozen=True)
class Argument:
    """One parameter or result. N: for a list, how many entries one number stands for. real_name: the name in
    the schema of a type that is a number here (ScalarType, Layout, MemoryFormat, SymInt), else None. alias_info:
    which memory it may share.
    """

    name: str
    type: Type
    N: int | None = None
    default_value: object = None
    kwarg_only: bool = False
    has_default: bool = False
    alias_info: object = None
    real_name: str | None = None

    def has_default_value(self):
        return self.has_default

    @property
    def is_out(self):
        return self.kwarg_only and self.alias_info is not None and self.alias_info.writes

    @property
    def is_write(self):
        return self.alias_info is not None and self.alias_info.writes

    def type_text(self):
        """The type as schemas print it, with its alias set and real name."""
        base = f"Future({self.type.elem.str()})" if isinstance(self.type, FutureType) else self.type.str()
        if self.real_name:
            base = base.replace("int", self.real_name, 1)
        if self.N is not None:
            base = base.replace("[]", f"[{self.N}]", 1)
        return _with_alias(base, self.alias_info)

    def __str__(self):
        text = f"{self.type_text()} {self.name}".rstrip()
        return f"{text}={_default_text(self)}" if self.has_default else text


def _with_alias(base, alias):
    if alias is None:
        return base
    mark = "!" if alias.writes else ""
    after = "" if alias.after == alias.before else f" -> {'|'.join(alias.after)}"
    head = base.index("[]") + 2 if alias.of_list else next((i for i, c in enumerate(base) if c in "[?"), len(base))
    return f"{base[:head]}({'|'.join(alias.before)}{mark}{after}){base[head:]}"


def _default_text(argument):
    """The default as a schema spells it: one number for a list of so many, a device without quotes."""
    value, kind = argument.default_value, argument.type
    kind = kind.elem if isinstance(kind, OptionalType) else kind
    if isinstance(value, device):
        return str(value)
    counted = argument.N is not None and isinstance(kind, ListType) and isinstance(kind.elem, IntType)
    if counted and argument.real_name is None and argument.N > 1 and value and value == [value[0]] * argument.N:
        return constant_text(value[0])
    return constant_text(value)


@dataclass(frozen=True, eq=False, repr=False)
class FunctionSchema:
    """name: with its namespace, such as `aten::add` for an operator. is_vararg, is_varret: `...` among the
    arguments, the returns.
    """

    name: str
    overload_name: str
    arguments: tuple
    returns: tuple
    is_vararg: bool = False
    is_varret: bool = False

    @property
    def full_name(self):
        return f"{self.name}.{self.overload_name}" if self.overload_name else self.name

    @property
    def is_mutable(self):
        return any(a.is_write for a in self.arguments)

    def _is_view_op(self):
        """Whether a result shares memory with an argument that the operator does not write to."""
        return any(r.alias_info is not None and not r.is_write for r in self.returns)

    def has_free_variables(self):
        return any(a.type.hasFreeVariables() for a in self.arguments)

    def argument_index(self, name):
        return next((i for i, a in enumerate(self.arguments) if a.name == name), None)

    def with_arguments(self, arguments):
        return replace(self, arguments=tuple(arguments))

    def isSubtypeOf(self, other, as_method=True):
        """Whether what has this signature may be called as `other` says (without `self`, as_method)."""
        skip = 1 if as_method else 0
        mine, theirs = self.arguments[skip:], other.arguments[skip:]
        if len(mine) < len(theirs) or len(self.returns) != len(other.returns):
            return False
        fits = all(m.name == t.name and t.type.isSubtypeOf(m.type) for m, t in zip(mine, theirs))
        extra_have_defaults = all(a.has_default for a in mine[len(theirs) :])
        return (
            fits
            and extra_have_defaults
            and all(m.type.isSubtypeOf(t.type) for m, t in zip(self.returns, other.returns))
        )

    def __str__(self):
        parts, starred = [], False
        for a in self.arguments:
            if a.kwarg_only and not starred:
                parts.append("*")
                starred = True
            parts.append(str(a))
        if self.is_vararg:
            parts.append("...")
        returns = [str(r) for r in self.returns] + (["..."] if self.is_varret else [])
        one = len(returns) == 1 and not returns[0].startswith("(")
        return f"{self.full_name}({', '.join(parts)}) -> {returns[0] if one else '(' + ', '.join(returns) + ')'}"

    __repr__ = __str__
