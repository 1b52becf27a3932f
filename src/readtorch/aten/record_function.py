"""Callbacks around every operator call of a thread: profilers, widgets and the memory profile are built on them.

Besides operators there are records of what the engine runs (a node of the graph) and of what a program names itself.

In PyTorch: `aten/src/ATen/record_function.h`. Explained in the chapter "The profiler".
"""

from readtorch.c10.local_dispatch_key_set import threads_with_modes, tls, update_mask

# What a record is of. In PyTorch: `RecordScope`, which has names for other builds' events, too.
FUNCTION, BACKWARD_FUNCTION, USER_SCOPE = 0, 1, 7


class RecordFunction:
    """One call: its operator, its inputs, and when it is over its outputs.

    operator: an Operator; of what is none, its name. sequence_nr: of the node that an operator's call makes if it is recorded for
    backward, or of the node that runs; -1 if there is none.
    """

    __slots__ = ("operator", "inputs", "outputs", "sequence_nr", "scope")

    def __init__(self, operator, inputs, sequence_nr=-1, scope=FUNCTION):
        self.operator = operator
        self.inputs = inputs
        self.sequence_nr = sequence_nr
        self.scope = scope

    @property
    def failed(self):
        """Whether it has no outputs: it is not over, or has raised an error."""
        return not hasattr(self, "outputs")

    @property
    def is_operator(self):
        return type(self.operator) is not str

    def name(self):
        """The operator's name: "aten::mul"."""
        return name_of(self.operator)


def name_of(operator):
    return operator if type(operator) is str else operator.name.partition(".")[0]


def overload_name_of(operator):
    return "" if type(operator) is str else operator.schema.overload


def _nothing(record, context=None):
    pass


class RecordFunctionCallback:
    """start(record) is called before the call, and what it returns is given to end(record, context) after it."""

    python_tracer = None  # what is told of optimizers' steps

    def __init__(self, start=None, end=None):
        self.start = start or _nothing
        self.end = end or _nothing

    def around(self, operator, sequence_nr, scope, function, arguments):
        """`function(*arguments)` between `start` and `end`. A callback that needs no record may write its own."""
        record = RecordFunction(operator, arguments, sequence_nr, scope)
        context = self.start(record)
        try:
            outputs = record.outputs = function(*arguments)
            return outputs
        finally:
            self.end(record, context)


def add_thread_local_callback(callback):
    """From now on `callback` sees the calls of this thread. Returns a handle for `remove_callback`."""
    set_observers((*tls.observers, callback))
    return callback


def remove_callback(handle):
    set_observers(tuple([callback for callback in tls.observers if callback is not handle]))


def set_observers(observers):
    """Show the calls of this thread to these callbacks, the first one's `start` first. A call passes through `tls.around`, if that is
    not None: `tls.around(operator, sequence_nr, scope, function, arguments)` returns `function(*arguments)`. See RecordFunction."""
    tls.observers = observers
    tls.around = None
    for callback in reversed(observers):
        tls.around = outside(callback, tls.around)
    update_mask()


def outside(callback, inner):
    """The `around` of a callback whose calls pass through `inner`, too."""
    if inner is None:
        return callback.around

    def around(operator, sequence_nr, scope, function, arguments):
        inside = (operator, sequence_nr, scope, function)
        return callback.around(operator, sequence_nr, scope, lambda *arguments: inner(*inside, arguments), arguments)

    return around


def is_observed():
    """Whether this thread has callbacks. Note [ The mask of a call ] says why one looks at `threads_with_modes` first."""
    return bool(threads_with_modes) and tls.around is not None


def before(record):
    """Tell this thread's callbacks that something begins which is no call. Returns what `end` needs."""
    return [(each, each.start(record)) for each in tls.observers]


def end(record, started):
    """Tell the callbacks that it is over."""
    for each, context in started:
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
        self.depth += record.is_operator

    def _end(self, record, context):
        self.depth -= record.is_operator
        if record.is_operator and not record.failed and (self.nested or not self.depth):
            self.on_call(record.operator.call, record.inputs, record.outputs)
