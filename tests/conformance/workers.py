"""Cases that may end the process: they run in forked workers, and a worker's death is the case's result.

A meta tensor has no memory: its array lies at an address that is none, and a kernel that reads an element there ends the
process. `do(job, run)` hands a job to one worker and `each(jobs, run)` many to several. `run(job)` yields (label, case) pairs,
always the same; what a case returns is its result, and where it ends its worker that is an `Ended`: the job goes on with the case
behind it, in a worker that is forked anew.
"""

import collections
import dataclasses
import faulthandler
import multiprocessing
import multiprocessing.connection
import os
import re
import resource
import tempfile
import time

SECONDS = 120  # that one case may take: a kernel that is new is compiled in it

forking = multiprocessing.get_context("fork")


@dataclasses.dataclass
class Ended:
    """How a case ended its worker."""

    how: str


class Worker:
    """A forked process that runs the cases of one job after another."""

    def __init__(self, run):
        self.run = run
        self._fork()

    def _fork(self):
        self.connection, other = forking.Pipe()
        self.stack = tempfile.TemporaryFile("w+")
        self.process = forking.Process(target=_serve, args=(other, self.run, self.stack), daemon=True)
        self.process.start()
        other.close()

    def begin(self, job):
        self.job, self.results = job, []
        self._go_on()

    def _go_on(self):
        self.label, self.late, self.until = "before the first case", False, time.monotonic() + SECONDS
        self.connection.send((self.job, len(self.results)))

    def listen(self):
        """Takes one message, or sees that the worker has ended; True when the job is done."""
        try:
            kind, what = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self.results.append((self.label, Ended(self._how_it_ended())))
            self._fork()
            self._go_on()
            return False
        self.until = time.monotonic() + SECONDS
        if kind == "label":
            self.label = what
        elif kind == "result":
            self.results.append((self.label, what))
        return kind == "done"

    def end_if_late(self):
        if time.monotonic() > self.until:
            self.late = True
            self.process.kill()

    def _how_it_ended(self):
        """With the innermost of our functions, where the worker could still say them."""
        self.process.join()
        self.connection.close()
        if self.late:
            return f"took more than {SECONDS} s"
        self.stack.seek(0)
        frames = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', self.stack.read())
        ours = [f"{name} ({os.path.basename(path)}:{line})" for path, line, name in frames if "/readtorch/" in path]
        return f"ended by signal {-self.process.exitcode}: {' < '.join(ours[:3])}"

    def close(self):
        self.process.kill()
        self.process.join()
        self.connection.close()


def _serve(connection, run, stack):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable(stack, all_threads=False)
    while True:
        try:
            job, first = connection.recv()
        except EOFError:
            return
        for number, (label, case) in enumerate(run(job)):
            if number >= first:
                connection.send(("label", label))
                connection.send(("result", case()))
        connection.send(("done", None))


def do(worker, job):
    """The (label, result) pairs of a job."""
    worker.begin(job)
    while not worker.connection.poll(SECONDS) or not worker.listen():
        worker.end_if_late()
    return worker.results


def each(jobs, run, processes=2):
    """Yields (job, [(label, result), …]) as the jobs are done."""
    waiting = collections.deque(jobs)
    workers = [Worker(run) for _ in range(min(processes, len(waiting)))]
    busy = list(workers)
    try:
        for worker in busy:
            worker.begin(waiting.popleft())
        while busy:
            ready = multiprocessing.connection.wait([w.connection for w in busy], timeout=1)
            for worker in list(busy):
                worker.end_if_late()
                if worker.connection in ready and worker.listen():
                    yield worker.job, worker.results
                    if waiting:
                        worker.begin(waiting.popleft())
                    else:
                        busy.remove(worker)
    finally:
        for worker in workers:
            worker.close()
