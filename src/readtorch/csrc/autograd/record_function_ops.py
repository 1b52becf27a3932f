"""What begins and ends an event that a program names itself.

In PyTorch: `torch/csrc/autograd/record_function_ops.cpp`. Explained in the chapter "The profiler".
"""

from readtorch.aten.record_function import USER_SCOPE, RecordFunction, before, end, is_observed


def record_function_enter_new(name, args=None):
    """Begin an event; without observers nothing. Returns what ends it."""
    if not is_observed():
        return ()
    record = RecordFunction(name, () if args is None else (args,), scope=USER_SCOPE)
    return record, before(record)


def record_function_exit(handle):
    """End it; a second time does nothing to the profiler."""
    if handle:
        end(*handle)
