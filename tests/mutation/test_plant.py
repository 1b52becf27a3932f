"""The tool that plants bugs: each kind is found where it is, nothing else changes, a seed always draws the same, and which tests
run a function is known."""

import json
import os
import subprocess
import sys

from tests.mutation import plant, trace
from tests.mutation.__main__ import words_of

SOURCE = '''"""Docstring 1."""
import os

__all__ = ["f"]


def f(a, b=1, *, c: int = 2):
    """Docstring 2."""
    if a is None:
        raise ValueError(f"a is None: {3 + 4}")
    total = (a +
             b) * 2  # ä: three bytes before what follows
    if a < b and not c:
        total.append(os.path.join(a, b))
    self.x = -total
    return total
'''


def found():
    return {(bug.kind, SOURCE[bug.start : bug.end], bug.text.strip()): bug for bug in plant.Places(SOURCE).bugs}


def test_each_kind_where_it_is():
    assert found().keys() == {
        ("changed constant", "1", "2"),
        ("changed constant", "2", "3"),
        ("guard made false", "a is None", "False"),
        ("changed comparison", "is", "is not"),
        ("changed sign", "+", "-"),
        ("changed sign", "*", "/"),
        ("guard made true", "a < b and not c", "True"),
        ("changed comparison", "<", "<="),
        ("changed sign", "and", "or"),
        ("changed sign", "not c", "(c)"),
        ("dropped statement", "total.append(os.path.join(a, b))", "pass"),
        ("swapped arguments", "a, b", "b, a"),
        ("dropped statement", "self.x = -total", "pass"),
        ("changed sign", "-total", "(total)"),
    }


MESSAGES = """
def f(a):
    warnings.warn("text %d" % (a + 1), stacklevel=2)
    warn_once(a, "text " + str(3))
    log.warning("text %d %d", a, a + 4)
    log(a, a + 5)
"""


def test_messages_are_no_place_for_bugs():
    """What a warning says and what is written to a log are left out; whether there is a warning is not, nor a logarithm."""
    bugs = {(bug.kind, MESSAGES[bug.start : bug.end].partition("(")[0]) for bug in plant.Places(MESSAGES).bugs}
    assert bugs == {
        ("dropped statement", "warnings.warn"),
        ("dropped statement", "warn_once"),
        ("dropped statement", "log"),
        ("swapped arguments", "a, a + 5"),
        ("changed sign", "+"),
        ("changed constant", "5"),
    }


def test_only_the_bug_changes():
    for (_, was, text), bug in found().items():
        changed = bug.planted(SOURCE)
        assert changed.replace(bug.text, "", 1) != SOURCE and plant.changes_the_program(bug, SOURCE)
        assert changed[: bug.start] == SOURCE[: bug.start] and changed[bug.start + len(bug.text) :] == SOURCE[bug.end :]
        assert SOURCE.splitlines()[bug.line - 1].find(was.split("\n")[0]) >= 0


def test_a_seed_draws_the_same(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SOURCE, encoding="utf8")
    rooms = {"one": [tmp_path / "a.py"], "two": [tmp_path / "b.py"]}
    drawn = plant.draw(rooms, 20, seed=1)
    assert drawn == plant.draw(rooms, 20, seed=1) != plant.draw(rooms, 20, seed=2)
    assert len(set(drawn)) == 20 and [room for room, _, _ in drawn] == ["one", "two"] * 10


# ------------------------------------------------------------------------------- which tests run which function

AROUND = '''"""Docstring."""
TABLE = {"a": lambda x: x + 1}


@decorated(2)
def f(a=3):
    b = [4 * c for c in a]

    def g():
        return "ä" + 5
    return g, lambda: 6


class C:
    d = 7
'''


def test_the_function_around_a_bug():
    def around(piece):
        start = AROUND.index(piece)
        return trace.function_around(AROUND, start, start + len(piece))

    assert [around(piece) for piece in ("{", "x + 1", "2", "3", "4", "5", "6", "7")] == [
        None,
        2,
        None,
        None,
        5,
        9,
        11,
        None,
    ]


TESTS = """
import os
import time

import readtorch

readtorch.ones(1)


def test_plain():
    readtorch.tensor([1.0]).relu()


def test_child():
    if os.fork() == 0:
        readtorch.softmax(readtorch.ones(2), 0)
        os._exit(0)
    os.wait()


def test_compiled():
    readtorch.rand(3)


def test_slow():
    time.sleep(100)
"""


def ran_with(orders, folder):
    """pytest's exit status and what it printed, with watch.py doing this."""
    (folder / "test_these.py").write_text(TESTS, encoding="utf8")
    (folder / "orders.json").write_text(json.dumps(orders), encoding="utf8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "tests.mutation.watch",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        str(folder),
        "--import-mode=importlib",
        str(folder / "test_these.py"),
    ]
    environment = {
        **os.environ,
        "PYTHONPATH": f"{trace.ROOT}/src:{trace.ROOT}",
        "READTORCH_MUTATION": str(folder / "orders.json"),
    }
    done = subprocess.run(
        [*command, *orders.get("options", [])], env=environment, cwd=trace.ROOT, text=True, capture_output=True
    )
    return done.returncode, done.stdout + done.stderr


def test_what_tests_run_is_recorded(tmp_path):
    status, printed = ran_with({"record": str(tmp_path / "record.json"), "options": ["-k", "not slow"]}, tmp_path)
    assert status == 0, printed
    known = trace.Record({"test_these.py": json.loads((tmp_path / "record.json").read_text(encoding="utf8"))})
    ran = {
        name.partition("::")[2]: {
            function for function, tests in known.runs.items() if any(name == test for _, test in tests)
        }
        for name in known.seconds
    }

    def files(test, part):
        return {name.partition(":")[0] for name in ran[test] if part in name}

    assert ran.keys() == {"test_plain", "test_child", "test_compiled"} and not known.failing
    assert files("test_plain", "activation") and not files("test_plain", "generator")
    assert files("test_child", "softmax") and not files("test_plain", "softmax")
    assert (
        known.compiled
        and known.compiled <= ran["test_compiled"]
        and not known.compiled & (ran["test_plain"] | ran["test_child"])
    )
    assert {"aten/native_function.py", "c10/tensor_impl.py"} <= {name.partition(":")[0] for name in known.imported}


def test_given_tests_run_in_the_given_order_until_one_does_not_end(tmp_path):
    order = [f"test_these.py::{name}" for name in ("test_compiled", "test_plain", "test_slow")]
    orders = {"tests": order, "limits": dict(zip(order, (100, 100, 1))), "now": str(tmp_path / "now")}
    status, printed = ran_with(orders, tmp_path)
    assert status not in (0, 5) and (tmp_path / "now").read_text(encoding="utf8") == order[-1], printed
    assert printed.index("test_compiled PASSED") < printed.index("test_plain PASSED") and "test_child" not in printed
    assert words_of(status, printed) == "does not end"


def test_the_recorded_runs_are_whole():
    """The counts are those of the rows; a bug that changes nothing has a reason, in both files."""
    here = trace.ROOT / "tests/mutation"
    found, excused = (
        json.loads((here / name).read_text(encoding="utf8")) for name in ("results.json", "equivalent.json")
    )
    for seed, run in found["runs"].items():
        rows = [row for row in found["rows"] if str(row["seed"]) == seed]
        assert {outcome: sum(row["outcome"] == outcome for row in rows) for outcome in run["counts"]} == run["counts"]
        assert len(rows) >= 100
    equivalent = {
        f"{row['file']}: {row['change']}": row["why"] for row in found["rows"] if row["outcome"] == "equivalent"
    }
    assert equivalent == excused and all(row["by"] for row in found["rows"] if row["outcome"] == "caught")
