"""Training, streams, memory, random numbers and a few operators on the fake GPU: as threads are numbered, and with threads
reversed and every stream's work held back until somebody waits for it. Then what is no test: chapters and benchmarks.
"""

import json

import pytest

from .fake import missing
from .groups import FEW, OPERATORS, REST, check_tests, run

pytestmark = [pytest.mark.skipif(missing() is not None, reason=str(missing())), pytest.mark.slow]


@pytest.fixture(autouse=True)
def same_seed_everywhere():
    """In place of the suite's fixture of that name: nothing is computed here."""


HELD = {"order": "reversed", "hold": 1, "devices": 2}


def test_streams_memory_and_the_like():
    check_tests(REST, "not training", devices=2)


def test_threads_reversed_and_work_held_back():
    check_tests(REST, **HELD)
    check_tests(OPERATORS, FEW, **HELD)


@pytest.mark.parametrize("name", ["cuda_kernels", "fast_kernels", "caching_allocator"])
def test_a_chapter_is_the_same_where_there_is_a_gpu(name):
    status, said = run("tests.gpu.chapters", name, run=0)
    assert status == 0, said[-6000:]


def test_the_benchmarks_run(tmp_path):
    """Their host side: kernels do nothing, and times mean nothing."""
    status, said = run("benchmarks.gpu", "--rounds", 1, "--results", tmp_path / "results.json", run=0, poison=0)
    assert status == 0, said[-6000:]
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["about"]["device"] == "NVIDIA H100 80GB HBM3" and len(results["bandwidth"]) > 10
