"""How a figure writes down a tensor: for readtorch's and PyTorch's alike, by what both can do."""

from __future__ import annotations

import sys
from dataclasses import dataclass

SHOWN_ELEMENTS = 24
LONGEST_REPR = 80


@dataclass
class TensorNote:
    """A tensor, or any other value, as text. ``value`` is None when there are too many elements to show."""

    name: str
    value: str | None = None
    shape: list | None = None
    dtype: str | None = None


def is_tensor(value) -> bool:
    """By what it can do, not by its class: this package does not import torch."""
    return hasattr(value, "stride") and hasattr(value, "requires_grad")


def library_of(value):
    """The package that a tensor or module belongs to: ``torch`` or ``readtorch``."""
    for cls in type(value).__mro__:
        root = cls.__module__.partition(".")[0]
        if root in ("torch", "readtorch"):
            return sys.modules[root]
    raise TypeError(f"expected a tensor or a module of torch or readtorch, got {type(value).__name__}")


def dtype_name(dtype) -> str:
    return str(dtype).rpartition(".")[2]


def tensor_text(tensor) -> str | None:
    """The numbers as the library prints them, without ``tensor(`` and what follows the numbers."""
    if tensor.numel() > SHOWN_ELEMENTS:
        return None
    lines = str(tensor.detach()).removeprefix("tensor(").splitlines()
    numbers = "\n".join([lines[0], *(line.removeprefix(" " * len("tensor(")) for line in lines[1:])])
    return numbers[: numbers.rfind("]") + 1] if "]" in numbers else numbers.partition(",")[0].rstrip(")")


def note(name: str, value) -> TensorNote:
    if is_tensor(value):
        return TensorNote(name, tensor_text(value), list(value.shape), dtype_name(value.dtype))
    text = repr(value)
    return TensorNote(name, text if len(text) <= LONGEST_REPR else text[: LONGEST_REPR - 1] + "…")


def named_pairs(names) -> list[tuple[str, object]]:
    """(name, tensor) from a Module, a dict, or pairs. Of a dict such as ``locals()`` only tensors count."""
    if names is None:
        return []
    if hasattr(names, "named_parameters"):
        return list(names.named_parameters())
    pairs = names.items() if hasattr(names, "items") else names
    return [(name, value) for name, value in pairs if is_tensor(value)]
