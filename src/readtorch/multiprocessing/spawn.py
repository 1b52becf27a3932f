"""Start some processes that run one function, wait for all, and report the first that failed.

In PyTorch: `torch/multiprocessing/spawn.py`. Explained in the chapter "Multiprocessing and TensorBoard".
"""

import logging
import multiprocessing
import multiprocessing.connection
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

from ._process import _prctl_pr_set_pdeathsig

__all__ = [
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "spawn",
    "SpawnContext",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"
_PATIENCE = 30  # seconds that a process has after SIGTERM

log = logging.getLogger(__name__)


class ProcessException(Exception):
    __slots__ = ["error_index", "error_pid"]

    def __init__(self, msg, error_index, error_pid):
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.error_pid = error_pid

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid)


class ProcessRaisedException(ProcessException):
    """The function raised an exception in that process; its traceback is in the message."""


class ProcessExitedException(ProcessException):
    """The process ended by a signal or with an exit code."""

    __slots__ = ["exit_code"]

    def __init__(self, msg, error_index, error_pid, exit_code, signal_name=None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self):
        return type(self), (self.msg, self.error_index, self.error_pid, self.exit_code, self.signal_name)


class ProcessContext:
    """Processes that were started together."""

    def __init__(self, processes, error_files):
        self.error_files = error_files
        self.processes = processes
        self.sentinels = {process.sentinel: index for index, process in enumerate(processes)}

    def pids(self):
        return [int(process.pid) for process in self.processes]

    def join(self, timeout=None, grace_period=None):
        """Wait until one process fails, all have ended, or `timeout` seconds are over. True if all have
        ended.

        If one fails, the others are ended (grace_period: after so many seconds; and so many more before
        SIGKILL). Raises ProcessRaisedException or ProcessExitedException for it.
        """
        if not self.sentinels:
            return True
        failed = self._first_failure(multiprocessing.connection.wait(self.sentinels.keys(), timeout=timeout))
        if failed is None:
            return not self.sentinels
        if grace_period is not None:
            self._join_procs_with_timeout(grace_period)
        self._end_all(_PATIENCE if grace_period is None else grace_period)
        self._raise_for(failed)

    def _first_failure(self, sentinels):
        """Take note of processes that have ended; the index of one that failed, or None."""
        for sentinel in sentinels:
            index = self.sentinels.pop(sentinel)
            self.processes[index].join()
            if self.processes[index].exitcode != 0:
                return index
        return None

    def _join_procs_with_timeout(self, timeout):
        """Wait for all processes, `timeout` seconds at most for all together."""
        end = time.monotonic() + timeout
        for process in self.processes:
            process.join(max(0, end - time.monotonic()))

    def _end_all(self, patience):
        for process in self.processes:
            if process.is_alive():
                log.warning("Terminating process %s via signal SIGTERM", process.pid)
                process.terminate()
        self._join_procs_with_timeout(patience)  # Python handles a signal only once C code returns
        for process in self.processes:
            if process.is_alive():
                log.warning("Unable to shutdown process %s via SIGTERM , forcefully exiting via SIGKILL", process.pid)
                process.kill()
            process.join()

    def _raise_for(self, index):
        process, file = self.processes[index], self.error_files[index]
        if os.access(file, os.R_OK):
            # in PyTorch: a pickle, under a name in the common folder that anybody may use before the process does
            with open(file, encoding="utf-8", errors="replace") as fh:
                trace = fh.read()
            os.unlink(file)  # in PyTorch: it stays
            raise ProcessRaisedException(
                f"\n\n-- Process {index:d} terminated with the following error:\n{trace}", index, process.pid
            )
        code = process.exitcode
        if code >= 0:
            raise ProcessExitedException(
                f"process {index:d} terminated with exit code {code:d}",
                error_index=index,
                error_pid=process.pid,
                exit_code=code,
            )
        name = _signal_name(-code)
        raise ProcessExitedException(
            f"process {index:d} terminated with signal {name}",
            error_index=index,
            error_pid=process.pid,
            exit_code=code,
            signal_name=name,
        )


def _signal_name(number):
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"<Unknown signal {number}>"


class SpawnContext(ProcessContext):
    def __init__(self, processes, error_files):
        warnings.warn("SpawnContext is renamed to ProcessContext since 1.4 release.", stacklevel=2)
        super().__init__(processes, error_files)


def start_processes(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """Run `fn(i, *args)` in `nprocs` processes, i = 0, 1, …; a ProcessContext, or None after joining them.

    start_method: "spawn", "fork" or "forkserver". Errors: see `ProcessContext.join`. With "forkserver" and
    TORCH_MP_PARALLEL_START=1 in the environment, threads start them at the same time.
    """
    mp = multiprocessing.get_context(start_method)
    folder = tempfile.mkdtemp(prefix="readtorch-errors-")

    def start(i):
        # a queue could hang if the process dies: a file cannot
        error_file = os.path.join(folder, f"{i}.txt")
        process = mp.Process(target=_wrap, args=(fn, i, args, error_file), daemon=daemon)
        process.start()
        return process, error_file

    if start_method == "forkserver" and os.environ.get(ENV_VAR_PARALLEL_START, "0") == "1":
        with ThreadPoolExecutor(max_workers=nprocs) as executor:
            started = list(executor.map(start, range(nprocs)))
    else:
        started = [start(i) for i in range(nprocs)]
    context = ProcessContext(*([*column] for column in zip(*started))) if started else ProcessContext([], [])
    weakref.finalize(context, shutil.rmtree, folder, ignore_errors=True)
    if not join:
        return context
    while not context.join():
        pass


def _wrap(fn, i, args, error_file):
    """What the process runs."""
    _prctl_pr_set_pdeathsig(signal.SIGINT)  # a process that is no daemon ends with its parent all the same
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent ends us
    except Exception:
        with open(error_file, "w", encoding="utf-8", errors="replace") as fh:
            fh.write(traceback.format_exc())
        sys.exit(1)


def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
    """`start_processes` with the start method "spawn": `fn` must be importable. Other methods:
    FutureWarning."""
    if start_method != "spawn":
        warnings.warn(
            f"This method only supports start_method=spawn (got: {start_method}).\n"
            "To use a different start_method use:\n\t\t torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
