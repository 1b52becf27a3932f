"""Guards: what must still be so for a graph to run again. Each writes one line of the generated function.

    if type(x) is not T0 or (a1 := x._array).shape != (2, 3) or … : return MISS
    t2 = x.scale
    if type(t2) is not float or t2 != 2.0: return MISS

Absence is guarded like presence (a key that is not in a dictionary, a name that no global shadows), and a type before a value:
`t2 != 2.0` would call a method of an unknown object. Explained in the chapter "Dynamo". In PyTorch: `torch/_dynamo/guards.py`,
checked in C++ (`torch/csrc/dynamo/guards.cpp`).
"""

import abc
import itertools
import math

from readtorch.c10 import scalar_type
from readtorch.c10.dispatch_key import BACKENDS, HISTORY, MATH_BITS
from readtorch.c10.local_dispatch_key_set import DEFAULT_MASK, threads_with_modes, tls
from readtorch.csrc.autograd import autocast_init

from .source import AttrSource, OwnAttrSource, is_held

MISS = object()  # what a captured function returns if one of its guards does not hold
KEPT_KEYS = BACKENDS | HISTORY | MATH_BITS
# Guards that say of an object what cannot change for one that the code holds itself.
OF_THE_OBJECT = ("TYPE_MATCH", "ID_MATCH", "EQUALS_MATCH")
MOST_COMPARED = 10  # tensors, each with each; of more a set of their ids is quicker


class TensorFacts:
    """What a guard compares of a tensor. open: the numbers of dimensions whose sizes may be others, above one."""

    def __init__(self, tensor, open=()):
        self.open = open
        array = tensor._array
        self.cls, self.dtype, self.device = type(tensor), tensor.dtype, tensor.device
        self.shape, self.strides, self.array_dtype = array.shape, array.strides, array.dtype
        self.keys = tensor._keys & KEPT_KEYS
        self.requires_grad, self.kind = tensor.requires_grad, _scalar_name(tensor)

    def difference(self, name, tensor):
        """Which fact another value has otherwise, in the words of PyTorch's log."""
        if type(tensor) is not self.cls:
            return f"expected type of '{name}' to be a tensor type, but found {type(tensor)}"
        if tensor.dtype is not self.dtype:
            return f"tensor '{name}' dtype mismatch. expected {self.kind}, actual {_scalar_name(tensor)}"
        if tensor.requires_grad is not self.requires_grad:
            return f"tensor '{name}' requires_grad mismatch. expected requires_grad={int(self.requires_grad)}"
        if tensor.dim() != len(self.shape):
            return f"tensor '{name}' rank mismatch. expected {len(self.shape)}, actual {tensor.dim()}"
        for i, (now, before) in enumerate(zip(tensor.shape, self.shape)):
            if now != before and (i not in self.open or now < 2):
                return f"tensor '{name}' size mismatch at index {i}. expected {before}, actual {now}"
        return f"tensor '{name}' stride mismatch or other dispatch keys"


def _scalar_name(tensor):
    """ "Float", "Double": the dtype in C++'s words."""
    return tensor.type().rpartition(".")[2].removesuffix("Tensor")


class Guard:
    """kind: the name of a method of GuardBuilder; source: of what; seen: what was there."""

    __slots__ = ("kind", "source", "seen")

    def __init__(self, kind, source, seen=None):
        self.kind, self.source, self.seen = kind, source, seen

    def key(self):
        seen = self.seen
        plain = isinstance(seen, (str, int)) or type(seen).__eq__ is not object.__eq__ and hasattr(seen, "base")
        return self.kind, self.source, type(seen), seen if plain else id(seen)

    def describe(self):
        """The guard in the words of PyTorch's logs."""
        name = self.source.name if self.source is not None else "GLOBAL_STATE"
        shown = DESCRIPTIONS.get(self.kind, "{kind}({name})")
        return shown.format(kind=self.kind, name=name, seen=self.seen)


DESCRIPTIONS = {
    "EQUALS_MATCH": "{name} == {seen!r}",
    "ID_MATCH": "{name} is the same object",
    "TYPE_MATCH": "type({name}) is {seen.__name__}",
    "SEQUENCE_LENGTH": "len({name}) == {seen}",
    "DICT_KEYS_MATCH": "list({name}) == {seen!r}",
    "DICT_CONTAINS": "{seen!r} in {name}",
    "DICT_NOT_CONTAINS": "{seen!r} not in {name}",
    "NO_HASATTR": "not hasattr({name}, {seen!r})",
    "NOT_PRESENT_IN_GENERIC_DICT": "{seen!r} not in {name}.__dict__",
    "DUPLICATE_INPUT": "{name} is {seen.name}",
    "NOT_DUPLICATE": "{name} is not {seen.name}",
    "CLASS_MATCH": "{name} has the same attributes",
    "TENSOR_MATCH": "check_tensor({name}, {seen.dtype}, size={seen.shape}, requires_grad={seen.requires_grad})",
}


def autocast_state():
    """(whether autocast is on, and its dtype) for each kind of device that has it, and whether it keeps casts."""
    kinds = [
        (autocast_init.is_autocast_enabled(kind), autocast_init.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")
    ]
    return kinds, autocast_init.is_autocast_cache_enabled()


def cell_is_empty(cell):
    try:
        cell.cell_contents
    except ValueError:
        return True
    return False


def same_with_types(value, seen):
    """Equal, and not 1 for True or 1.0: for sets, ranges and slices."""
    if type(value) is not type(seen):
        return False
    if isinstance(value, (set, frozenset)):
        return value == seen and {(type(each), each) for each in value} == {(type(each), each) for each in seen}
    ends, before = (value.start, value.stop, value.step), (seen.start, seen.stop, seen.step)
    return ends == before and [*map(type, ends)] == [*map(type, before)]


class GuardBuilder:
    """Writes guards as lines of the function that `writer` makes. leave(i): the statement that leaves it at guard number i."""

    def __init__(self, writer, leave=lambda i: "return MISS"):
        self.writer, self.leave = writer, leave
        self.number = 0

    def write(self, guard):
        condition = getattr(self, guard.kind)(guard.source, guard.seen)
        self.writer.line(f"if {condition}: {self.leave(self.number)}")
        self.number += 1

    # Each returns the condition under which the guard fails.

    def GLOBAL_STATE(self, source, seen):
        hold = self.writer.hold
        mask = f"({hold(tls)}.mask if {hold(threads_with_modes)} else {DEFAULT_MASK}) != {seen[0]}"
        return f"{mask} or {hold(scalar_type)}._default is not {hold(seen[1])}"

    def ABC_TOKEN(self, source, seen):
        """No class has been registered with an abstract one."""
        return f"{self.writer.hold(abc.get_cache_token)}() != {seen}"

    def AUTOCAST(self, source, seen):
        return f"{self.writer.hold(autocast_state)}() != {self.writer.hold(seen)}"

    def TYPE_MATCH(self, source, seen):
        return f"type({self.writer.get(source)}) is not {self.writer.hold(seen)}"

    def ID_MATCH(self, source, seen):
        plain = seen is None or seen is True or seen is False
        return f"{self.writer.get(source)} is not {seen if plain else self.writer.hold(seen)}"

    def CLASS_MATCH(self, source, seen):
        """No class that an object's attributes are looked up in has got or lost one, and they are the same classes."""
        writer, conditions = self.writer, []
        for cls, names, is_ours in seen:
            found = writer.hold(cls.__dict__)
            conditions.append(f"len({found}) != {len(names)}" if is_ours else f"[*{found}] != {writer.hold(names)}")
        cls = seen[0][0]
        return " or ".join([f"{writer.hold(cls)}.__mro__ is not {writer.hold(cls.__mro__)}", *conditions])

    def EQUALS_MATCH(self, source, seen):
        value, writer = self.writer.get(source), self.writer
        if type(seen) in (set, frozenset, range, slice):
            return f"not {writer.hold(same_with_types)}({value}, {writer.hold(seen)})"
        if type(seen) is float and seen != seen:
            return f"type({value}) is not float or {value} == {value}"
        kind = type(seen).__name__ if type(seen) in (int, str, float, bytes) else writer.hold(type(seen))
        condition = f"type({value}) is not {kind} or {value} != {writer.literal(seen)}"
        if type(seen) is float and seen == 0:
            condition += f" or {writer.hold(math.copysign)}(1.0, {value}) != {math.copysign(1.0, seen)}"
        return condition

    def RANGE_ITERATOR_MATCH(self, source, seen):
        """An iterator over the same numbers, as far as it was."""
        value, hold = self.writer.get(source), self.writer.hold
        return f"type({value}) is not {hold(type(iter(seen[0][0])))} or {value}.__reduce__()[1:] != {hold(seen)}"

    def SEQUENCE_LENGTH(self, source, seen):
        return f"len({self.writer.get(source)}) != {seen}"

    def SHAPE_ENV(self, source, seen):
        """A decision by numbers comes out as it did: an equality, or a range."""
        expression, outcome = seen
        return f"({self.writer.expression(expression)}) is not {outcome}"

    def DICT_KEYS_MATCH(self, source, seen):
        """The same keys in the same order, and 1 is not True."""
        keys = self.writer.get(source)
        if not seen:
            return keys
        if any(
            type(key).__eq__ is not object.__eq__ and hasattr(key, "_array") for key in seen
        ):  # tensors compare elements
            return f"[*map(id, {keys})] != {self.writer.hold([id(key) for key in seen])}"
        same = f"[*{keys}] != {self.writer.hold(seen)}"
        if all(type(key) is str for key in seen):
            return same
        return f"{same} or [*map(type, {keys})] != {self.writer.hold([type(key) for key in seen])}"

    def DICT_CONTAINS(self, source, seen):
        return f"{self.writer.literal(seen)} not in {self.writer.get(source)}"

    def DICT_NOT_CONTAINS(self, source, seen):
        return f"{self.writer.literal(seen)} in {self.writer.get(source)}"

    def NO_HASATTR(self, source, seen):
        return f"hasattr({self.writer.get(source)}, {seen!r})"

    def NOT_PRESENT_IN_GENERIC_DICT(self, source, seen):
        return f"{seen!r} in {self.writer.get(AttrSource(source, '__dict__'))}"

    def DUPLICATE_INPUT(self, source, seen):
        return f"{self.writer.get(source)} is not {self.writer.get(seen)}"

    def NOT_DUPLICATE(self, source, seen):
        return f"{self.writer.get(source)} is {self.writer.get(seen)}"

    def NO_TENSOR_ALIASING(self, source, seen):
        """No two inputs of the graph are one tensor."""
        names = [self.writer.get(each) for each in seen]
        if len(names) <= MOST_COMPARED:
            return " or ".join(f"{a} is {b}" for a, b in itertools.combinations(names, 2))
        return f"len({{{', '.join(f'id({name})' for name in names)}}}) != {len(names)}"

    def EMPTY_CELL(self, source, seen):
        return f"not {self.writer.hold(cell_is_empty)}({self.writer.get(source)})"

    def EMPTY_DICTS(self, source, seen):
        """None of these attributes of a module (its dictionaries of hooks) has anything in it."""
        return " or ".join(OwnAttrSource(source, name).read(self.writer) for name in seen)

    def EMPTY_GLOBALS(self, source, seen):
        return " or ".join(self.writer.hold(each) for each in seen)

    def sizes(self, first, array, seen):
        if not seen.open:
            return [f"{first}.shape != {seen.shape}", f"{array}.strides != {seen.strides}"]
        texts = [f"{first}.ndim != {len(seen.shape)}", f"not {array}.flags.c_contiguous"]
        for i, size in enumerate(seen.shape):
            texts.append(f"{array}.shape[{i}] < 2" if i in seen.open else f"{array}.shape[{i}] != {size}")
        return texts

    def TENSOR_MATCH(self, source, seen):
        """Type, sizes, strides, dtype, device and what autograd asks for: all that operators decide by, but the elements."""
        tensor, writer = self.writer.get(source), self.writer
        array = writer.fresh()
        texts = [
            f"type({tensor}) is not {writer.hold(seen.cls)}",
            *self.sizes(f"({array} := {tensor}._array)", array, seen),
            f"{array}.dtype is not {writer.hold(seen.array_dtype)}",
            f"{tensor}._keys & {KEPT_KEYS} != {seen.keys}",
        ]
        if seen.device.type == "cuda":
            texts.append(f"{tensor}.device != {writer.hold(seen.device)}")
        return " or ".join(texts)


def needs_no_guard(kind, source):
    return is_held(source) and kind in OF_THE_OBJECT
