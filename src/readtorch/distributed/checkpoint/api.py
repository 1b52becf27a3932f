"""What a failed save or load raises. In PyTorch: `torch/distributed/checkpoint/api.py`."""

import traceback

__all__ = ["CheckpointException"]


def _wrap_exception(exc):
    """The exception with its traceback as text, which can travel to other ranks."""
    summary = traceback.extract_tb(exc.__traceback__)
    for frame in summary:
        if hasattr(frame, "_code"):  # from Python 3.13 on: code objects cannot be pickled
            frame._code = None
    return exc, summary


def _is_wrapped_exception(obj):
    if not isinstance(obj, tuple) or len(obj) != 2:
        return False
    return isinstance(obj[0], BaseException) and isinstance(obj[1], traceback.StackSummary)


class CheckpointException(BaseException):
    """A save or load failed on some rank; all ranks raise it. `failures`: rank -> (exception, traceback)."""

    def __init__(self, msg, failures):
        super().__init__(msg, failures)
        self._failures = failures

    @property
    def failures(self):
        return self._failures

    def __str__(self):
        text = f"CheckpointException ranks:{self._failures.keys()}\n"
        for rank, (error, trace) in self._failures.items():
            text += f"Traceback (most recent call last): (RANK {rank})\n"
            if trace is not None:
                text += "".join(traceback.format_list(trace))
            text += "".join(traceback.format_exception_only(type(error), value=error))
        return text
