"""The kernels of the Tracer key: record a call, then make it.

In PyTorch: `torch/csrc/autograd/TraceTypeManual.cpp`, and `TraceType_0.cpp` … written by `tools/autograd/gen_trace_type.py`. Explained in the chapter "JIT:
tracing".
"""

from readtorch.aten import dispatcher
from readtorch.c10.dispatch_key import TRACER
from readtorch.c10.local_dispatch_key_set import tls

from .tracer import Paused

# Their parts are recorded instead (DONT_RECORD_TRACE in gen_trace_type.py).
NOT_RECORDED = {
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "lstm_cell",
    "gru_cell",
    "rnn_tanh_cell",
    "rnn_relu_cell",
    "_coalesced",
    "conj",  # in PyTorch: its binding calls `_conj`, past the dispatcher
}


def make_tracer_kernel(operator, keys):
    """The Tracer kernel of `operator` : record the call, then make it."""
    name = operator.schema.name
    if name in NOT_RECORDED:
        return operator.composite or operator.table[keys & ~TRACER]
    if not any(r.type.is_tensor for r in operator.schema.returns):
        return unrecorded(name, operator.composite or operator.table[keys & ~TRACER])
    if name in ("resize_", "resize_as_"):
        return forgetting(name, operator.composite or operator.table[keys & ~TRACER])

    def record_and_call(*arguments):
        state = tls.tracer
        node = state.record(operator, arguments)
        with Paused():
            result = operator.table[keys & ~TRACER](*arguments)
        state.set_outputs(node, result)
        return result

    return record_and_call


def unrecorded(name, kernel):
    """An operator that returns no tensor leaves no node in the graph; the trace is notified."""

    def notify_and_call(*arguments):
        state = tls.tracer
        state.not_recorded(name)
        with state.unheard():
            return kernel(*arguments)

    return notify_and_call


def forgetting(name, kernel):
    """A tensor that changes its size in place stands for no Value any more."""

    def forget_and_call(tensor, *arguments):
        tls.tracer.resized(name, tensor)
        with Paused():
            return kernel(tensor, *arguments)

    return forget_and_call


dispatcher.writers[TRACER] = make_tracer_kernel
dispatcher.set_fallback(TRACER, make_tracer_kernel, written=True)  # for operators of torch.library
