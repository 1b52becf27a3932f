"""The way of a beginner: the functions that the script of the page "The core" runs are those of a recorded list, and few.

.venv/bin/python -m tests.test_core     writes tests/core_functions.txt anew, and says what has changed
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from readtorch.show import _functions
from readtorch.viz.record_core import CoreFunction

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "book/core.md"
RECORD = ROOT / "tests/core_functions.txt"
MOST_FUNCTIONS = 432
MOST_LINES = 4040
IN_A_FRESH_PROCESS = (
    "import json; from tests import test_core; print(json.dumps([vars(f) for f in test_core.traced()]))"
)


def script():
    """The page's cell that is tagged `core`: it defines `train(torch)`."""
    return re.search(
        r"```\{code-cell\} python\n:tags: \[core\]\n\n(.+?)```", PAGE.read_text(encoding="utf8"), re.DOTALL
    )[1]


def traced():
    import readtorch
    from readtorch.viz.record_core import record_core

    names = {}
    exec(script(), names)
    return record_core(lambda: names["train"](readtorch))


def core():
    """Traced in a process of its own: what other tests have run changes nothing."""
    done = subprocess.run(
        [sys.executable, "-c", IN_A_FRESH_PROCESS],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "src")},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [CoreFunction(**fields) for fields in json.loads(done.stdout)]


def recorded():
    return [line for line in RECORD.read_text(encoding="utf8").splitlines() if not line.startswith("#")]


def differences(now, before):
    """Lines that say what has changed: "added: …", "gone: …", and for a function that stands in another file "moved: …"."""
    added, gone = set(now) - set(before), set(before) - set(now)
    here, there = by_name(added), by_name(gone)
    moved = {name for name in here.keys() & there.keys() if len(here[name]) == len(there[name]) == 1}
    lines = [f"moved: {there[name][0]} -> {here[name][0]}" for name in moved]
    lines += [f"added: {key}" for name in here.keys() - moved for key in here[name]]
    lines += [f"gone: {key}" for name in there.keys() - moved for key in there[name]]
    return sorted(lines)


def by_name(keys):
    found = {}
    for key in keys:
        found.setdefault(key.partition(" ")[2], []).append(key)
    return found


def test_the_core_has_not_grown_unnoticed():
    functions = core()
    changed = differences([f.key for f in functions], recorded())
    assert not changed, "\n  ".join(
        [
            "the script of book/core.md runs other functions than tests/core_functions.txt lists:",
            *changed,
            "If that is wanted: .venv/bin/python -m tests.test_core",
        ]
    )
    assert len(functions) <= MOST_FUNCTIONS
    assert _functions.lines_of(functions) <= MOST_LINES
    order = _functions.reading_order(ROOT / "book")
    assert [f.key for f in functions if f.chapter not in order] == [], "no chapter explains these"


def test_what_was_added_is_told_by_name():
    assert differences(["a.py f", "b.py g", "c.py h"], ["a.py f", "b.py i", "d.py h"]) == [
        "added: b.py g",
        "gone: b.py i",
        "moved: d.py h -> c.py h",
    ]


def write():
    functions = core()
    changed = differences([f.key for f in functions], recorded() if RECORD.exists() else [])
    head = f"# {len(functions)} functions, {_functions.lines_of(functions):,} lines. Written by: .venv/bin/python -m tests.test_core\n"
    RECORD.write_text(head + "".join(f"{key}\n" for key in sorted(f.key for f in functions)), encoding="utf8")
    print(head, *changed, sep="\n  ")


if __name__ == "__main__":
    write()
