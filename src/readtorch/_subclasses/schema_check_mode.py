"""A mode that looks whether operators do what their schemas say: what they write to, and what they return.

In PyTorch: `torch/_subclasses/schema_check_mode.py`. Explained in the chapter "Modes, subclasses, fake tensors".
"""

from itertools import combinations
from typing import NamedTuple

import readtorch
from readtorch._library.utils import iter_tensors, storage_of, zip_schema
from readtorch._tensor import Tensor
from readtorch.utils import _pytree as pytree
from readtorch.utils._python_dispatch import TorchDispatchMode

# They return what they were given, or views, and their schemas do not say so.
_ALLOWED_TO_ALIAS = ("aten::_unsafe_view", "aten::unsafe_split")
_ALLOWED_TO_RETURN_INPUTS = ("aten::lift", "aten::lift_fresh")
# Written to in training, which their schemas do not say. In PyTorch: `SchemaInfo`.
_RUNNING_STATISTICS = ("running_mean", "running_var")


class Mutation(NamedTuple):
    op_name: str
    arg_name: str


class Aliasing(NamedTuple):
    op_name: str
    arg_name: str
    output_number: str


class SchemaCheckMode(TorchDispatchMode):
    """`with SchemaCheckMode():` a call inside that writes to what its schema does not name, or returns what it was given,
    raises RuntimeError. `ops`, `mutated` and `aliasing` say what was seen.
    """

    def __init__(self):
        super().__init__()
        self.ops, self.mutated, self.aliasing = [], [], []

    def reset_cache(self):
        self.ops.clear()
        self.mutated.clear()
        self.aliasing.clear()

    def display_ops(self):
        print(*self.ops, sep=",")

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        schema = func._schema
        self.ops.append(schema.name)
        given = [(argument, value) for argument, value in zip_schema(schema, args, kwargs)]
        before = [_snapshots(value) for _, value in given]
        out = func(*args, **kwargs)
        outputs = out if isinstance(out, tuple) else (out,)
        for (argument, value), snapshots in zip(given, before):
            if value is not None:
                self._check_outputs(schema, argument, value, outputs)
                self._check_writes(schema, argument, value, snapshots)
        for i, j in combinations(range(len(schema.returns)), 2):
            if _overlap(outputs[i], outputs[j]) and not _may_alias(schema.returns[i], schema.returns[j]):
                raise RuntimeError(f"Outputs {i} and {j} alias unexpectedly")
        return out

    def _check_outputs(self, schema, argument, value, outputs):
        name = _spelled(argument)
        for j, output in enumerate(outputs):
            if _overlap(output, value) and schema.name not in _ALLOWED_TO_ALIAS:
                if not _may_alias(schema.returns[j], argument):
                    raise RuntimeError(f"Argument {name} is not defined to alias output but was aliasing")
                self.aliasing.append(Aliasing(schema.name, name, f"output_{j}"))
            may_be_returned = _is_mutable(schema, argument) or schema.name in _ALLOWED_TO_RETURN_INPUTS
            if output is value and isinstance(value, Tensor) and not may_be_returned:
                raise RuntimeError(
                    "Dispatcher operators below autograd are not allowed to directly return inputs.\n"
                    f"However, we found that `outputs[{j}] is {name}"
                )

    def _check_writes(self, schema, argument, value, snapshots):
        if not any(map(_has_changed, snapshots, pytree.tree_leaves(value))):
            return
        name = _spelled(argument)
        if not _is_mutable(schema, argument):
            raise RuntimeError(f"Argument {name} is not defined as mutable but was mutated")
        self.mutated.append(Mutation(schema.name, name))


def _spelled(argument):
    return "input" if argument.name == "self" else argument.name


def _is_mutable(schema, argument):
    return argument.is_write or schema.name.startswith("aten::") and argument.name in _RUNNING_STATISTICS


def _may_alias(one, other):
    """Whether two arguments or returns of a schema may share memory."""
    if one.alias_info is None or other.alias_info is None:
        return False
    sets = one.alias_info.before_set, other.alias_info.before_set
    return bool(sets[0] & sets[1]) or any("*" in names for names in sets) or not all(sets)


def _storages(value):
    return {storage_of(t) for t in iter_tensors((value,), {})}


def _overlap(one, other):
    return bool(_storages(one) & _storages(other))


def _snapshots(value):
    """Of each tensor in a value: a copy, its strides and its storage. None of the rest."""
    return [_snapshot(v) if type(v) is Tensor else None for v in pytree.tree_leaves(value)]


def _snapshot(t):
    return t.detach().clone(), t.stride(), storage_of(t)


def _has_changed(snapshot, t):
    if snapshot is None or type(t) is not Tensor:
        return False
    values, strides, storage = snapshot
    same = (
        values.size() == t.size()
        and readtorch.allclose(values, t, equal_nan=True)
        and strides == t.stride()
        and storage == storage_of(t)
    )
    return not same
