"""News of dead workers, and Ctrl-C at bad moments.

In PyTorch: `torch/utils/data/_utils/signal_handling.py` and `torch/csrc/DataLoader.cpp`. See the chapter
"Dataset, Sampler, DataLoader".

Note [ Dead workers ]
When a worker dies, the main process learns it in two ways. Whoever waits for its data finds its socket closed
(worker_pool.py). And the system sends SIGCHLD, whose handler raises wherever the main thread happens to be: a
program that trains for a minute on one batch hears of it at once. Both say RuntimeError; who waits gets the
signal's text as cause, whichever of the two came first.

Raising anywhere is dangerous where things must be done wholly or not at all: start a process and remember it,
take a message and its descriptors out of a socket. There both SIGCHLD and Ctrl-C wait for the end of the
block (`uninterrupted`). Such blocks are short, or bounded by the time that a worker is given to end.
"""

import os
import signal
import threading

_worker_pids = {}  # key of an iterator -> the pids of its workers that have not been reported
_SIGCHLD_handler_set = False
_interrupt_handler = None  # what Ctrl-C does outside of the blocks that are being executed


def _set_worker_pids(key, pids):
    _worker_pids[key] = set(pids)


def _remove_worker_pids(key):
    _worker_pids.pop(key, None)


def _error_if_any_worker_fails():
    """Raise RuntimeError for a worker that has ended with an error: once for each iterator."""
    for pids in _worker_pids.values():
        for pid in pids:
            message = _failure(pid)
            if message:
                pids.clear()  # the end of one is the end of the others
                error = RuntimeError(message)
                error.is_news = True  # for `Crew.get`, which tells it in other words
                raise error


def _failure(pid):
    try:  # WNOWAIT: leave the news there for `Process`
        result = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None
    if result is None:
        return None
    return failure_text(pid, result.si_status if result.si_code == os.CLD_EXITED else -result.si_status)


def failure_text(pid, exitcode):
    """What is wrong with a worker that ended with this code, as `Process.exitcode` has it; None if nothing
    is."""
    if not exitcode:
        return None
    if exitcode > 0:
        return (
            f"DataLoader worker (pid {pid}) exited unexpectedly with exit code {exitcode}. Details are "
            "lost due to multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )
    text = f"DataLoader worker (pid {pid}) is killed by signal: {signal.strsignal(-exitcode)}. "
    if -exitcode == signal.SIGBUS:
        text += (
            "It is possible that dataloader's workers are out of shared memory. "
            "Please try to raise your shared memory limit."
        )
    return text


def _set_SIGCHLD_handler():
    """Look after the workers whenever a child process ends. Only the main thread may set handlers."""
    global _SIGCHLD_handler_set
    if _SIGCHLD_handler_set or not _in_main_thread() or not hasattr(os, "waitid"):
        return
    previous = signal.getsignal(signal.SIGCHLD)

    def handler(signum, frame):
        _error_if_any_worker_fails()
        if callable(previous):
            previous(signum, frame)

    signal.signal(signal.SIGCHLD, handler)
    _SIGCHLD_handler_set = True


def _set_worker_signal_handlers():
    """What a worker does not want of the handlers that it was forked with."""
    # in PyTorch: handlers in C that print a line about SIGBUS, SIGSEGV and SIGFPE before they kill
    _worker_pids.clear()
    if not _in_main_thread():
        return
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if _interrupt_handler is not None:
        signal.signal(signal.SIGINT, _interrupt_handler)


def _in_main_thread():
    return threading.current_thread() is threading.main_thread()


class uninterrupted:
    """`with uninterrupted():` Ctrl-C and news of dead workers wait until the block is done."""

    def __enter__(self):
        self.waiting, self.handlers = set(), {}
        if _in_main_thread():  # nothing interrupts other threads
            try:
                self._replace_handlers()
            except BaseException:  # one of the two came before its handler was replaced
                self._restore_handlers()
                raise

    def _replace_handlers(self):
        global _interrupt_handler
        for signum in (signal.SIGCHLD, signal.SIGINT):
            handler = signal.getsignal(signum)
            if callable(handler):
                self.handlers[signum] = handler
                signal.signal(signum, self._wait)
        _interrupt_handler = _interrupt_handler or self.handlers.get(signal.SIGINT)

    def _wait(self, signum, frame):
        self.waiting.add(signum)  # not the frame: it would keep what the block works on

    def _restore_handlers(self):
        global _interrupt_handler
        if self.handlers.get(signal.SIGINT) is _interrupt_handler:
            _interrupt_handler = None
        try:
            self._restore(signal.SIGCHLD)  # from here on its handler may raise
        finally:
            self._restore(signal.SIGINT)

    def _restore(self, signum):
        if signum in self.handlers:
            signal.signal(signum, self.handlers[signum])

    def __exit__(self, *error):
        self._restore_handlers()
        for signum in sorted(self.waiting):  # Ctrl-C first: what is in a socket will be found there
            self.handlers[signum](signum, None)
