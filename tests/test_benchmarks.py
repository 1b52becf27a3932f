"""Every benchmark case runs on both implementations, and the report says what the numbers say."""
import pytest

import readtorch as rt
import torch
from benchmarks import report
from benchmarks.cases import CASES, GROUPS


@pytest.mark.parametrize("T", [torch, rt], ids=["torch", "readtorch"])
@pytest.mark.parametrize("name", [name for name in CASES if not name.endswith("two threads") and "d=384" not in name])
def test_case_runs(name, T):
    prepared = CASES[name].prepare(T)
    function = prepared[0] if isinstance(prepared, tuple) else prepared
    function()
    function()
    assert CASES[name].group in GROUPS


def test_the_report_judges_by_the_targets():
    slow = report.summarize("empty Module.__call__", {"readtorch": [2.0, 2.0, 4.0], "torch": [1.0, 1.0, 1.0]})
    quick = [report.summarize(name, {"readtorch": [ours] * 3, "torch": [1.0] * 3})
             for name, ours in (("add", 0.5), ("mul", 2.0))]
    assert slow["ratio"] == 2.0
    judged = dict((what, (ratio, target)) for what, ratio, target in report.verdicts([slow, *quick]))
    assert judged["module: empty Module.__call__"] == (2.0, 1.0)
    assert judged["small operators: geometric mean of 2"] == (pytest.approx(1.0), 0.9)
    assert "missed" in report.markdown([slow], {"readtorch": 0.3}, "")
