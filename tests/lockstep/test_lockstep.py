"""Every script of this folder prints the same with the reference and with readtorch."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.lockstep import compare

HERE = pathlib.Path(__file__).parent
TOLERANCES = {"rtol": 1e-4, "atol": 5e-5}
SCRIPTS = sorted(p.name for p in HERE.glob("*.py") if p.name not in compare.NOT_SCRIPTS)


def environment():
    """Of a fresh process of one thread that finds the package under test."""
    import readtorch

    source = str(pathlib.Path(readtorch.__file__).parent.parent)
    paths = os.pathsep.join(filter(None, [source, str(HERE.parents[1]), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "PYTHONPATH": paths}


def output_of(*command):
    """What a script prints, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *command], capture_output=True, text=True, timeout=300, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prints():
    """prints(library, script); each library has been imported once for all scripts: see forked.py."""
    running = {
        name: subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.lockstep.forked", name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for name in ("torch", "readtorch")
    }

    def output(name, script):
        print(HERE / script, file=running[name].stdin, flush=True)
        answer = json.loads(running[name].stdout.readline())
        assert answer["errors"] is None, answer["errors"]
        return answer["output"]

    yield output
    for process in running.values():
        process.stdin.close()
        process.wait(timeout=60)


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
def test_both_print_the_same(script, prints):
    theirs, ours = prints("torch", script), prints("readtorch", script)
    parted = compare.first_difference(theirs, ours, **TOLERANCES)
    assert parted is None, "line {}\nreference  {}\nreadtorch  {}".format(*parted)


@pytest.mark.parametrize(
    "a, b, line",
    [
        ("loss 0.50001\n", "loss 0.50002\n", None),
        ("loss 0.5\n", "loss 0.501\n", 1),
        ("a 1\nb 3\n", "a 1\nb 4\n", 2),
        ("a\n", "a\nb\n", 2),
        ("Linear\n", "linear\n", 1),
        ("nan\n", "nan\n", None),
    ],
)
def test_the_comparison_tells_rounding_from_difference(a, b, line):
    parted = compare.first_difference(a, b, **TOLERANCES)
    assert (parted[0] if parted else None) == line
