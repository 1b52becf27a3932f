"""The backend `threads`: ranks are threads of one process, and the last one to arrive carries out a collective for all.

In PyTorch: `torch/testing/_internal/distributed/multi_threaded_pg.py`, for tests; here for notebooks too.

Note [ Collectives of threads ]
Every rank stores its part of the collective in the state that the group shares and, unless it asked for a handle, waits.
The last to arrive finds all parts, compares the fingerprints and carries out the collective for everybody. So nobody waits
for a rank that will not come: one that has left, by an exception or because its function returned, fails every collective
that still needs it, and one that waits too long fails the collective for all.
"""

import threading
import time
from collections import deque

from .device_streams import occupy_streams
from .exception import DistBackendError
from .process_group import ProcessGroup
from .process_group_wrapper import disagreement, offsets
from .types import combine, finish


class ThreadWorld:
    """What the ranks of one process share: a state for each group, and who has left.

    network: a `network.Network` that says how long messages would take on a real one, or None.
    """

    def __init__(self, size, network=None):
        self.size = size
        self.network = network
        self.lock = threading.RLock()
        self.left = {}  # rank -> why
        self.states = {}  # (name, ranks of the group) -> GroupState

    def state(self, name, ranks):
        with self.lock:
            key = name, tuple(ranks)
            if key not in self.states:
                self.states[key] = GroupState(self, ranks)
            return self.states[key]

    def leave(self, rank, why):
        """Rank `rank` will take part in no further collective: those that wait for it fail."""
        with self.lock:
            self.left[rank] = why
            for state in self.states.values():
                state.has_left(rank)


class GroupState:
    """The collectives and messages of one group that are under way."""

    def __init__(self, world, ranks):
        self.world = world
        self.ranks = list(ranks)
        self.pending = {}  # sequence number -> PendingCollective
        self.messages = {}  # (from, to, tag) -> deque of arrays that wait for a receiver
        self.waiting = {}  # to -> [(from or None, tag, array, work)]: receivers that wait for a message
        self.free_at = 0.0  # on simulated devices: when its communicator has done all that it was asked for

    def pending_collective(self, number):
        if number not in self.pending:
            self.pending[number] = PendingCollective(self)
        return self.pending[number]

    def has_left(self, rank):
        if rank not in self.ranks:
            return
        for pending in list(self.pending.values()):
            pending.check_present()
        position, why = self.ranks.index(rank), self.world.left[rank]
        for to, receivers in self.waiting.items():
            self.waiting[to] = [r for r in receivers if r[0] != position]
            for *_, work in [r for r in receivers if r[0] == position]:
                work.finish(_absent(work.what, [rank], why))


class PendingCollective:
    """One collective: who has come so far, and with what."""

    def __init__(self, state):
        self.state = state
        self.calls = {}  # group rank -> Collective
        self.works = {}  # group rank -> Work
        self.failure = None  # function of a Work, makes its error
        self.came = 0
        self.complete_since = None

    def join(self, rank, collective, work):
        """Add this rank's part; the last one to come carries out the collective."""
        with self.state.world.lock:
            self.came += 1
            if self.came == len(self.state.ranks):
                self.state.pending.pop(collective.finger.number, None)
            if self.failure is not None:
                work.finish(self.failure(work))
                return
            self.calls[rank], self.works[rank] = collective, work
            work.on_late = lambda allowed: self.give_up(work, allowed)
            self.check_present()
            complete = self.failure is None and len(self.calls) == len(self.state.ranks)
        if complete:
            self.carry_out()

    def carry_out(self):
        """All are here."""
        self.complete_since = time.perf_counter()
        calls = [self.calls[i] for i in range(len(self.calls))]
        wrong = disagreement([call.finger for call in calls], self.state.ranks)
        if wrong is not None:
            self.fail(lambda work: DistBackendError(f"{work.what}: {wrong}"))
            return
        try:
            PERFORM[calls[0].name](calls)
            for call in calls:
                call.deliver()
            occupy_streams(calls, self.state)
        except Exception as error:
            cause = error
            self.fail(lambda work: DistBackendError(f"{work.what} failed: {cause}"))
            return
        self.finish_all(calls[0])

    def finish_all(self, call):
        """Now, or with a simulated network when the data would have arrived."""
        network = self.state.world.network
        works = list(self.works.values())
        if network is None:
            for work in works:
                work.moving = self.complete_since
                work.finish()
        else:
            network.deliver_later(self.state, call, works)

    def check_present(self):
        """Fail if someone is missing who has left."""
        left = self.state.world.left
        missing = [r for i, r in enumerate(self.state.ranks) if i not in self.calls and r in left]
        if missing and self.failure is None and self.calls:
            self.fail(lambda work: _absent(work.what, missing, left[missing[0]]))

    def give_up(self, late, allowed):
        """A rank has waited as long as it may: nobody shall wait any longer."""
        with self.state.world.lock:
            here = [self.state.ranks[i] for i in self.calls]
            missing = [r for r in self.state.ranks if r not in here]
            if self.failure is None:
                self.fail(
                    lambda work: DistBackendError(
                        f"{work.what} timed out after {allowed * 1000:.0f} ms: "
                        + (
                            f"rank{'s' * (len(missing) > 1)} {_listed(missing)} did not come"
                            if missing
                            else "it was not completed in time"
                        )
                    )
                )
            return self.failure(late)

    def fail(self, failure):
        """End it with an error, for those who are here and those who come later."""
        with self.state.world.lock:
            self.failure = failure
            for work in self.works.values():
                work.finish(failure(work))


def _absent(what, ranks, why):
    return DistBackendError(f"{what}: rank{'s' * (len(ranks) > 1)} {_listed(ranks)} will not come, {why}")


def _listed(ranks):
    return ", ".join(map(str, ranks))


class ProcessGroupThreads(ProcessGroup):
    """A group of ranks that are threads."""

    backend_name = "threads"

    def __init__(self, world, rank, ranks, name, timeout, store=None, desc="undefined"):
        super().__init__(rank, ranks, name, timeout, store, desc)
        self.world = world
        self.state = world.state(name, ranks)

    def subgroup(self, ranks, name, timeout, desc):
        """The group of some of the ranks, this one among them."""
        return ProcessGroupThreads(
            self.world, ranks.index(self.ranks[self._rank]), ranks, name, timeout, self.store, desc
        )

    def start(self, collective, work):
        with self.world.lock:
            pending = self.state.pending_collective(collective.finger.number)
        pending.join(self._rank, collective, work)

    def start_send(self, array, peer, tag, work):
        sent, network = array.copy(), self.world.network  # the sender may change its tensor

        def arrive():
            self._deliver(sent, peer, tag)
            work.finish()

        if network is None:
            arrive()
        else:
            network.send(self.state, self._rank, array.nbytes, arrive)

    def _deliver(self, sent, peer, tag):
        """To the receiver that waits for it, else into the queue."""
        with self.world.lock:
            receiver = self._receiver_of(peer, tag)
            if receiver is None:
                self.state.messages.setdefault((self._rank, peer, tag), deque()).append(sent)
        if receiver is not None:
            _hand_over(sent, self._rank, *receiver[2:])

    def _receiver_of(self, peer, tag):
        """Take the receiver that waits for this message off the list."""
        receivers = self.state.waiting.get(peer, [])
        for receiver in receivers:
            if receiver[0] in (None, self._rank) and receiver[1] == tag:
                self.state.waiting[peer] = [r for r in receivers if r is not receiver]
                return receiver
        return None

    def start_recv(self, array, peer, tag, work):
        with self.world.lock:
            senders = range(self.size()) if peer is None else [peer]
            sender = next((s for s in senders if self.state.messages.get((s, self._rank, tag))), None)
            if sender is None:
                self._wait_for_message(array, peer, tag, work)
                return
            sent = self.state.messages[sender, self._rank, tag].popleft()
        _hand_over(sent, sender, array, work)

    def _wait_for_message(self, array, peer, tag, work):
        gone = None if peer is None else self.world.left.get(self.ranks[peer])
        if gone is not None:
            work.finish(_absent(work.what, [self.ranks[peer]], gone))
            return
        receiver = (peer, tag, array, work)
        self.state.waiting.setdefault(self._rank, []).append(receiver)
        work.on_late = lambda allowed: self._stop_waiting(receiver, allowed)

    def _stop_waiting(self, receiver, allowed):
        with self.world.lock:
            waiting = self.state.waiting[self._rank]
            self.state.waiting[self._rank] = [r for r in waiting if r is not receiver]
        return DistBackendError(f"{receiver[3].what} timed out after {allowed * 1000:.0f} ms")


def _hand_over(sent, sender, array, work):
    """Fill a receiver's array and complete its Work."""
    work.source = sender
    if (sent.shape, sent.dtype) != (array.shape, array.dtype):
        work.finish(
            DistBackendError(
                f"{work.what}: got a tensor of shape {list(sent.shape)} and type "
                f"{sent.dtype}, expected {list(array.shape)} and {array.dtype}"
            )
        )
        return
    array[...] = sent
    for target, part in work.copies:
        target[...] = part
    work.finish()


# ------------------------------------------------------------------------- the collectives, with the arrays of all ranks at hand


def all_reduce(calls):
    total = _reduced(calls)
    for call in calls:
        call.target[...] = total


def reduce(calls):
    calls[calls[0].root].target[...] = _reduced(calls)


def broadcast(calls):
    root = calls[calls[0].root]
    for call in calls:
        if call is not root:
            call.target[...] = root.source


def all_gather(calls):
    for call in calls:
        _stack(call.target, calls)


def gather(calls):
    _stack(calls[calls[0].root].target, calls)


def scatter(calls):
    parts = calls[calls[0].root].source
    for call, part in zip(calls, parts):
        call.target[...] = part


def reduce_scatter(calls):
    for call, part in zip(calls, _reduced(calls)):
        call.target[...] = part


def all_to_all(calls):
    sent = [offsets(call.source_counts) for call in calls]
    for j, receiver in enumerate(calls):
        position = 0
        for i, sender in enumerate(calls):
            part = sender.source[sent[i][j] : sent[i][j + 1]]
            receiver.target[position : position + part.size] = part
            position += part.size


def barrier(calls):
    pass


def _reduced(calls):
    """From rank 0 to the last: the same sum on every rank and in every run."""
    total = calls[0].source.copy()
    for call in calls[1:]:
        combine(call.op, total, call.source)
    finish(calls[0].op, total, len(calls))
    return total


def _stack(target, calls):
    for row, call in zip(target, calls):
        row[...] = call.source


PERFORM = {
    f.__name__: f
    for f in (all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter, all_to_all, barrier)
}
