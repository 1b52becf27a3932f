"""The kernels that a call visits are those that the dispatch table predicts, and the same ones in PyTorch and in readtorch."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest

from .hops import CASES, OPERATORS, cases

# In readtorch a factory looks at `device` before the first key: mostly the kernel at BackendSelect is passed by. And the key Python
# needs no copy of the thread's state.
ONLY_IN_PYTORCH = ["BackendSelect", "PythonTLSSnapshot"]


@functools.cache
def observed(library):
    """[for each case [for each operator (predicted, observed, type of the error or None)]], and two lists of names."""
    import readtorch

    paths = os.pathsep.join(
        [str(pathlib.Path(readtorch.__file__).parent.parent), str(pathlib.Path(__file__).parents[2])]
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.aten.hops", library],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def calls(library):
    """(what it is, predicted, observed, error) of each call."""
    for case, row in zip(cases(), observed(library)["hops"], strict=True):
        for name, (predicted, hops, error) in zip(OPERATORS, row, strict=True):
            yield (name, *case), predicted, hops, error


def shared(hops):
    return [key for key in hops if key not in ONLY_IN_PYTORCH]


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "readtorch"])
def test_the_table_predicts_the_hops(library):
    wrong = []
    for what, predicted, hops, error in calls(library):
        if library == "readtorch":
            predicted, hops = shared(predicted), shared(hops)
        if hops != (predicted[: len(hops)] if error else predicted):
            wrong.append((what, "predicted", predicted, "observed", hops, error))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.slow
def test_both_take_the_same_way():
    """To the end where both come to it; as far as both go where one of them refuses the call."""
    wrong = []
    for (what, _, theirs, their_error), (_, _, ours, our_error) in zip(calls("torch"), calls("readtorch"), strict=True):
        theirs, ours = shared(theirs), shared(ours)
        far = min(len(theirs), len(ours)) if their_error or our_error else None
        if theirs[:far] != ours[:far]:
            wrong.append((what, "PyTorch", theirs, their_error, "readtorch", ours, our_error))
    assert not wrong, (len(wrong), wrong[:5])


@pytest.mark.slow
@pytest.mark.parametrize("library", ["torch", "readtorch"])
def test_the_profiler_sees_each_call_once(library):
    """Not each hop: what is recorded begins where a call enters the dispatcher, before its first kernel."""
    assert observed(library)["profiled"] == observed(library)["called"]


def test_the_cases_are_many():
    assert len({str(case) for case in cases()}) > 0.8 * CASES >= 400 and len(OPERATORS) >= 40
    assert {state for *_, states in cases() for state in states} >= {
        "no_grad",
        "inference_mode",
        "mode",
        "with Conjugate",
    }
