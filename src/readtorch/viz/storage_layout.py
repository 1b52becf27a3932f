"""Where the elements of tensors lie in their storage, written down for the stride explorer.

Of a tensor it uses ``shape``, ``stride()``, ``storage_offset()``, ``untyped_storage()``, ``itemsize`` and
``as_strided``: what PyTorch's tensors and ours have in common.

Note [ Cells and elements ]
A storage is bytes. The figure draws it in *cells* as wide as the smallest element type among the views of
it; an element of a wider type (``x.view(torch.int32)`` of an int16 tensor) covers several cells. An index's
first byte is ``itemsize * (offset + sum(index[d] * stride[d]))``; strides and offset count elements, not
bytes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .tensor_notes import dtype_name, is_tensor

MOST_ELEMENTS = 400
MOST_CELLS = 800


@dataclass
class ViewRecord:
    """A tensor as four numbers over a storage (``storage``: its place in the list of storages)."""

    label: str
    shape: list
    stride: list
    offset: int
    dtype: str
    itemsize: int
    contiguous: bool
    storage: int
    values: list  # one text an element, in index order (row-major)


@dataclass
class StorageRecord:
    address: str
    nbytes: int
    cell: int  # bytes in a cell. Note [ Cells and elements ]
    dtype: str
    values: list  # one text a cell


def describe_views(tensors) -> dict:
    """One tensor, a dict of tensors or (label, tensor) pairs -> views and storages as JSON.

    Raises ValueError when a tensor or a storage is too large to be drawn.
    """
    pairs = labelled(tensors)
    addresses = [tensor.untyped_storage().data_ptr() for _, tensor in pairs]
    storages = {}  # address -> the tensors over it
    for address, (_, tensor) in zip(addresses, pairs):
        storages.setdefault(address, []).append(tensor)
    place = {address: number for number, address in enumerate(storages)}
    views = [describe_view(label, tensor, place[address]) for address, (label, tensor) in zip(addresses, pairs)]
    return {
        "views": [asdict(view) for view in views],
        "storages": [asdict(describe_storage(address, over)) for address, over in storages.items()],
    }


def labelled(tensors) -> list[tuple[str, object]]:
    if is_tensor(tensors):
        return [("tensor", tensors)]
    pairs = list(tensors.items() if hasattr(tensors, "items") else tensors)
    if not pairs or not all(len(pair) == 2 and is_tensor(pair[1]) for pair in pairs):
        raise TypeError("expected a tensor, a dict {label: tensor} or a list of (label, tensor)")
    return pairs


def describe_view(label, tensor, storage) -> ViewRecord:
    if tensor.numel() > MOST_ELEMENTS:
        raise ValueError(f"{label} has {tensor.numel()} elements; the stride explorer draws at most {MOST_ELEMENTS}")
    return ViewRecord(
        label,
        list(tensor.shape),
        list(tensor.stride()),
        tensor.storage_offset(),
        dtype_name(tensor.dtype),
        tensor.itemsize,
        tensor.is_contiguous(),
        storage,
        [number_text(v) for v in flat_values(tensor)],
    )


def describe_storage(address, tensors) -> StorageRecord:
    narrowest = min(tensors, key=lambda tensor: tensor.itemsize)
    nbytes = narrowest.untyped_storage().nbytes()
    cells = nbytes // narrowest.itemsize
    if cells > MOST_CELLS:
        raise ValueError(f"the storage has {cells} elements; the stride explorer draws at most {MOST_CELLS}")
    whole = narrowest.detach().as_strided((cells,), (1,), 0)
    values = [number_text(v) for v in flat_values(whole)]
    return StorageRecord(hex(address), nbytes, narrowest.itemsize, dtype_name(narrowest.dtype), values)


def flat_values(tensor) -> list:
    values = tensor.detach().tolist()
    for _ in range(tensor.dim() - 1):
        values = [value for row in values for value in row]
    return values if tensor.dim() else [values]


def number_text(value) -> str:
    """Short enough for a cell: four significant digits."""
    if isinstance(value, (bool, int)):
        return str(value)
    if isinstance(value, complex):
        return f"{number_text(value.real)}{value.imag:+.3g}j"
    return f"{value:.4g}" if value != int_or_none(value) else f"{value:.0f}."


def int_or_none(value: float):
    return int(value) if abs(value) < 1e5 else None  # also false for nan and inf
