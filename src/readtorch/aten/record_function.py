"""Callbacks around every operator call of a thread: profilers, widgets and the memory profile are built on them.

In PyTorch: `aten/src/ATen/record_function.h`. Explained in the chapter "One operator call".
"""

from readtorch.c10.local_dispatch_key_set import tls, update_mask


class RecordFunction:
    """One call: its operator, its inputs, and when it is over its outputs."""

    __slots__ = ("operator", "inputs", "outputs", "failed")

    def __init__(self, operator, inputs):
        self.operator = operator
        self.inputs = inputs
        self.outputs = None
        self.failed = True

    def name(self):
        """The operator's name: "aten::mul"."""
        return self.operator.name.partition(".")[0]


class RecordFunctionCallback:
    """start(record) is called before the call, and what it returns is given to end(record, context) after it."""

    def __init__(self, start=None, end=None):
        self.start = start
        self.end = end


def add_thread_local_callback(callback):
    """From now on `callback` sees the calls of this thread. Returns a handle for `remove_callback`."""
    tls.observers = (*tls.observers, callback)
    update_mask()
    return callback


def remove_callback(handle):
    tls.observers = tuple([callback for callback in tls.observers if callback is not handle])
    update_mask()


def run_observed(operator, kernel, arguments):
    """`kernel(*arguments)` with this thread's callbacks around it."""
    record = RecordFunction(operator, arguments)
    started = [(each, each.start and each.start(record)) for each in tls.observers]
    try:
        record.outputs = kernel(*arguments)
        record.failed = False
        return record.outputs
    finally:
        for each, context in started:
            if each.end is not None:
                each.end(record, context)


class observe:
    """`with observe(on_call):` runs `on_call(function, arguments, result)` after every operator call inside.

    function: the operator's `call`. nested: also after calls that an operator's kernel makes; without it what a kernel calls
    belongs to its operator.
    """

    def __init__(self, on_call, nested=False):
        self.on_call = on_call
        self.nested = nested
        self.depth = 0

    def __enter__(self):
        self.handle = add_thread_local_callback(RecordFunctionCallback(self._start, self._end))
        return self

    def __exit__(self, *exception):
        remove_callback(self.handle)

    def _start(self, record):
        self.depth += 1

    def _end(self, record, context):
        self.depth -= 1
        if not record.failed and (self.nested or not self.depth):
            self.on_call(record.operator.call, record.inputs, record.outputs)
