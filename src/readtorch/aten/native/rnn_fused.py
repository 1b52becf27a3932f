"""A float32 layer of a GRU or a simple RNN as one operator, as `rnn_layer.py` has it for the LSTM.

# in PyTorch: no such operator; on the CPU these layers are made of a dozen operators and nodes a step, as
they are # here for other dtypes and for packed sequences. oneDNN could run them too, but PyTorch asks it for
the LSTM only.

Explained in the chapter "Layers, functional, init".
"""
import numpy as np

from ...c10.dispatch_key import CUDA, grad_mode_enabled
from ...c10.tensor_impl import wrap
from ..functions import at
from ..native_function import native_function
from .linear import linear
from .rnn_layer import (COLUMNS_AT_ONCE, add_product, fits, groups_of_steps, hidden_before, loops, rows, turned,
                        turned_back)
from .tensor_iterator import F4

_rnn_layer = native_function(
    "_rnn_layer(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, str mode, "
    "bool reverse) -> (Tensor, Tensor, Tensor)", "")
_rnn_layer_backward = native_function(
    "_rnn_layer_backward(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor output, "
    "Tensor? grad_output, Tensor? grad_hy, str mode, bool reverse, Tensor workspace) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", "")
GATES = {"gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def serves(mode, input, hx, params):
    """Whether the loops can run this layer: float32 throughout, and sizes that fit."""
    arrays = [t._array for t in (input, hx, *params[:4]) if t is not None]
    x, h, w_ih, w_hh, *biases = arrays
    return (not input._keys & CUDA and x.size and all([a.dtype is F4 for a in arrays]) and len(biases) in (0, 2)
            and fits(GATES[mode], x, w_ih, w_hh, biases, (h,)))


# ---------------------------------------------------------------------------------------------------- forward

@_rnn_layer.kernel
def _rnn_layer_cpu(input, hx, w_ih, w_hh, b_ih, b_hh, mode, reverse):
    """The outputs of all steps, the last h, and what a GRU's backward will need."""
    x, w_ih, w_hh = (np.ascontiguousarray(t._array) for t in (input, w_ih, w_hh))
    b_ih, b_hh = (np.zeros(len(w_ih), F4) if b is None else b._array for b in (b_ih, b_hh))
    steps, batch, size = *x.shape[:2], w_hh.shape[1]
    h, output = turned(hx._array), np.empty((steps, batch, size), F4)
    workspace = np.empty((steps if grad_mode_enabled() else 1, 4 if mode == "gru" else 0, size * batch), F4)
    arguments = x, w_ih.reshape(-1), w_hh.reshape(-1)
    if mode == "gru":
        bias = np.concatenate((b_ih[:2 * size] + b_hh[:2 * size], b_ih[2 * size:], b_hh[2 * size:]))
        loops().gru_forward(*arguments, np.repeat(bias, batch), reverse, workspace, h, output)
    else:
        loops().rnn_forward(*arguments, np.repeat(b_ih + b_hh, batch), reverse, mode == "rnn_relu", h, output)
    return wrap(output), turned_back(h, batch, F4), wrap(workspace)


# --------------------------------------------------------------------------------------------------- backward

@_rnn_layer.backward
class RnnLayerBackward0:
    output_differentiability = [True, True, False]

    def input__hx__w_ih__w_hh__b_ih__b_hh(grads, input, hx, w_ih, w_hh, b_ih, b_hh, result0, result2, mode,
                                          reverse):
        if grad_mode_enabled():
            return rnn_backward_by_steps(input, hx, w_ih, w_hh, b_ih, b_hh, mode, reverse, grads)
        return _rnn_layer_backward.call(input, hx, w_ih, w_hh, result0, *grads[:2], mode, reverse, result2)


@_rnn_layer_backward.kernel
def _rnn_layer_backward_cpu(input, hx, w_ih, w_hh, output, grad_output, grad_hy, mode, reverse, workspace):
    """The gradients of input, hx and the four weights.

    A GRU's sums are kept in the order n, r, z, n of h: the first three are the input's, the last three those
    of h.
    """
    x, h, w_ih, w_hh, y = (np.ascontiguousarray(t._array) for t in (input, hx, w_ih, w_hh, output))
    batch, size, width = *h.shape, len(w_ih)
    if mode == "gru":
        w_ih = np.concatenate((w_ih[2 * size:], w_ih[:2 * size]))
    dy = np.zeros_like(y) if grad_output is None else np.ascontiguousarray(grad_output._array)
    dh = np.zeros(h.size, F4) if grad_hy is None else turned(grad_hy._array)
    dx, dw_ih, dw_hh = np.empty_like(x), np.zeros_like(w_ih), np.zeros_like(w_hh)
    db = np.zeros(width + (size if mode == "gru" else 0), F4)
    before = hidden_before(y, h, reverse)
    for begin, end, times in groups_of_steps(len(x), max(1, COLUMNS_AT_ONCE // batch), reverse):
        d_sums = np.empty((len(db), (end - begin) * batch), F4)
        if mode == "gru":
            loops().gru_backward(w_hh.reshape(-1), before, workspace._array, dy, reverse, begin, end, dh,
                                 d_sums)
        else:
            loops().rnn_backward(w_hh.reshape(-1), y, dy, reverse, begin, end, mode == "rnn_relu", dh, d_sums)
        of_input, of_hidden = d_sums[:width], d_sums[-width:]
        add_product(of_input, rows(x[times]), dw_ih)
        add_product(of_hidden, rows(before[times]), dw_hh)
        add_product(of_input.T, w_ih, rows(dx[times]), beta=0.0)
        db += d_sums.dot(np.ones(d_sums.shape[1], F4))
    db_ih, db_hh = db[:width], db[-width:].copy()
    if mode == "gru":
        dw_ih, db_ih = (np.concatenate((d[size:], d[:size])) for d in (dw_ih, db_ih))
    return (wrap(dx), turned_back(dh, batch, F4), *map(wrap, (dw_ih, dw_hh, db_ih, db_hh)))


def rnn_backward_by_steps(x, h, w_ih, w_hh, b_ih, b_hh, mode, reverse, grads):
    """The same out of operators that can be differentiated again: the layer is computed anew, then walked
    back."""
    compute, back = (gru_parts, gru_back) if mode == "gru" else (rnn_parts(mode), rnn_back(mode))
    order = range(len(x) - 1, -1, -1) if reverse else range(len(x))
    states, parts = [h], []
    for t in order:
        h, part = compute(linear.call(x[t], w_ih, b_ih), linear.call(states[-1], w_hh, b_hh), states[-1])
        states.append(h)
        parts.append(part)
    dh = at.zeros_like(h) if grads[1] is None else grads[1]
    dx, dw_ih, dw_hh, db_ih, db_hh = [None] * len(x), 0, 0, 0, 0
    for step in range(len(x) - 1, -1, -1):
        t, h = order[step], states[step]
        dh = dh if grads[0] is None else grads[0][t] + dh
        of_input, of_hidden, kept = back(dh, h, *parts[step])
        dx[t] = of_input.matmul(w_ih)
        dw_ih, dw_hh = dw_ih + of_input.t().matmul(x[t]), dw_hh + of_hidden.t().matmul(h)
        db_ih, db_hh = db_ih + of_input.sum(0), db_hh + of_hidden.sum(0)
        dh = of_hidden.matmul(w_hh) + kept
    return at.stack(dx, 0), dh, dw_ih, dw_hh, db_ih, db_hh


def gru_parts(of_input, of_hidden, h):
    """h', and the gates r, z, n with n's part of h."""
    (x_r, x_z, x_n), (h_r, h_z, h_n) = of_input.chunk(3, 1), of_hidden.chunk(3, 1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n).tanh()
    return (h - n) * z + n, (r, z, n, h_n)


def gru_back(dh, h, r, z, n, h_n):
    """The gradients of the input's sums and of h's sums, and what of dh goes to h directly."""
    dz, dn = dh * (h - n) * z * (1 - z), dh * (1 - z) * (1 - n * n)
    dr = dn * h_n * r * (1 - r)
    return at.cat([dr, dz, dn], 1), at.cat([dr, dz, dn * r], 1), dh * z


def rnn_parts(mode):
    def parts(of_input, of_hidden, h):
        h = at.relu(of_input + of_hidden) if mode == "rnn_relu" else at.tanh(of_input + of_hidden)
        return h, (h,)
    return parts


def rnn_back(mode):
    def back(dh, h, new_h):
        slope = (new_h > 0).to(dh.dtype) if mode == "rnn_relu" else 1 - new_h * new_h
        return dh * slope, dh * slope, at.zeros_like(h)
    return back
