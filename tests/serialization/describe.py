"""What is in a loaded object, said in the same words for both implementations: to compare what one saved and the other loaded."""

import numpy as np
import torch

import readtorch

LIBRARIES = (torch, readtorch)


def describe(value):
    """A nested tuple: types, numbers, the bytes of each storage, and which tensors and containers are one and the same."""
    return _Describer().of(value)


class _Describer:
    def __init__(self):
        self.numbers = {}  # id of a storage or object -> in which order it was met
        self.kept = []  # ids stay unique while their objects live

    def number(self, identity, obj):
        self.kept.append(obj)
        return self.numbers.setdefault(identity, len(self.numbers))

    def of(self, value):
        for T in LIBRARIES:
            if isinstance(value, T.Tensor):
                return self.of_tensor(value, T)
            if isinstance(value, T.storage.TypedStorage):
                return "TypedStorage", str(value.dtype), self.of_storage(value.untyped(), T)
            if isinstance(value, T.Size):
                return "Size", tuple(value)
            if isinstance(value, (T.dtype, T.device, T.layout)):
                return str(value)
        return self.of_python(value)

    def of_tensor(self, tensor, T):
        if ("tensor", id(tensor)) in self.numbers:
            return "again", self.numbers["tensor", id(tensor)]
        attributes = {name: self.of(part) for name, part in sorted(tensor.__dict__.items())}
        storage = self.of_storage_under(tensor, T)
        number = self.number(("tensor", id(tensor)), tensor)
        return (
            number,
            type(tensor).__name__,
            str(tensor.dtype),
            tuple(tensor.shape),
            _strides(tensor),
            _offset(tensor),
            tensor.requires_grad,
            storage,
            tuple(attributes.items()),
        )

    def of_storage_under(self, tensor, T):
        if T is torch and (tensor.is_conj() or tensor.is_neg()):  # readtorch carries out what PyTorch only notes
            whole = torch.empty(0, dtype=tensor.dtype).set_(tensor.untyped_storage())
            whole = whole.conj().resolve_conj() if tensor.is_conj() else whole
            return self.of_storage((whole.neg() if tensor.is_neg() else whole).untyped_storage(), T)
        return self.of_storage(tensor.untyped_storage(), T)

    def of_storage(self, storage, T):
        if storage.device.type == "meta":
            return "meta"
        if storage.nbytes() == 0:
            return 0
        identity = ("storage", storage.data_ptr())
        if identity in self.numbers:
            return self.numbers[identity]
        return self.number(identity, storage), _bytes(storage, T)

    def of_python(self, value):
        if isinstance(value, (dict, list, tuple, set)):
            if isinstance(value, (dict, list)) and ("object", id(value)) in self.numbers:
                return "again", self.numbers["object", id(value)]
            number = self.number(("object", id(value)), value)
            if isinstance(value, dict):
                parts = [(self.of(k), self.of(v)) for k, v in value.items()]
                extra = [(k, self.of(v)) for k, v in sorted(getattr(value, "__dict__", {}).items())]
                return type(value).__name__, number, tuple(parts), tuple(extra)
            parts = sorted(map(repr, value)) if isinstance(value, set) else [self.of(v) for v in value]
            return type(value).__name__, number if isinstance(value, list) else None, tuple(parts)
        return type(value).__name__, str(value) if type(value).__name__ == "StorageType" else getattr(
            value, "__name__", repr(value)
        )


def _bytes(storage, T):
    if T is torch:
        return torch.empty(0, dtype=torch.uint8).set_(storage).numpy().tobytes()
    return np.asarray(storage._impl.host_bytes()).tobytes()


def _strides(tensor):
    """Where they matter: those of dimensions with more than one element, of tensors with any."""
    return tuple(step for size, step in zip(tensor.shape, tensor.stride()) if size > 1) if tensor.numel() else ()


def _offset(tensor):
    return tensor.storage_offset() if tensor.numel() else 0
