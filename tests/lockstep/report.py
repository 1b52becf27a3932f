"""python -m tests.lockstep.report: runs every program of this folder twice and writes results.json, which the book shows.

A row is a program: its name, what it is about, how many lines it printed, and the first line that differs, if there is one.
"""

import ast

from benchmarks import record
from tests.lockstep import compare
from tests.lockstep.test_lockstep import HERE, SCRIPTS, TOLERANCES, output_of


def row(script):
    theirs = output_of(str(HERE / script))
    ours = output_of("-m", "readtorch", "run", str(HERE / script))
    about = ast.get_docstring(ast.parse((HERE / script).read_text(encoding="utf8"))).split("\n")[0]
    return {
        "name": script.removesuffix(".py"),
        "about": about,
        "lines": len(theirs.splitlines()),
        "difference": compare.first_difference(theirs, ours, **TOLERANCES),
    }


if __name__ == "__main__":
    rows = [row(script) for script in SCRIPTS]
    record.write("results", rows, folder=HERE, **TOLERANCES)
    same = sum(row["difference"] is None for row in rows)
    print(f"{same} of {len(rows)} programs in lockstep")
