"""`make test` runs two tests at a time. A test marked `alone`, because it looks at the clock or counts what is in /dev/shm,
gets the machine for itself.

Everybody enters a room through a door. Whoever is alone waits in the door until the room is empty, and nobody passes.
"""
import contextlib
import fcntl
from pathlib import Path

DOOR, ROOM = Path(__file__), Path(__file__).with_name("conftest.py")  # any two files: only the locks on them count


@contextlib.contextmanager
def turn(alone, door=DOOR, room=ROOM):
    with open(door) as door, open(room) as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(room, fcntl.LOCK_UN)  # closing would not do: a forked child may still have it open
