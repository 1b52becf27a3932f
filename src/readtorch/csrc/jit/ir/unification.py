"""What several types have in common, and what the variables of a schema stand for.

In PyTorch: `unifyTypes`, `matchTypeVariables`, `evalTypeVariables` in `aten/src/ATen/core/type.cpp`.
"""
from .type import (FutureType, ListType, NoneType, OptionalType, TensorType, TupleType, UnionType, VarType,
                   union_of, unwrap_optional)


def unifyTypes(a, b, default_to_union=False):
    """The least type that includes both, or None. default_to_union: rather than None, their Union."""
    found = _unify(a, b, default_to_union)
    if found is None and default_to_union:
        return union_of([a, b])
    return found


def _unify(a, b, default_to_union):
    if isinstance(a, TensorType) and isinstance(b, TensorType):
        return a.merge(b)
    if a.isSubtypeOf(b):
        return b
    if b.isSubtypeOf(a):
        return a
    if isinstance(a, NoneType) or isinstance(b, NoneType):
        other = b if isinstance(a, NoneType) else a
        return None if isinstance(other, UnionType) else OptionalType(other)
    if isinstance(a, OptionalType) or isinstance(b, OptionalType):
        inner = _unify(unwrap_optional(a), unwrap_optional(b), False)
        return None if inner is None else OptionalType(inner)
    if isinstance(a, TupleType) and isinstance(b, TupleType) and len(a.types) == len(b.types):
        parts = [unifyTypes(x, y, default_to_union) for x, y in zip(a.types, b.types)]
        return None if None in parts else TupleType(parts)
    if isinstance(a, FutureType) and isinstance(b, FutureType):
        inner = unifyTypes(a.elem, b.elem)
        return None if inner is None else FutureType(inner)
    if isinstance(a, ListType) and isinstance(b, ListType) and _are_tensors(a.elem, b.elem):
        return ListType(a.elem.merge(b.elem))
    return None


def _are_tensors(*types):
    return all(isinstance(t, TensorType) for t in types)


def unifyTypeList(types, default_to_union=False):
    """The least type that includes all of `types`, or None."""
    if not types:
        return None
    found = types[0]
    for t in types[1:]:
        found = unifyTypes(found, t, default_to_union)
        if found is None:
            return None
    return found


def matchTypeVariables(formal, actual, env):
    """Find what the variables in `formal` must stand for so that `actual` fits, and note it in `env` (name ->
    type).

    Returns None, or why it cannot be done. A formal without variables always matches: fitting is another
    question.
    """
    if not formal.hasFreeVariables():
        return None
    if isinstance(formal, VarType):
        return _bind(formal.name, actual, env)
    if isinstance(formal, OptionalType):
        if isinstance(actual, NoneType):
            return None  # it fits whatever the variable is
        return matchTypeVariables(formal.elem, unwrap_optional(actual), env)
    if type(formal) is not type(actual):
        return f"Cannot match {formal.annotation_str} to {actual.annotation_str}"
    if isinstance(formal, TupleType) and len(formal.types) != len(actual.types):
        return "Cannot match tuples of mismatched size"
    for f, a in zip(formal.containedTypes(), actual.containedTypes()):
        reason = matchTypeVariables(f, a, env)
        if reason is not None:
            return reason
    return None


def _bind(name, actual, env):
    bound = env.get(name)
    both = actual if bound is None else unifyTypes(bound, actual)
    if both is None:
        return (
            f"Type variable '{name}' previously matched to type {bound.annotation_str} is matched to type "
            f"{actual.annotation_str}"
        )
    env[name] = both
    return None


def tryEvalTypeVariables(t, env):
    """`t` with its variables replaced, or None if one is not in `env`."""
    if not t.hasFreeVariables():
        return t
    if isinstance(t, VarType):
        return env.get(t.name)
    parts = [tryEvalTypeVariables(part, env) for part in t.containedTypes()]
    return None if None in parts else t.withContained(parts)


def evalTypeVariables(t, env):
    found = tryEvalTypeVariables(t, env)
    return t if found is None else found

