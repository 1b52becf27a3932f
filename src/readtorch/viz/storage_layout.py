"""What the stride figure shows of tensors that exist: their sizes, strides and offsets over one storage, and its numbers.

Of a tensor it uses ``shape``, ``stride()``, ``storage_offset()``, ``untyped_storage()``, ``itemsize`` and
``as_strided``: what PyTorch's tensors and ours have in common.
"""

from __future__ import annotations

from .tensor_notes import dtype_name, is_tensor


def describe_views(tensors) -> tuple[dict, dict]:
    """One tensor, a dict of tensors or (label, tensor) pairs -> the figure's inputs for the first, and what it shows
    besides: the views by name, and the texts of the storage's cells.

    Raises ValueError when they do not share a storage and a dtype.
    """
    pairs = labelled(tensors)
    first = pairs[0][1]
    for label, tensor in pairs:
        if place_of(tensor) != place_of(first):
            raise ValueError(
                f"{label} is of another storage or dtype than {pairs[0][0]}; the figure shows views of one storage"
            )
    count = first.untyped_storage().nbytes() // first.itemsize
    whole = first.detach().as_strided((count,), (1,), 0)
    start = {"count": count, "dtype": dtype_name(first.dtype), "program": "x", **numbers_of(first)}
    views = [[label, numbers_of(tensor)] for label, tensor in pairs]
    return start, {"views": views, "values": [number_text(value) for value in whole.tolist()]}


def labelled(tensors) -> list[tuple[str, object]]:
    if is_tensor(tensors):
        return [("x", tensors)]
    pairs = list(tensors.items() if hasattr(tensors, "items") else tensors)
    if not pairs or not all(len(pair) == 2 and is_tensor(pair[1]) for pair in pairs):
        raise TypeError("expected a tensor, a dict {label: tensor} or a list of (label, tensor)")
    return pairs


def place_of(tensor):
    return tensor.untyped_storage().data_ptr(), tensor.dtype


def numbers_of(tensor) -> dict:
    return {"sizes": list(tensor.shape), "strides": list(tensor.stride()), "offset": tensor.storage_offset()}


def number_text(value) -> str:
    """Short enough for a cell: four significant digits."""
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, complex):
        return f"{number_text(value.real)}{value.imag:+.3g}j"
    return f"{value:.4g}" if value != int_or_none(value) else f"{value:.0f}."


def int_or_none(value: float):
    return int(value) if abs(value) < 1e5 else None  # also false for nan and inf
