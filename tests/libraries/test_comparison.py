"""The comparison of `tests.libraries` finds what is wrong, and the table in appendix B has a row for each program."""

import copy
import json

import pytest

from .__main__ import RESULTS, described, programs
from .comparison import compare

EXPECTED = [
    {"name": "loss", "kind": "float32", "shape": [3], "values": [1.0, -2.0, 1e-7]},
    {"name": "fit", "kind": "float64", "shape": [2], "values": [0.5, float("nan")]},
    {"name": "tokens", "kind": "float32", "shape": [2], "values": [3, 4]},
    {"name": "best", "kind": "float32", "shape": [], "values": ["lr"]},
]


def changed(line, key, value):
    found = copy.deepcopy(EXPECTED)
    found[line][key] = value
    return found


def test_near_numbers_are_the_same():
    assert compare(EXPECTED, EXPECTED) == (7, "")
    assert compare(EXPECTED, changed(0, "values", [1.0005, -2.0005, 0.0])) == (7, "")


@pytest.mark.parametrize(
    "line, key, value, says",
    [
        (0, "values", [1.002, -2.0, 1e-7], "loss: 1.002, in PyTorch 1.0"),
        (0, "values", [1.0, 2.0, 1e-7], "loss: 2.0, in PyTorch -2.0"),
        (0, "values", [1.0, -2.0, float("nan")], "loss: nan"),
        (0, "values", [1.0, -2.0], "loss: 2 values"),
        (0, "shape", [1, 3], "loss: shape"),
        (1, "values", [0.5 + 1e-8, float("nan")], "fit: 0.50000001"),
        (1, "values", [0.5, 0.0], "fit: 0.0, in PyTorch nan"),
        (1, "kind", "float32", "fit: kind"),
        (2, "values", [3, 5], "tokens: 5, in PyTorch 4"),
        (2, "values", [3, 4.0], "tokens: 4.0, in PyTorch 4"),
        (3, "values", ["width"], "best: 'width'"),
        (3, "name", "worst", "best: name"),
    ],
)
def test_what_is_wrong_is_found(line, key, value, says):
    assert compare(EXPECTED, changed(line, key, value))[1].startswith(says)


def test_a_program_that_ends_early_or_late_is_found():
    assert compare(EXPECTED, EXPECTED[:3]) == (7, "ends before best")
    assert compare(EXPECTED[:3], EXPECTED) == (7, "goes on with best")
    assert compare(EXPECTED, []) == (0, "ends before loss")


def test_the_table_has_a_row_for_each_program():
    rows = {row["program"]: row for row in json.loads(RESULTS.read_text(encoding="utf8"))["programs"]}
    assert set(rows) == {path.stem for path in programs([])}
    for path in programs([]):
        row = rows[path.stem]
        assert (row["library"], row["what"]) == described(path)
        assert row["version"] and row["result"] in ("same", "differs", "stops") and "/" not in row.get("where", "")
