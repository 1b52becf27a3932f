"""How the workers of `make test` share the work and the machine.

A worker takes one file after the other, and one page after the other of the file that looks at the whole book. A test marked
`alone`, because it looks at the clock or counts what is in /dev/shm, gets the machine for itself: everybody enters a room
through a door; whoever is alone waits in the door until the room is empty, and nobody passes.
"""

import contextlib
import fcntl
import re
from pathlib import Path

# Files of one worker: they share what a process makes once, the small book.
TOGETHER = {f"tests/site/test_{name}.py" for name in ("addresses", "build", "pages", "pdf", "reading")}
PAGE = re.compile(r"tests/site/test_pages\.py::\w+\[book:(.+)\]")  # what is asked of a page while it is open

# Files of few tests that take more than half a minute of a processor.
LONGEST = [
    "tests/gpu/test_operators.py",
    "tests/gpu/test_schedules.py",
    "tests/lockstep/test_lockstep.py",
    "tests/attack/test_caches.py",
]

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


def scope_of(nodeid):
    """The name of what one worker does, this test among others: a file, several, or a page."""
    if page := PAGE.fullmatch(nodeid):
        return page[1]
    file = nodeid.partition("::")[0]
    return "together" if file in TOGETHER else file


def scheduler(config, log):
    """xdist's own, with scopes of ours, and with those that take longest first.

    xdist begins with the scopes of many tests, for it does not know how long one takes: a file of one test that takes minutes
    would come last, and one worker would have nothing to do meanwhile. Pages are many and short, and come late: they fill up.
    """
    from xdist.scheduler import LoadFileScheduling

    class OurScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid):
            return scope_of(nodeid)

        def _assign_work_unit(self, node):
            if first := next(filter(self.workqueue.__contains__, LONGEST), None):
                self.workqueue.move_to_end(first, last=False)
            super()._assign_work_unit(node)

        def remove_node(self, node):
            # xdist gives the file to the next worker from the test on in which this one died, and that would die of it, too.
            crashed = super().remove_node(node)
            for unit in self.workqueue.values():
                if crashed in unit:
                    unit[crashed] = True
            return crashed

    return OurScheduling(config, log)
