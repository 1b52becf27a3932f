"""Recurrent cells: from the input and the hidden state of one step the next hidden state.

A step takes what the input contributes to the gates, x W_ihᵀ + b_ih: a layer computes that for all steps at
once. The hidden state of an LSTM is a pair (h, c), that of the others a single tensor.

In PyTorch: part of `aten/src/ATen/native/RNN.cpp`. Explained in the chapter "Layers, functional, init".
"""
from collections import namedtuple

from ...c10.dispatch_key import CPU
from ...c10.tensor_impl import wrap
from ..functions import at
from ..native_function import native_function
from .linear import linear
from .rnn_fused import _rnn_layer, serves
from .rnn_layer import LSTM_MODE, fits, mkldnn_rnn_layer
from .splitting import unsafe_chunk
from .tensor_iterator import F4

# The weights of one layer in one direction. Biases may be None; w_hr projects the h of an LSTM, or is None.
CellParams = namedtuple("CellParams", "w_ih w_hh b_ih b_hh w_hr")


# in PyTorch: these write in place where they can. Here an operator's result is a new array in any case.


def rnn_tanh_step(input_gates, hidden, params):
    return at.tanh(linear.call(hidden, params.w_hh, params.b_hh) + input_gates)


def rnn_relu_step(input_gates, hidden, params):
    return at.relu(linear.call(hidden, params.w_hh, params.b_hh) + input_gates)


def lstm_step(input_gates, hidden, params):
    """c' = f c + i g and h' = o tanh(c'): what is forgotten, what is let in, and what is shown are gates."""
    h, c = hidden
    gates = linear.call(h, params.w_hh, params.b_hh) + input_gates
    i, f, g, o = unsafe_chunk.call(gates, 4, 1)
    i, f, g, o = at.sigmoid(i), at.sigmoid(f), at.tanh(g), at.sigmoid(o)
    c = f * c + i * g
    h = o * at.tanh(c)
    if params.w_hr is not None:
        h = at.matmul(h, params.w_hr.t())
    return h, c


def gru_step(input_gates, hidden, params):
    """h' = (1 - z) n + z h: n is made of the input and of what the gate r lets through of h."""
    input_r, input_z, input_n = unsafe_chunk.call(input_gates, 3, 1)
    r, z, n = unsafe_chunk.call(linear.call(hidden, params.w_hh, params.b_hh), 3, 1)
    r, z = at.sigmoid(r + input_r), at.sigmoid(z + input_z)
    n = at.tanh(input_n + n * r)
    return (hidden - n) * z + n


# ----------------------------------------------------------------------------------------- cells as operators

def check_input(input, input_size):
    if input.size(1) != input_size:
        raise RuntimeError(f"input has inconsistent input_size: got {input.size(1)} expected {input_size}")


def check_hidden(input, hidden, hidden_size, label=0):
    if input.size(0) != hidden.size(0):
        raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{label} batch size "
                           f"{hidden.size(0)}")
    if hidden.size(1) != hidden_size:
        raise RuntimeError(f"hidden{label} has inconsistent hidden_size: got {hidden.size(1)}, expected "
                           f"{hidden_size}")


def check_weights(w_ih, w_hh, gate_count):
    """Each weight has `gate_count` blocks of rows, one for each gate."""
    rows = gate_count * w_hh.size(1)
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != rows:
            raise RuntimeError(f"{name} first dim must be {gate_count} * hidden_size = {rows}, but got "
                               f"{weight.size(0)}")


_CELL = "Tensor w_ih, Tensor w_hh, Tensor? b_ih=None, Tensor? b_hh=None"
lstm_cell = native_function(f"lstm_cell(Tensor input, Tensor[] hx, {_CELL}) -> (Tensor, Tensor)", direct=True)
gru_cell = native_function(f"gru_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", direct=True)
rnn_tanh_cell = native_function(f"rnn_tanh_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", direct=True)
rnn_relu_cell = native_function(f"rnn_relu_cell(Tensor input, Tensor hx, {_CELL}) -> Tensor", direct=True)


@lstm_cell.compose
def lstm_cell_composite(input, hx, w_ih, w_hh, b_ih, b_hh):
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    check_input(input, w_ih.size(1))
    check_weights(w_ih, w_hh, 4)
    for label, hidden in enumerate(hx):
        check_hidden(input, hidden, w_hh.size(1), label)
    return lstm_step(linear.call(input, w_ih, b_ih), hx, CellParams(w_ih, w_hh, b_ih, b_hh, None))


@lstm_cell.kernel
def lstm_cell_cpu(input, hx, w_ih, w_hh, b_ih, b_hh):
    """Without a graph: a layer of one step."""
    arrays = [t._array for t in (input, *hx, w_ih, w_hh, b_ih, b_hh) if t is not None]
    if len(hx) == 2 and input._array.size and all([a.dtype is F4 for a in arrays]):
        x, h, c, w_ih_, w_hh_, *biases = arrays
        if x.ndim == 2 and len(biases) in (0, 2) and fits(4, x[None], w_ih_, w_hh_, biases, (h, c)):
            biases = (b_ih, b_hh) if biases else (w_ih, w_hh)  # which are not looked at
            _, h, c, _ = mkldnn_rnn_layer.kernels[CPU](
                wrap(x[None]), w_ih, w_hh, *biases, *hx, False, (), LSTM_MODE, h.shape[1], 1, b_ih is not None,
                False, False, False)
            return h, c
    return lstm_cell_composite(input, hx, w_ih, w_hh, b_ih, b_hh)


@gru_cell.compose
def gru_cell_composite(input, hx, w_ih, w_hh, b_ih, b_hh):
    check_input(input, w_ih.size(1))
    check_hidden(input, hx, w_hh.size(1))
    check_weights(w_ih, w_hh, 3)
    return gru_step(linear.call(input, w_ih, b_ih), hx, CellParams(w_ih, w_hh, b_ih, b_hh, None))


def one_step(mode, composite):
    """The kernel of a cell without a graph: a layer of one step."""
    def cell_cpu(input, hx, w_ih, w_hh, b_ih, b_hh):
        if input._array.ndim == 2 and (b_ih is None) is (b_hh is None):
            params, sequence = (w_ih, w_hh, b_ih, b_hh), wrap(input._array[None])
            if serves(mode, sequence, hx, params):
                return _rnn_layer.kernels[CPU](sequence, hx, *params, mode, False)[1]
        return composite(input, hx, w_ih, w_hh, b_ih, b_hh)
    return cell_cpu


def simple_cell_composite(step):
    def composite(input, hx, w_ih, w_hh, b_ih, b_hh):
        check_weights(w_ih, w_hh, 1)
        check_input(input, w_ih.size(1))
        check_hidden(input, hx, w_hh.size(1))
        return step(linear.call(input, w_ih, b_ih), hx, CellParams(w_ih, w_hh, b_ih, b_hh, None))
    return composite


rnn_tanh_cell.compose(simple_cell_composite(rnn_tanh_step))
rnn_relu_cell.compose(simple_cell_composite(rnn_relu_step))
for _cell, _layer in ((gru_cell, "gru"), (rnn_tanh_cell, "rnn_tanh"), (rnn_relu_cell, "rnn_relu")):
    _cell.kernel(one_step(_layer, _cell.composite))
