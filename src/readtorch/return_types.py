"""`readtorch.return_types`: the classes of named results, `readtorch.return_types.max` and its like.

In PyTorch: `torch/return_types.py`. The classes themselves are in `aten/native/return_types.py`.
"""

from .aten.native import return_types as _return_types

all_return_types = [_value for _value in vars(_return_types).values() if hasattr(_value, "n_sequence_fields")]
__all__ = [
    "all_return_types",
    *sorted(_type.__name__ for _type in all_return_types if not _type.__name__.startswith("_")),
]
globals().update((_type.__name__, _type) for _type in all_return_types)
