"""Every benchmark case runs on both implementations, and the report says what the numbers say."""

import numpy as np
import pytest
import torch

import readtorch as rt
from benchmarks import contestants, page, precision, record, report
from benchmarks.cases import CASES, GROUPS
from readtorch.c10 import cpu_allocator
from tests.allocator import test_traces
from tests.lockstep import test_lockstep


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
    quick = [
        report.summarize(name, {"readtorch": [ours] * 3, "torch": [1.0] * 3})
        for name, ours in (("add", 0.5), ("mul", 2.0))
    ]
    assert slow["ratio"] == 2.0
    judged = dict((what, (ratio, target)) for what, ratio, target in report.verdicts([slow, *quick]))
    assert judged["module: empty Module.__call__"] == (2.0, 1.0)
    assert judged["small operators: geometric mean of 2"] == (pytest.approx(1.0), 0.9)
    assert "missed" in report.markdown([slow], {"readtorch": 0.3}, "")


def test_the_recorded_results_are_complete():
    assert {row["case"] for row in page.read(record.RESULTS / "cpu.json")["rows"]} == set(CASES)
    assert page.read(record.RESULTS / "cpu.json")["about"]["versions"]["torch"] == torch.__version__
    programs = {row["name"] for row in page.read(page.ROOT / "tests/lockstep/results.json")["rows"]}
    assert programs == {script.removesuffix(".py") for script in test_lockstep.SCRIPTS}
    runs = {row["name"] for row in page.read(page.ROOT / "tests/allocator/results.json")["rows"]}
    assert runs == {path.name.split(".")[0] for path in test_traces.TRACES}


def test_contestants_differ_in_what_they_are_said_to_differ(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Nehalem")
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1")
    same, by_default = contestants.environment(), contestants.environment(keeps_memory=False)
    assert {name: value for name, value in same.items() if by_default.get(name) != value} == contestants.KEEPING
    assert (
        "OPENBLAS_CORETYPE" not in same
        and same["MKL_NUM_THREADS"] == "1"
        and not by_default.keys() & contestants.KEEPING
    )
    thresholds = {"MALLOC_TRIM_THRESHOLD_": cpu_allocator._KEPT, "MALLOC_MMAP_THRESHOLD_": cpu_allocator._MAPPED_FROM}
    assert {name: int(value) for name, value in contestants.KEEPING.items()} == thresholds


def test_errors_are_counted_in_units_in_the_last_place():
    x = precision.argument("exp", "float32", 1000)
    rounded = np.exp(x.astype(np.float64)).astype(np.float32)
    assert 0.4 < precision.largest_error("exp", rounded, x) <= 0.5
    assert 1.4 < precision.largest_error("exp", np.nextafter(rounded, np.float32(np.inf)), x) <= 1.5
    recorded = {
        row["function"]: row
        for row in page.read(record.RESULTS / "precision.json")["rows"]
        if row["dtype"] == "float32"
    }
    assert recorded.keys() == precision.FUNCTIONS.keys()
    x = precision.argument("exp", "float32")
    for way, computed in (("eager", precision.eager("readtorch", "exp", x)), ("fused", precision.fused("exp", x))):
        assert precision.largest_error("exp", computed, x) < recorded["exp"][way] + 0.5  # processors differ by an fma


def test_libraries_say_what_they_run():
    found = contestants.libraries()
    assert "openblas" in found["readtorch"] and "kernels" in found["readtorch"]
    assert "oneMKL" in found["torch"] and torch.backends.cpu.get_cpu_capability() in found["torch"]


def test_a_run_of_some_cases_keeps_the_others(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "RESULTS", tmp_path)
    rows = [{"case": name, "group": "chain", "ratio": 1.0} for name in ("a", "b")]
    record.merge("cpu", rows, **{"import": {"torch": 1.0}})
    record.merge("cpu", [rows[0] | {"ratio": 2.0}], **{"import": {}})
    merged = page.read(tmp_path / "cpu.json")
    assert {row["case"]: row["ratio"] for row in merged["rows"]} == {"a": 2.0, "b": 1.0}
    assert merged["import"] == {"torch": 1.0}


def test_pages_say_what_was_missed(tmp_path):
    row = {
        "case": "x",
        "group": "chain",
        "readtorch": 2e-6,
        "torch": 1e-6,
        "ratio": 2.0,
        "quartiles": [1.9, 2.1],
        "date": "2026-01-01",
    }
    path = record.write("cpu", [row], folder=tmp_path)
    assert "2.00 (at most 1.1: missed)" in page.speed(path) and "2026-01-01" in page.cases(path)
    reached, missed = record.row("speed", 5, "×", 4, True), record.row("time", 5, "s", 4)
    assert (record.is_reached(reached), record.is_reached(missed), record.is_reached(record.row("a", 1, ""))) == (
        True,
        False,
        None,
    )
    assert page.gpu(tmp_path).startswith("No run on a real GPU")
    (tmp_path / "benchmarks.json").write_text(
        '{"about": {"device": "a GPU", "date": "2026-01-01"}, "allocation": {"bar": 20, "reached": true},'
        '"bandwidth": {"copy": {"GB/s": 3000.0}, "add": {"GB/s": 2700.0, "bar": 0.85}}}'
    )
    assert "a GPU" in page.gpu(tmp_path) and "| allocation | 20 | True |" in page.gpu(tmp_path)
    assert "| copy | 3,000 | – |\n| add | 2,700 | 0.85 |" in page.gpu(tmp_path)
