"""A round of small messages before each collective, for backends whose ranks are processes.

Note [ Asking rank 0 ]
Every rank sends its fingerprint to the group's rank 0 and waits for the verdict; rank 0 collects, compares
and answers them all. So rank 0 knows who is missing when the time is over, and the verdict can say it to
everybody; a rank that fails elsewhere sends its reason the same way. Two messages a rank: what that costs is
measured by `benchmarks`. A rank waits a little longer for rank 0's verdict than rank 0 waits for the ranks.
"""
import time

from .collective import disagreement, fingerprint_of, written
from .errors import DistBackendError

GRACE = 1.0  # seconds that a verdict may come late
OK, MISMATCH, FAILED = b"+", b"!", b"-"  # the first byte of a verdict


class Mailbox:
    """What the round needs of a backend: small messages between the ranks of a group, in order."""

    def post(self, rank, data):
        """Send bytes to group rank `rank`; never blocks."""
        raise NotImplementedError

    def poll(self, rank):
        """The next message from group rank `rank`, or None; ConnectionError if that rank has gone."""
        raise NotImplementedError

    def pause(self):
        """A `Pause` or its like, to be called when there was nothing to poll."""
        return Pause()


class Failure(Exception):
    """A reason, on its way from the rank that failed to the others."""


def agree(group, mailbox, finger, deadline):
    """Return when all ranks have begun a collective: None if it is the same, else what differs, in words.

    Raises DistBackendError if a rank will not come, or did not come by `deadline` (of time.perf_counter). It
    is raised on all ranks, and the group can then not be used any more: messages of a late rank would be
    taken for an answer.
    """
    if group.size() == 1:
        return None
    if group.rank() == 0:
        verdict = judge(group, mailbox, finger, deadline)
        for rank in range(1, group.size()):
            mailbox.post(rank, verdict)
    else:
        mailbox.post(0, written(finger))
        verdict = hear(group, mailbox, deadline + GRACE)
    kind, text = verdict[:1], verdict[1:].decode(errors="replace")
    if kind == FAILED:
        raise DistBackendError(f"{group.what(finger)}: {text}")
    return None if kind == OK else text


def judge(group, mailbox, finger, deadline):
    """Rank 0: collect the fingerprints of all; the verdict, as bytes."""
    prints, missing = {0: finger}, list(range(1, group.size()))
    pause = mailbox.pause()
    while missing:
        came = [rank for rank in missing if take_print(group, mailbox, rank, prints)]
        failed = [rank for rank in came if isinstance(prints[rank], Failure)]
        if failed:
            return FAILED + f"rank {group.ranks[failed[0]]} will not come, {prints[failed[0]]}".encode()
        missing = [rank for rank in missing if rank not in came]
        if missing and time.perf_counter() > deadline:
            names = ", ".join(str(group.ranks[rank]) for rank in missing)
            return FAILED + f"timed out: rank{'s' * (len(missing) > 1)} {names} did not come".encode()
        if missing and not came:
            pause()
    wrong = disagreement([prints[rank] for rank in range(group.size())], group.ranks)
    return OK if wrong is None else MISMATCH + wrong.encode()


def take_print(group, mailbox, rank, prints):
    """Put the fingerprint of a rank into `prints`, or a Failure; whether there was one."""
    try:
        data = mailbox.poll(rank)
    except ConnectionError as error:
        prints[rank] = Failure(error)
        return True
    if data is not None:
        prints[rank] = _read_print(data)
    return data is not None


def _read_print(data):
    """A fingerprint or a Failure."""
    if data[:1] == FAILED:
        return Failure(data[1:].decode(errors="replace"))
    try:
        return fingerprint_of(data)
    except (ValueError, TypeError, RecursionError):
        return Failure("it sent something that is no fingerprint")


def hear(group, mailbox, deadline):
    """The others: wait for rank 0's verdict."""
    pause = mailbox.pause()
    while True:
        try:
            verdict = mailbox.poll(0)
        except ConnectionError as error:
            return FAILED + f"rank {group.ranks[0]} will not come, {error}".encode()
        if verdict is not None:
            return verdict
        if time.perf_counter() > deadline:
            return FAILED + f"timed out: rank {group.ranks[0]} did not answer".encode()
        pause()


def announce_failure(group, mailbox, reason):
    """Tell the others that this rank will come to no further collective."""
    if group.rank() == 0:
        for rank in range(1, group.size()):
            mailbox.post(rank, FAILED + f"rank {group.ranks[0]} will not come, {reason}".encode())
    else:
        mailbox.post(0, FAILED + reason.encode())


class Pause:
    """Wait between two looks: not at all at first, then longer and longer, so that a late rank costs no
    processor.
    """

    LOOKS = 200  # without sleeping
    LONGEST = 0.001

    def __init__(self):
        self.count = 0

    def __call__(self):
        self.count += 1
        if self.count < self.LOOKS:
            time.sleep(0)
        else:
            time.sleep(min(self.LONGEST, 2e-5 * (self.count - self.LOOKS)))
