"""Tests that want the machine for themselves get it."""

import threading

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
