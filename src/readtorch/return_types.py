"""`readtorch.return_types`: the classes of named results, `readtorch.return_types.max` and its like.

In PyTorch: `torch/return_types.py`. The classes themselves are in `aten/native/return_types.py`.
"""

from .aten.native import return_types as _return_types
from .utils._pytree import SequenceKey, register_pytree_node


def pytree_register_structseq(cls) -> None:
    """Let the named results of a class be containers for `readtorch.utils._pytree`."""

    def flatten(structseq):
        return list(structseq), None

    def flatten_with_keys(structseq):
        return [(SequenceKey(i), value) for i, value in enumerate(structseq)], None

    def unflatten(values, context):
        return cls(values)

    register_pytree_node(cls, flatten, unflatten, flatten_with_keys_fn=flatten_with_keys)


_types = [_value for _value in vars(_return_types).values() if hasattr(_value, "n_sequence_fields")]
all_return_types = [_type for _type in _types if not _type.__name__.startswith("_")]
__all__ = ["pytree_register_structseq", "all_return_types", *sorted(_type.__name__ for _type in all_return_types)]
globals().update((_type.__name__, _type) for _type in _types)
for _type in _types:
    pytree_register_structseq(_type)
