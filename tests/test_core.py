"""The way of a beginner: the functions that the script of the page "The core" runs are those of a recorded list, and few.

    .venv/bin/python -m tests.test_core     writes tests/core_functions.txt anew, and says what was added and what is gone
"""
import json
import re
import subprocess
import sys
from pathlib import Path

from readtorch.show import _functions
from readtorch.viz.record_core import CoreFunction

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "book/core.md"
RECORD = ROOT / "tests/core_functions.txt"
MOST_FUNCTIONS = 430
MOST_LINES = 3600
IN_A_FRESH_PROCESS = "import json; from tests import test_core; print(json.dumps([vars(f) for f in test_core.traced()]))"


def script():
    """The page's cell that is tagged `core`: it defines `train(torch)`."""
    return re.search(r"```\{code-cell\} python\n:tags: \[core\]\n\n(.+?)```", PAGE.read_text(encoding="utf8"), re.DOTALL)[1]


def traced():
    import readtorch
    from readtorch.viz.record_core import record_core

    names = {}
    exec(script(), names)
    return record_core(lambda: names["train"](readtorch))


def core():
    """Traced in a process of its own: what other tests have run changes nothing."""
    done = subprocess.run([sys.executable, "-c", IN_A_FRESH_PROCESS], cwd=ROOT, capture_output=True, text=True, check=True)
    return [CoreFunction(**fields) for fields in json.loads(done.stdout)]


def recorded():
    return [line for line in RECORD.read_text(encoding="utf8").splitlines() if not line.startswith("#")]


def differences(now, before):
    return sorted(set(now) - set(before)), sorted(set(before) - set(now))


def listed(title, keys):
    return "".join(f"\n  {title}: {key}" for key in keys)


def test_the_core_has_not_grown_unnoticed():
    functions = core()
    added, gone = differences([f.key for f in functions], recorded())
    assert not added and not gone, (
        f"the script of book/core.md runs other functions than tests/core_functions.txt lists:{listed('added', added)}"
        f"{listed('gone', gone)}\nIf that is wanted: .venv/bin/python -m tests.test_core")
    assert len(functions) <= MOST_FUNCTIONS
    assert _functions.lines_of(functions) <= MOST_LINES
    order = _functions.reading_order(ROOT / "book")
    assert [f.key for f in functions if f.chapter not in order] == [], "no chapter explains these"


def test_what_was_added_is_told_by_name():
    assert differences(["a f", "b g"], ["a f", "c h"]) == (["b g"], ["c h"])
    assert listed("added", ["b g"]) == "\n  added: b g"


def write():
    functions = core()
    added, gone = differences([f.key for f in functions], recorded() if RECORD.exists() else [])
    head = f"# {len(functions)} functions, {_functions.lines_of(functions):,} lines. Written by: .venv/bin/python -m tests.test_core\n"
    RECORD.write_text(head + "".join(f"{key}\n" for key in sorted(f.key for f in functions)), encoding="utf8")
    print(head, listed("added", added), listed("gone", gone))


if __name__ == "__main__":
    write()
