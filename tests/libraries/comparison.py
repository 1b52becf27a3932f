"""Compares what a program printed under PyTorch and under readtorch: the same names in the same order, texts alike, numbers near."""

import json
import math

# What two results of the same operations may differ by, relative to the number; sums that cancel, by a hundredth of it relative to the
# largest number beside it.
TOLERANCE = {"float32": 1e-3, "float64": 1e-9}


def results(output):
    """The lines that `report` has written, as dicts."""
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"name"')]


def compare(expected, found):
    """(how many numbers were compared, what differs first: a text, "" if nothing does)"""
    count = 0
    for wanted, result in zip(expected, found):
        for key in ("name", "kind", "shape"):
            if wanted[key] != result[key]:
                return count, f"{wanted['name']}: {key} {result[key]}, in PyTorch {wanted[key]}"
        numbers, difference = _values(wanted, result["values"])
        count += numbers
        if difference:
            return count, f"{wanted['name']}: {difference}"
    if len(found) < len(expected):
        return count, f"ends before {expected[len(found)]['name']}"
    return count, "" if len(found) == len(expected) else f"goes on with {found[len(expected)]['name']}"


def _values(wanted, values):
    if len(values) != len(wanted["values"]):
        return 0, f"{len(values)} values, in PyTorch {len(wanted['values'])}"
    numbers = [v for v in wanted["values"] if _is_number(v)]
    largest = max((abs(v) for v in numbers if math.isfinite(v)), default=0)
    tolerance = TOLERANCE[wanted["kind"]]
    for expected, value in zip(wanted["values"], values):
        if not _near(expected, value, tolerance, tolerance * largest / 100):
            return len(numbers), f"{value!r}, in PyTorch {expected!r}"
    return len(numbers), ""


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _near(expected, value, relative, absolute):
    """Whether a value may stand for the expected one: whole numbers, texts and truth values are equal, floats near."""
    if not _is_number(expected) or not _is_number(value) or isinstance(expected, int):
        return type(expected) is type(value) and expected == value
    if not math.isfinite(expected) or not math.isfinite(value):
        return expected == value or (math.isnan(expected) and math.isnan(value))
    return abs(expected - value) <= relative * abs(expected) + absolute
