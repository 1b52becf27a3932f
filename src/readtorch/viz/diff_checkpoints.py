"""Two state dicts, or checkpoint files, name by name: the checkpoint diff's model.

The first side is the one that would be loaded into, the second the one that would be loaded, so that
"missing" and "unexpected" mean what they mean in `load_state_dict`.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

import numpy as np

MOST_ROWS = 300
MOST_VALUES = 6


def diff_checkpoints(left, right, names=("model", "checkpoint")) -> dict:
    """Rows ``{name, verdict, left, right, values}``.

    Verdicts: same, value, dtype, shape, missing, unexpected.
    """
    sides = [_named_values(side) for side in (left, right)]
    sharing = [_sharing(side) for side in sides]
    rows = [_row(name, sides, sharing) for name in dict.fromkeys([*sides[0], *sides[1]])]
    return {
        "names": list(names),
        "rows": rows[:MOST_ROWS],
        "left_out": max(0, len(rows) - MOST_ROWS),
        "versions": _version_differences(left, right),
    }


def _named_values(source) -> dict:
    """Dotted name -> tensor or other value. source: a mapping, a Module, or the path of a checkpoint."""
    if isinstance(source, (str, os.PathLike)):
        import readtorch

        source = readtorch.load(source)
    elif hasattr(source, "state_dict"):
        source = source.state_dict()
    if not isinstance(source, Mapping):
        raise TypeError(f"a state dict, a Module or the path of a checkpoint, not {type(source).__name__}")
    return dict(_flatten("", source))


def _flatten(prefix, value):
    """What a checkpoint of dictionaries and lists holds, under names such as ``optimizer.state.0.step``."""
    if isinstance(value, Mapping) and (value or not prefix):
        parts = value.items()
    elif isinstance(value, (list, tuple)) and any(map(_holds_more, value)):
        parts = enumerate(value)
    else:
        yield prefix, value
        return
    for key, part in parts:
        yield from _flatten(f"{prefix}.{key}" if prefix else str(key), part)


def _holds_more(value):
    return _is_tensor(value) or isinstance(value, (Mapping, list))


def _is_tensor(value):
    return hasattr(value, "untyped_storage")


def _sharing(values) -> dict:
    """Name -> the other names whose tensors lie in the same storage."""
    groups = {}
    for name, value in values.items():
        address = value.untyped_storage().data_ptr() if _is_tensor(value) and not value.is_meta else 0
        if address:
            groups.setdefault(address, []).append(name)
    return {name: [other for other in group if other != name] for group in groups.values() for name in group}


def _row(name, sides, sharing):
    present = [name in side for side in sides]
    left, right = (side.get(name) for side in sides)
    one_sided = "missing" if present[0] else "unexpected"
    verdict, values = _compare(left, right) if all(present) else (one_sided, None)
    cells = [
        _cell(side[name], shares.get(name, [])) if there else None
        for side, shares, there in zip(sides, sharing, present)
    ]
    return {"name": name, "verdict": verdict, "left": cells[0], "right": cells[1], "values": values}


def _compare(left, right):
    """A verdict, and a sentence about the numbers if there is one."""
    if not (_is_tensor(left) and _is_tensor(right)):
        both_plain = not _is_tensor(left) and not _is_tensor(right)
        return ("same" if both_plain and left == right else "value"), None
    if tuple(left.shape) != tuple(right.shape):
        return "shape", None
    other_type = _dtype(left) != _dtype(right)
    if left.is_meta or right.is_meta:
        return ("dtype" if other_type else "same"), "a meta tensor has no values to compare"
    changed, sentence = _compare_numbers(_numbers(left), _numbers(right))
    return ("dtype" if other_type else "value" if changed else "same"), sentence


def _compare_numbers(a, b):
    differs = (a != b) & ~((a != a) & (b != b))  # NaN is like NaN
    count = int(differs.sum())
    if not count:
        return False, "all values are equal"
    verb = "differs" if count == 1 else "differ"
    most = float(np.abs(a.astype(complex) - b.astype(complex))[differs].max())
    size = f", by at most {most:.3g}" if math.isfinite(most) else ""
    return True, f"{count} of {a.size} {verb}{size}"


def _numbers(tensor):
    tensor = tensor.detach().cpu()
    if tensor.is_floating_point():
        tensor = tensor.double()  # NumPy has no bfloat16
    return np.asarray(tensor.tolist() if tensor.is_complex() else tensor.numpy())


def _cell(value, shared_with):
    if not _is_tensor(value):
        return {"dtype": type(value).__name__, "shape": None, "text": _short(repr(value)), "shared_with": []}
    text = "on the meta device" if value.is_meta else _first_values(value)
    return {"dtype": _dtype(value), "shape": list(value.shape), "text": text, "shared_with": shared_with}


def _dtype(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def _first_values(tensor):
    values = _numbers(tensor.detach().reshape(-1)[:MOST_VALUES])
    more = " …" if math.prod(tensor.shape) > MOST_VALUES else ""
    return ", ".join(f"{v:.4g}" if values.dtype.kind in "fc" else str(v) for v in values.tolist()) + more


def _short(text):
    return text if len(text) <= 60 else text[:59] + "…"


def _version_differences(left, right):
    """[module's name, version left, version right] where both sides know versions and they differ."""
    known = [
        getattr(side.state_dict() if hasattr(side, "state_dict") else side, "_metadata", None) for side in (left, right)
    ]
    if not all(known):
        return []
    versions = [{name: entry.get("version") for name, entry in side.items()} for side in known]
    both = [name for name in versions[0] if name in versions[1]]
    pairs = [[name, *(side[name] for side in versions)] for name in both]
    return [pair for pair in pairs if pair[1] != pair[2]]
