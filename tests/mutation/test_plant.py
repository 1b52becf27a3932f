"""The tool that plants bugs: each kind is found where it is, nothing else changes, and a seed always draws the same."""
from tests.mutation import plant

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
    return {(bug.kind, SOURCE[bug.start:bug.end], bug.text.strip()): bug for bug in plant.Places(SOURCE).bugs}


def test_each_kind_where_it_is():
    assert found().keys() == {
        ("changed constant", "1", "2"), ("changed constant", "2", "3"), ("guard made false", "a is None", "False"),
        ("changed comparison", "is", "is not"), ("changed sign", "+", "-"), ("changed sign", "*", "/"),
        ("guard made true", "a < b and not c", "True"), ("changed comparison", "<", "<="), ("changed sign", "and", "or"),
        ("changed sign", "not c", "(c)"), ("dropped statement", "total.append(os.path.join(a, b))", "pass"),
        ("swapped arguments", "a, b", "b, a"), ("dropped statement", "self.x = -total", "pass"), ("changed sign", "-total", "(total)"),
    }


def test_only_the_bug_changes():
    for (_, was, text), bug in found().items():
        changed = bug.planted(SOURCE)
        assert changed.replace(bug.text, "", 1) != SOURCE and plant.changes_the_program(bug, SOURCE)
        assert changed[:bug.start] == SOURCE[:bug.start] and changed[bug.start + len(bug.text):] == SOURCE[bug.end:]
        assert SOURCE.splitlines()[bug.line - 1].find(was.split("\n")[0]) >= 0


def test_a_seed_draws_the_same(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(SOURCE, encoding="utf8")
    rooms = {"one": [tmp_path / "a.py"], "two": [tmp_path / "b.py"]}
    drawn = plant.draw(rooms, 20, seed=1)
    assert drawn == plant.draw(rooms, 20, seed=1) != plant.draw(rooms, 20, seed=2)
    assert len(set(drawn)) == 20 and [room for room, _, _ in drawn] == ["one", "two"] * 10
