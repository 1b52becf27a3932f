"""How the workers of `make test` share the work and the machine.

A worker takes one file after the other. A test marked `alone`, because it looks at the clock or counts what is in
/dev/shm, gets the machine for itself: everybody enters a room through a door; whoever is alone waits in the door until the
room is empty, and nobody passes.
"""

import contextlib
import fcntl
from pathlib import Path

# Files of one worker: they share what a process makes once, the small book.
TOGETHER = {"tests/site/test_addresses.py", "tests/site/test_build.py", "tests/site/test_reading.py"}

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


def scheduler(config, log):
    """xdist's own, a file at a time, but for the files that stay together."""
    from xdist.scheduler import LoadFileScheduling

    class OurScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            file = super()._split_scope(nodeid)
            return "together" if file in TOGETHER else file

    return OurScheduling(config, log)
