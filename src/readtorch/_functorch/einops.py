"""`rearrange`: transposing, splitting and joining dimensions in einops' notation, "b (h w) c -> b c h w".

In PyTorch: `torch/_functorch/einops.py`, which calls the package `functorch`; that computes with first-class dimensions.
"""

import functools
import keyword
import math
import re
import warnings
from typing import NamedTuple

from readtorch._tensor import Tensor
from readtorch.aten.functions import at

from .utils import exposed_in

ELLIPSIS = "…"
ONE = "1"  # an axis of size 1 without a name


class DimensionBindError(Exception):
    """The sizes of a tensor do not fit a pattern. In PyTorch: a class of `functorch.dim`."""


@exposed_in("readtorch.func")
def rearrange(tensor, pattern, **axes_lengths):
    """`tensor` with its dimensions as `pattern` says: names on the left for those that it has, the same names on the right.

    Several names in brackets are one dimension, of which all sizes but one must be given (axes_lengths). "..." stands for any number of
    dimensions, 1 for a dimension of size 1. tensor: also a list of tensors, which are stacked first. Raises ValueError for a pattern
    that is none, or does not fit the number of dimensions, DimensionBindError for sizes that do not fit.
    """
    if not isinstance(tensor, Tensor):
        tensor = at.stack(tensor)
    plan = plan_of(tensor.dim(), pattern, **axes_lengths)
    return tensor if plan is None else plan.carried_out(tensor)


class Plan(NamedTuple):
    """groups: of each dimension the axes in it. targets: of each dimension of the result. lengths: sizes that were given."""

    groups: list
    targets: list
    lengths: dict

    def carried_out(self, tensor):
        axes = [axis for group in self.groups for axis in group]
        numbered = {axis: f"d{i}" for i, axis in enumerate(axes)}
        sizes = {}
        for size, group in zip(tensor.shape, self.groups):
            sizes.update(self.sizes_in(size, group, numbered))
        order = [axes.index(axis) for group in self.targets for axis in group]
        result = at.reshape(tensor, [sizes[axis] for axis in axes])
        unnamed = [i for i, axis in enumerate(axes) if i not in order]
        result = at.permute(result, [*order, *unnamed])
        if unnamed:  # dimensions that the pattern says are of size 1
            result = result.sum(list(range(len(order), len(axes))))
        return at.reshape(result, [math.prod([sizes[axis] for axis in group]) for group in self.targets])

    def sizes_in(self, size, group, numbered):
        """The size of each axis of a dimension of this size."""
        known = {axis: self.lengths[axis] for axis in group if axis in self.lengths}
        missing = [axis for axis in group if axis not in known]
        given = math.prod(known.values())
        if len(missing) > 1:
            raise DimensionBindError(
                f"cannot infer the sizes of two dimensions at once {numbered[missing[0]]} and {numbered[missing[1]]}"
            )
        if missing and size % given:
            each = tuple([known.get(axis, "?") for axis in group])
            raise DimensionBindError(f"inferred dimension does not evenly fit into larger dimension: {size} vs {each}")
        if not missing and size != given:
            pack = ", ".join([numbered[axis] for axis in group]) + ("," if len(group) == 1 else "")
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {given}) when matching dimension pack ({pack})"
            )
        return known | {axis: size // given for axis in missing}


@functools.lru_cache(256)
def plan_of(rank, pattern, **lengths):
    """The Plan for tensors with so many dimensions; None where there is nothing to do."""
    left, right = parsed(pattern, lengths)
    check(left, right, lengths)
    fixed = [group for group in left if not is_open(group)]
    named = sum([len(group) for group in fixed])
    if len(fixed) < len(left):
        taken = named + fixed.count([])
        if taken > rank:
            raise ValueError(
                f"Number of dimensions in pattern ({taken}) must be less than or equal to the number of dimensions in the tensor ({rank})"
            )
    elif len(left) != rank:
        raise ValueError(
            f"Number of dimensions in pattern ({len(left)}) must be equal to the number of dimensions in the tensor ({rank})"
        )
    if rank == 0:
        return None
    others = [f"{ELLIPSIS}{i}" for i in range(rank - len(fixed))]
    groups = []
    for group in left:
        groups += [[axis] for axis in others] if is_open(group) else [group or [f"{ONE}{len(groups)}"]]
    targets = []
    for group in right:
        inside = [axis for name in group for axis in (others if name == ELLIPSIS else [name])]
        targets += [[axis] for axis in others] if is_open(group) else [inside]
    return Plan(groups, targets, lengths)


# ------------------------------------------------------------------------------------------------------- patterns


def parsed(pattern, lengths):
    """Both sides of a pattern, each as a list of dimensions, which are lists of names: [] for a 1, ["…"] for the ellipsis."""
    sides = pattern.split("->")
    if len(sides) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    if ELLIPSIS in lengths:
        raise ValueError(f"'{ELLIPSIS}' is not an allowed axis identifier")
    left, right = map(dimensions, sides)
    if "..." not in sides[0] and "..." in sides[1]:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    if any([ELLIPSIS in group and not is_open(group) for group in left]):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    return left, right


class _Bracket(list):
    """A dimension that was written in brackets."""


def is_open(group):
    """Whether it is an ellipsis that stands by itself: any number of dimensions, each a dimension of the result."""
    return group == [ELLIPSIS] and type(group) is not _Bracket


def dimensions(text):
    """One side of a pattern."""
    if "." in text and (text.count("...") != 1 or text.count(".") != 3):
        only = "; only one ellipsis for tensor " if "..." in text else ""
        raise ValueError(f"Expression may contain dots only inside ellipsis (...){only}")
    found, names, bracket = [], set(), None
    for token in re.findall(r"[()]|[^() ]+", text.replace("...", ELLIPSIS)):
        if token == "(":
            if bracket is not None:
                raise ValueError("Axis composition is one-level (brackets inside brackets not allowed)")
            bracket = _Bracket()
        elif token == ")":
            if bracket is None:
                raise ValueError("Brackets are not balanced")
            found.append(bracket)
            bracket = None
        else:
            axis = axis_named(token, names)
            if bracket is None:
                found.append(axis)
            else:
                bracket += axis
    if bracket is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{text.replace('...', ELLIPSIS)}'")
    return found


def axis_named(name, names):
    """[name], or [] for a 1. names: those that have been before."""
    strange = re.search(rf"[^\w{ELLIPSIS}]", name)
    if strange:
        raise ValueError(f"Unknown character '{strange[0]}'")
    if name in names:
        raise ValueError(f"Indexing expression contains duplicate dimension '{name}'")
    if name == ONE:
        return []
    names.add(name)
    if name != ELLIPSIS and not name.isdecimal():
        check_name(name)
    return [name]


def check_name(name):
    reason = None
    if not name.isidentifier():
        reason = "not a valid python identifier"
    elif name.startswith("_") or name.endswith("_"):
        reason = "axis name should should not start or end with underscore"
    if reason:
        raise ValueError(f"Invalid axis identifier: {name}\n{reason}")
    if keyword.iskeyword(name):
        warnings.warn(f"It is discouraged to use axes names that are keywords: {name}", RuntimeWarning, stacklevel=2)
    if name == "axis":
        message = "It is discouraged to use 'axis' as an axis name and will raise an error in future"
        warnings.warn(message, FutureWarning, stacklevel=2)


def check(left, right, lengths):
    """Both sides must have the same names, and sizes be given for those alone."""
    for length in lengths.values():
        if type(length) is not int:
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(length)}")
    sides = [{name for group in side for name in group} for side in (left, right)]
    if any([name.isdecimal() for side in sides for name in side]):
        raise ValueError("rearrange only supports unnamed axes of size 1")
    if sides[0] != sides[1]:
        difference = sides[0] ^ sides[1]
        raise ValueError(f"Identifiers only on one side of rearrange expression (should be on both): {difference}")
    if lengths.keys() - sides[0]:
        raise ValueError(f"Identifiers not found in rearrange expression: {lengths.keys() - sides[0]}")
