"""The backend `mpi`: ranks are processes that `mpirun` started, on one machine or many, and an MPI moves the
data.

In PyTorch: `torch/csrc/distributed/c10d/ProcessGroupMPI.cpp`. Here through mpi4py, which is imported when the
first group is made. Tensors' memory is handed over as it is, without copies.

Note [ When a rank of an MPI job dies ]
MPI has no time limits, and `MPI_Finalize` waits for all. So a collective's data moves only when all ranks
have arrived (Note [ Asking rank 0 ]), and a caller waits for the group's thread, not for MPI: when time is
over it raises. A process that ends with an error tells the others, gives them a moment to report their own,
and then aborts the job instead of finalizing. A process that is killed makes mpirun kill the others.
"""

import atexit
import importlib.util
import shutil
import sys
import threading
import time

import numpy as np

from readtorch.c10.extras import extra

from .backend import QueuedProcessGroup
from .exception import DistBackendError
from .process_group_wrapper import GRACE, Mailbox, Pause
from .types import RedOpType, finish


def is_available():
    """Whether there are mpi4py and an MPI. Importing mpi4py would start MPI, so this looks for its launcher
    instead.
    """
    launcher = shutil.which("mpirun") or shutil.which("mpiexec")
    return launcher is not None and importlib.util.find_spec("mpi4py") is not None


def _mpi():
    with extra("mpi", 'The backend "mpi"'):
        from mpi4py import MPI
    return MPI


def world_group(timeout, store):
    """The group of all processes that mpirun started."""
    MPI = _mpi()
    if MPI.Query_thread() != MPI.THREAD_MULTIPLE:
        raise RuntimeError(
            "Used MPI implementation doesn't have the minimum level of threading support: "
            "MPI_THREAD_MULTIPLE. This is required by the group's thread."
        )
    comm = _duplicate(MPI.COMM_WORLD, timeout)
    control = _duplicate(MPI.COMM_WORLD, timeout)
    group = ProcessGroupMPI(comm, control, range(comm.Get_size()), "0", timeout, store, "default_pg")
    atexit.register(_end, group)
    return group


def _duplicate(comm, timeout):
    """A communicator of our own, so that our messages do not meet the program's. All ranks must come within
    `timeout`.
    """
    duplicate, request = comm.Idup()
    _wait(request, time.perf_counter() + timeout, "init_process_group")
    return duplicate


def _wait(request, deadline, what):
    pause = Pause()
    while not request.Test():
        if time.perf_counter() > deadline:
            raise DistBackendError(f"{what} timed out: not all ranks came")
        pause()


def _end(group):
    """At exit: end the job if this rank failed, else let MPI finalize; it waits there for the others to end too."""
    if _mpi().Is_finalized() or group.closed:
        return
    if group.failure is None:
        group.notify_others("its program has ended")
        return
    sys.stdout.flush()
    sys.stderr.flush()
    time.sleep(2 * GRACE)
    _mpi().COMM_WORLD.Abort(1)


class MPIMailbox(Mailbox):
    """Small messages over a communicator that carries nothing else."""

    def __init__(self, control):
        self.control = control
        self.sending = []  # (request, data): MPI reads the data until the request is complete

    def post(self, rank, data):
        self.sending = [pair for pair in self.sending if not pair[0].Test()]
        self.sending.append((self.control.Isend([data, _mpi().BYTE], rank), data))

    def poll(self, rank):
        status = _mpi().Status()
        message = self.control.Improbe(rank, status=status)
        if message is None:
            return None
        data = bytearray(status.Get_count(_mpi().BYTE))
        message.Recv([data, _mpi().BYTE])
        return bytes(data)


class ProcessGroupMPI(QueuedProcessGroup):
    """A group of MPI processes; comm carries tensors, control the round of checks."""

    backend_name = "mpi"

    def __init__(self, comm, control, ranks, name, timeout, store=None, desc="undefined"):
        super().__init__(comm.Get_rank(), ranks, name, timeout, store, desc)
        self.comm = comm
        self.control = control
        self.mailbox = MPIMailbox(control)
        self.requests = Requests()
        self.closed = False

    def subgroup(self, ranks, name, timeout, desc):
        members = self.comm.Get_group().Incl([self.ranks.index(r) for r in ranks])
        comm, control = (self.comm.Create_group(members, tag) for tag in (2 * int(name), 2 * int(name) + 1))
        return ProcessGroupMPI(comm, control, ranks, name, timeout, self.store, desc)

    def perform(self, collective, deadline):
        PERFORM[collective.name](self.comm, collective)

    def start_send(self, array, peer, tag, work):
        self.requests.add(self.comm.Isend(_buffer(array), peer, tag), array, work)

    def start_recv(self, array, peer, tag, work):
        source = _mpi().ANY_SOURCE if peer is None else peer
        self.requests.add(self.comm.Irecv(_buffer(array), source, tag), array, work, receives=True)

    def shutdown(self):
        super().shutdown()
        if self.failure is None:
            self.closed = True
            self.comm.Free()
            self.control.Free()


class Requests:
    """Sends and receives under way, and a thread that looks after them."""

    def __init__(self):
        self.open = []  # (request, array, work, whether it receives)
        self.changed = threading.Condition()
        self.thread = None

    def add(self, request, array, work, receives=False):
        with self.changed:
            self.open.append((request, array, work, receives))
            self.changed.notify()
            if self.thread is None:
                self.thread = threading.Thread(target=self.look_after, name="sends and receives", daemon=True)
                self.thread.start()

    def look_after(self):
        pause = Pause()
        while True:
            with self.changed:
                if not self.open:
                    self.changed.wait()
                    pause = Pause()
                self.open = [entry for entry in self.open if not self.is_over(*entry)]
            pause()

    def is_over(self, request, array, work, receives):
        if work.is_completed():  # its time was over
            request.Cancel()
            return True
        status = _mpi().Status()
        try:
            if not request.Test(status):
                return False
        except Exception as error:
            work.finish(DistBackendError(f"{work.what} failed: {error}"))
            return True
        if receives:
            work.source = status.Get_source()
            came = status.Get_count(_mpi().BYTE)
            if came != array.nbytes:
                work.finish(DistBackendError(f"{work.what}: got {came} bytes, expected {array.nbytes}"))
            for target, part in work.copies:
                target[...] = part
        work.finish()
        return True


# ------------------------------------------------------------------------- the collectives, by MPI


def all_reduce(comm, call):
    total = _reducible(call.target)
    comm.Allreduce(_mpi().IN_PLACE, _typed(total), _operation(call.op, total))
    _store_reduced(call, total, comm)


def reduce(comm, call):
    total = _reducible(call.source)
    if call.target is None:
        comm.Reduce(_typed(total), None, _operation(call.op, total), call.root)
        return
    comm.Reduce(_mpi().IN_PLACE, _typed(total), _operation(call.op, total), call.root)
    _store_reduced(call, total, comm)


def broadcast(comm, call):
    comm.Bcast(_buffer(call.target), call.root)


def all_gather(comm, call):
    comm.Allgather(_buffer(call.source), _buffer(call.target))


def gather(comm, call):
    comm.Gather(_buffer(call.source), None if call.target is None else _buffer(call.target), call.root)


def scatter(comm, call):
    comm.Scatter(None if call.source is None else _buffer(call.source), _buffer(call.target), call.root)


def reduce_scatter(comm, call):
    rows = _reducible(call.source)
    total = np.empty(call.target.shape, rows.dtype)
    comm.Reduce_scatter_block(_typed(rows), _typed(total), _operation(call.op, total))
    _store_reduced(call, total, comm)


def all_to_all(comm, call):
    item = call.source.itemsize
    counts = [[n * item for n in counts] for counts in (call.source_counts, call.target_counts)]
    comm.Alltoallv([_bytes_of(call.source), counts[0], _mpi().BYTE], [_bytes_of(call.target), counts[1], _mpi().BYTE])


def barrier(comm, call):
    """Nothing is left to do: before a collective begins, all ranks have come."""


PERFORM = {
    f.__name__: f
    for f in (all_reduce, reduce, broadcast, all_gather, gather, scatter, reduce_scatter, all_to_all, barrier)
}


# ------------------------------------------------------------------------- arrays for MPI


def _bytes_of(array):
    return array.reshape(-1).view(np.uint8)


def _buffer(array):
    """An array as MPI moves it: no element type, just bytes."""
    return [_bytes_of(array), _mpi().BYTE]


def _typed(array):
    """An array as MPI reduces it."""
    return array.view(np.uint8) if array.dtype == bool else array


def _reducible(array):
    """The array itself, or in a type that MPI can reduce: 16-bit numbers are added up as float32, and rounded
    once.
    """
    narrow = array.itemsize == 2 and array.dtype.kind not in "iu"
    return array.astype(np.float32) if narrow else array


def _store_reduced(call, total, comm):
    finish(call.op, total, comm.Get_size())
    if total is not call.target:
        call.target[...] = total


def _operation(op, array):
    """MPI's name of a reduction. A sum of bools is "any", a product "all"."""
    MPI = _mpi()
    names = {
        RedOpType.SUM: MPI.SUM,
        RedOpType.AVG: MPI.SUM,
        RedOpType.PRODUCT: MPI.PROD,
        RedOpType.MIN: MPI.MIN,
        RedOpType.MAX: MPI.MAX,
        RedOpType.BAND: MPI.BAND,
        RedOpType.BOR: MPI.BOR,
        RedOpType.BXOR: MPI.BXOR,
    }
    if array.dtype == bool:
        names |= {RedOpType.SUM: MPI.MAX, RedOpType.PRODUCT: MPI.MIN}
    return names[op]
