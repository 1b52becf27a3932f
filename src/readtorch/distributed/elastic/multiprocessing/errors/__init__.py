"""Why a rank failed, from its process to the one that reads the launcher's output.

In PyTorch: `torch/distributed/elastic/multiprocessing/errors/__init__.py`. A function with `@record` writes its exception into a file
that the launcher names in TORCHELASTIC_ERROR_FILE, as JSON; the launcher reads it and raises ChildFailedError, which says what
failed first. Without the decorator it knows the exit code.
"""

import functools
import json
import os
import signal
import socket
import time
from dataclasses import dataclass, field
from datetime import datetime

from .error_handler import ErrorHandler

__all__ = ["ChildFailedError", "ErrorHandler", "ProcessFailure", "get_error_handler", "record"]

NOT_AVAILABLE = "<N/A>"
LONGEST = 1 << 20  # bytes of an error file that are read: a rank wrote it


@dataclass
class ProcessFailure:
    """How a process ended, and what it left behind: message and time come from its error file, if there is one."""

    local_rank: int
    pid: int
    exitcode: int  # -15: signal 15
    error_file: str
    error_file_data: dict = field(init=False)
    message: object = field(init=False)
    timestamp: int = field(init=False)

    def __post_init__(self):
        if os.path.isfile(self.error_file):
            self._read()
        else:
            self.error_file, self.error_file_data = NOT_AVAILABLE, {"message": "<NONE>"}
            self.message, self.timestamp = "", int(time.time())
        if not self.message:
            self.message = self._guess()

    def _read(self):
        with open(self.error_file) as file:
            self.error_file_data = json.loads(file.read(LONGEST))
        self.message = self.error_file_data["message"]
        if isinstance(self.message, str):
            self.timestamp = int(self.error_file_data.get("timestamp", 0))
        else:
            self.timestamp = int(self.message["extraInfo"]["timestamp"])

    def _guess(self):
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        traits = {"category": "system_terminated_error", "retryability": "False"}
        self.error_file_data["errorTraits"] = traits
        return "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

    def signal_name(self):
        """The name of the signal that ended it."""
        try:
            return signal.Signals(-self.exitcode).name
        except ValueError:
            return NOT_AVAILABLE

    def timestamp_isoformat(self):
        """When it failed."""
        return datetime.fromtimestamp(self.timestamp).isoformat(sep="_")


class ChildFailedError(Exception):
    """Ranks failed. failures: {global rank: ProcessFailure}"""

    def __init__(self, name, failures):
        if not failures:
            raise AssertionError
        self.name = name
        self.failures = failures
        super().__init__(self.format_msg())

    def get_first_failure(self):
        """(global rank, ProcessFailure) of the one that failed first."""
        rank = min(self.failures, key=lambda rank: self.failures[rank].timestamp)
        return rank, self.failures[rank]

    def format_msg(self, boarder_delim="=", section_delim="-"):
        """All failures, the first one last."""
        first, title = self.get_first_failure()[0], f"{self.name} FAILED"
        texts = {rank: _described(i, rank, failure) for i, (rank, failure) in enumerate(self.failures.items())}
        width = min(60, max(len(line) for text in (title, *texts.values()) for line in text.split("\n")))
        border, section = boarder_delim * width, section_delim * width
        others = [text for rank, text in texts.items() if rank != first] or ["  <NO_OTHER_FAILURES>"]
        root = ["Root Cause (first observed failure):", texts[first]]
        return "\n".join(["", border, title, section, "Failures:", *others, section, *root, border])


def _described(number, rank, failure):
    message = failure.message
    if isinstance(message, dict):
        message = message.get("extraInfo", {}).get("py_callstack", message.get("message", NOT_AVAILABLE))
        message = message.replace("\n", "\n  ")
    name = failure.signal_name()
    rows = {
        "time      ": failure.timestamp_isoformat(),
        "host      ": socket.getfqdn(),
        "rank      ": f"{rank} (local_rank: {failure.local_rank})",
        "exitcode  ": f"{failure.exitcode} (pid: {failure.pid})"
        + " "
        + (f" ({name})" if name != NOT_AVAILABLE else ""),
        "error_file": failure.error_file,
        "traceback ": message,
    }
    return f"[{number}]:\n" + "\n".join(f"  {key}: {value}" for key, value in rows.items())


def get_error_handler():
    """What writes error files."""
    return ErrorHandler()


def record(fn, error_handler=None):
    """A decorator for the main function of a rank: what it raises goes into the rank's error file, too."""
    handler = error_handler or get_error_handler()

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        handler.initialize()
        try:
            return fn(*args, **kwargs)
        except SystemExit as end:
            if end.code == 0:
                return None
            raise
        except ChildFailedError as error:
            _, failure = error.get_first_failure()
            if failure.error_file != NOT_AVAILABLE:
                handler.dump_error_file(failure.error_file, failure.exitcode)
            raise
        except Exception as error:
            handler.record_exception(error)
            raise

    return wrapper
