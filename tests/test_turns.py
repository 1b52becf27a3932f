"""Tests that want the machine for themselves get it."""

import threading

from tests import turns
from tests.site import test_pages
from tests.turns import turn


def test_who_is_alone_is_alone(tmp_path):
    door, room, log = tmp_path / "door", tmp_path / "room", []
    door.touch()
    room.touch()
    go, inside = threading.Event(), threading.Semaphore(0)

    def visitor(name, alone):
        with turn(alone, door, room):
            log.append(f"{name} comes")
            inside.release()
            go.wait()
            log.append(f"{name} goes")

    together = [threading.Thread(target=visitor, args=(name, False)) for name in "ab"]
    for thread in together:
        thread.start()
    for _ in together:
        assert inside.acquire(timeout=60)  # both are in the room
    alone = threading.Thread(target=visitor, args=("c", True))
    alone.start()
    assert not inside.acquire(timeout=0.2)
    go.set()
    for thread in [*together, alone]:
        thread.join(60)
    assert log[-2:] == ["c comes", "c goes"] and len(log) == 6


def test_who_takes_a_page_takes_all_that_is_asked_of_it():
    file = "tests/site/test_pages.py"
    first, second = (f"book:{name}" for name in test_pages.BOOK[:2])
    scopes = [turns.scope_of(f"{file}::test_{test}[{page}]") for page in (first, second) for test in ("a", "b")]
    assert scopes[0] == scopes[1] != scopes[2] == scopes[3]
    assert turns.scope_of(f"{file}::test_a[fixture:index.html]") == turns.scope_of(f"{file}::test_a") == "together"
    assert turns.scope_of("tests/test_turns.py::test_a[book:x]") == "tests/test_turns.py"


def test_the_longest_files_are_there():
    assert [name for name in turns.LONGEST if not (turns.DOOR.parents[1] / name).exists()] == []
