"""The worker processes of one iterator, as the main process sees them.

PyTorch has no such file: all of this is in `_MultiProcessingDataLoaderIter` in `torch/utils/data/dataloader.py`, with a queue
of indices for each worker, one queue of results and an event for the end. See the chapter "Dataset, Sampler, DataLoader".

Note [ How the loader ends ]
The main process and a worker have one thing in common: a pair of connected sockets, of which each owns one
end. There is no lock, no event, no queue that several processes write to; so nobody can die with a lock in
hand, or leave half a message where others read. All endings are one event: an end of a pair is closed. And
the kernel does that too, for whoever dies, however that happens.

1. The loader ends: the iterator is exhausted or dropped half-way, the program ends with an error, by Ctrl-C
   or orderly. `shutdown` hangs up: it shuts both directions of each pair down, which wakes a worker even
   while it waits to receive or to send. The worker finishes the batch that it is at, sees before the next
   one that the loader has hung up (or cannot send), and ends in an orderly way. Whoever has not ended after
   five seconds is terminated, and killed if that does not help. Nothing in `shutdown` waits longer than
   that, and Ctrl-C waits for its end. It runs when the iterator is exhausted, when it is deleted, and at
   the latest when the process ends, before `multiprocessing` does its own cleaning up (an exit function
   with a priority).
2. The main process is killed. The kernel closes its ends: the workers see the same as in 1. A worker that
   is busy in the dataset's code is ended by its watching thread, five seconds later. For this, no worker
   may own a copy of the main process's ends. Forked processes inherit them, so every process forked from
   this one, worker or not, begins with closing them (`_close_inherited`).
3. A worker dies. The kernel closes its end; who waits for data reads what it had sent before, then the end
   of the stream, and raises. For this, the main process closes its copy of the worker's end as soon as the
   worker has started, before the next one is forked. Should some other thread have forked in between, the
   end stays open: then the worker's death is found by looking, every five seconds. If nobody waits, see
   Note [ Dead workers ].
4. Somebody hangs. A worker that hangs in the dataset's code ends like one that is slow: 1 and 2. The main
   process never waits for a worker but in `poll`, with a timeout, and in `shutdown`: what it sends does not
   wait (connection.py). The pin-memory thread waits in the same `poll`; hanging up wakes it.

What was underway in a socket is freed with the socket: descriptors, and with them shared memory. A process
forked by the user's program in the middle of a pass has a copy of the iterator but not of its workers:
there `shutdown` does nothing.
"""

import collections
import multiprocessing.connection
import multiprocessing.util
import os
import select
import warnings
import weakref
from pickle import PicklingError

from . import MP_STATUS_CHECK_INTERVAL, signal_handling
from .connection import Connection, InvalidMessage, Message, TooManyFiles
from .signal_handling import uninterrupted
from .worker import _worker_loop

_connections_of_this_process = weakref.WeakSet()


def _close_inherited():
    for connection in _connections_of_this_process:
        connection.close()


os.register_at_fork(after_in_child=_close_inherited)


class Ended(Exception):
    """`shutdown` was called while somebody waited for a message."""


class WorkerPool:
    """Starts workers, sends them tasks, collects what they send, ends them."""

    def __init__(self, context, arguments):
        self.owner = os.getpid()
        self.processes, self.connections = [], []
        self.present = []  # whether the worker is wanted: neither dismissed nor dead
        self._poll = select.poll()
        self._readable = collections.deque()  # numbers of workers whose message waits in their socket
        self._inbox = collections.deque()  # (worker, object): messages that are out of it
        self._ended = False
        self.reader = None  # the thread that waits in `get`, if it is not that of the iterator
        multiprocessing.util.Finalize(self, _shutdown, (weakref.ref(self),), exitpriority=10)
        for worker_id in range(arguments.num_workers):
            with uninterrupted():
                self._start(context, arguments, worker_id)
        signal_handling._set_worker_pids(id(self), [process.pid for process in self.processes])
        signal_handling._set_SIGCHLD_handler()

    def _start(self, context, arguments, worker_id):
        connection, workers_end = Connection.pair()
        _connections_of_this_process.add(connection)
        process = context.Process(target=_worker_loop, args=(arguments, worker_id, workers_end), daemon=True)
        try:
            process.start()
        except (TypeError, AttributeError, PicklingError):
            warnings.warn(
                "Got pickle error when attempting to start a worker Process. This might be because the "
                "worker Process arguments are not picklable. Python 3.14+ changed the multiprocessing start "
                "method in non-Mac POSIX platforms to 'forkserver', which requires the worker Process "
                "arguments to be picklable. You can also try "
                "multiprocessing.set_start_method('fork').",
                stacklevel=2,
            )
            raise
        finally:
            workers_end.close()
        self.processes.append(process)
        self.connections.append(connection)
        self.present.append(True)
        self._poll.register(connection, select.POLLIN)

    # ---------------------------------------------------------------------------------- sending, receiving

    def put(self, worker_id, obj):
        """Send an object to a worker, without waiting."""
        self.connections[worker_id].put(Message.pack(obj))

    def get(self, timeout):
        """(worker, object) of the next message, None after `timeout` seconds.

        Raises RuntimeError if workers have died or a message cannot be received, Ended if there will
        be no more.
        """
        try:
            return self._next_message(timeout)
        except RuntimeError as error:
            if not hasattr(error, "is_news"):
                raise
            self._raise_for([], error)

    def _next_message(self, timeout):
        while not self._inbox:
            if self._ended:
                raise Ended
            for connection in self.connections:
                connection.flush()
            if not self._readable and not self._wait(timeout):
                self._raise_for([])
                return None
            worker_id = self._readable.popleft()
            if self.present[worker_id]:
                self._receive(worker_id)
        return self._inbox.popleft()

    def _wait(self, timeout):
        ready = {fd for fd, _ in self._poll.poll(timeout * 1000)}
        self._readable.extend(i for i, connection in enumerate(self.connections) if connection.fileno() in ready)
        return ready

    def _receive(self, worker_id):
        """Put the next message of a worker into the inbox."""
        try:
            with uninterrupted():
                message = self.connections[worker_id].receive(wait=False)
                if message is None:
                    return  # not all of it is there
                self._inbox.append((worker_id, message.unpack()))
        except (EOFError, ConnectionError):
            if self._ended:
                raise Ended from None
            self._has_died(worker_id)
        except InvalidMessage as error:
            self.dismiss(worker_id)
            pid, (data,) = self.processes[worker_id].pid, error.args
            raise RuntimeError(
                f"DataLoader worker (pid {pid}) sent something that is no message. Its dataset, or a library, "
                "has written to a descriptor that is not its own, or disturbed a message otherwise. It begins "
                f"with {bytes(data[:40])!r}"
            ) from None
        except TooManyFiles:
            raise RuntimeError(
                "Too many open files. Communication with the workers is no longer possible. Please increase "
                "the limit using `ulimit -n` in the shell or change the sharing strategy by calling "
                "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your "
                "code"
            ) from None

    # ----------------------------------------------------------------------------------------- dead workers

    def _has_died(self, worker_id):
        """Its end of the socket is closed: soon the process will have ended."""
        process = self.processes[worker_id]
        with uninterrupted():
            process.join(MP_STATUS_CHECK_INTERVAL)
        text = signal_handling.failure_text(process.pid, process.exitcode)
        self._raise_for([worker_id], text and RuntimeError(text))

    def check_all_present(self):
        """Raise RuntimeError for workers that have died before."""
        self._raise_for([i for i, present in enumerate(self.present) if not present])

    def _raise_for(self, workers, cause=None):
        """Raise RuntimeError for these workers and all others that are dead, if there are any, else
        `cause`."""
        with uninterrupted():
            workers = [
                i
                for i, process in enumerate(self.processes)
                if i in workers or self.present[i] and not process.is_alive()
            ]
            for worker_id in filter(self.present.__getitem__, workers):
                self.dismiss(worker_id)
            if workers:
                signal_handling._remove_worker_pids(id(self))
        if workers:
            pids = ", ".join(str(self.processes[i].pid) for i in workers)
            raise RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly") from cause
        if cause:
            raise cause

    # --------------------------------------------------------------------------------------------- ending

    def dismiss(self, worker_id):
        """Let a worker end. It is joined in `shutdown`."""
        self.present[worker_id] = False
        self._poll.unregister(self.connections[worker_id])
        self.connections[worker_id].hang_up()

    def _hang_up(self):
        """Let all workers end, and the reader."""
        self._ended = True
        for connection in self.connections:
            connection.hang_up()
        if self.reader is not None:
            self.reader.join()

    def __del__(self):
        self.shutdown()

    def shutdown(self):
        """End all workers, at once or after some seconds: see Note [ How the loader ends ]."""
        if os.getpid() != self.owner or self.owner is None:
            return
        with uninterrupted():
            self.owner = None
            self._hang_up()
            signal_handling._remove_worker_pids(id(self))
            _join(self.processes, ["terminate", "kill"])
            for connection in self.connections:
                connection.close()


def _join(processes, means):
    """Wait for the processes together; for what is left, use the first of `means` and wait again."""
    running = {process.sentinel: process for process in processes}
    while running:
        ended = multiprocessing.connection.wait(list(running), MP_STATUS_CHECK_INTERVAL)
        if not ended:
            break
        for sentinel in ended:
            running.pop(sentinel).join(MP_STATUS_CHECK_INTERVAL)
    if running and means:
        for process in running.values():
            getattr(process, means[0])()
        _join(running.values(), means[1:])


def _shutdown(pool):
    """For an exit function, which must not keep the pool alive."""
    if pool() is not None:
        pool().shutdown()
