"""The shortest way through everything: the files that `y = x + 1; y.backward()` runs, the first time and again, are few.

.venv/bin/python -m tests.test_shortest_way     lists them: (functions, lines of these functions) in the first run, and again

What is written at the first call (faces, kernels, nodes) counts with the file that writes it; what importing runs, such as the
declaration of the operator, counts with nobody. A tensor of no dimensions, as in the chapter "Autograd".
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from readtorch.viz.record_core import CoreFunction, record_core

ROOT = Path(__file__).parent.parent
MOST_FILES, MOST_FILES_AGAIN = 19, 14
IN_A_FRESH_PROCESS = "import json; from tests import test_shortest_way as way; print(json.dumps([[vars(f) for f in run] for run in way.traced()]))"


def traced():
    """The functions that the first run enters, and those of a later run."""
    import readtorch

    def program():
        y = x + 1
        y.backward()

    x = readtorch.ones((), requires_grad=True)
    first = record_core(program, warm=0)
    return first, record_core(program, warm=2)


def runs():
    """Traced in a process of its own: what other tests have run changes nothing."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [[CoreFunction(**fields) for fields in run] for run in json.loads(done.stdout)]


def by_file(functions):
    """File -> its functions among these, without texts that were written while it ran."""
    files = {}
    for function in functions:
        if function.file != "generated":
            files.setdefault(function.file, []).append(function)
    return files


def test_the_shortest_way_stays_short():
    first, again = map(by_file, runs())
    assert len(first) <= MOST_FILES and len(again) <= MOST_FILES_AGAIN, (sorted(first), sorted(again))
    assert set(again) <= set(first)


def show():
    first, again = map(by_file, runs())
    print(f"{len(first)} files the first time, {len(again)} again")
    for file, functions in first.items():
        print(f"{file:45} {tally(functions):12} {tally(again.get(file, [])):12} {', '.join(f.name for f in functions)}")


def tally(functions):
    return f"({len(functions)}, {sum(f.last - f.first + 1 for f in functions)})" if functions else ""


if __name__ == "__main__":
    show()
