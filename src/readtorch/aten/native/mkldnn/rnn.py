"""A recurrent layer in one direction as a single operator. For the LSTM that is what PyTorch gives to oneDNN.

`lstm` uses it for float32 and bfloat16: the graph has one node for the layer instead of fifteen for each step.

In PyTorch: `aten/src/ATen/native/mkldnn/RNN.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

import functools

import numpy as np

from readtorch.aten import parallel
from readtorch.aten.functions import at
from readtorch.aten.native.cpu_blas import gemm
from readtorch.aten.native.linear import linear
from readtorch.aten.native.tensor_iterator import F4
from readtorch.aten.native_function import native_function
from readtorch.aten.tensor_meta import TensorMeta
from readtorch.c10.dispatch_key import CPU, NO_STORAGE, TANGENT
from readtorch.c10.local_dispatch_key_set import grad_mode_enabled, tls
from readtorch.c10.scalar_type import float32
from readtorch.c10.tensor_impl import dtype_of, wrap

# The operands of one call stand in a line or two; one a line, they would be pages.
# fmt: off

mkldnn_rnn_layer = native_function(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor weight2, Tensor weight3, "
    "Tensor hx_, Tensor cx_, bool reverse, int[] batch_sizes, int mode, int hidden_size, int num_layers, "
    "bool has_biases, bool bidirectional, bool batch_first, bool train) -> (Tensor, Tensor, Tensor, Tensor)")
mkldnn_rnn_layer_backward = native_function(
    "mkldnn_rnn_layer_backward(Tensor input, Tensor weight1, Tensor weight2, Tensor weight3, Tensor weight4, Tensor "
    "hx_, Tensor cx_tmp, Tensor output, Tensor hy_, Tensor cy_, Tensor? grad_output, Tensor? grad_hy, Tensor? grad_cy, "
    "bool reverse, int mode, int hidden_size, int num_layers, bool has_biases, bool train, bool bidirectional, int[] "
    "batch_sizes, bool batch_first, Tensor workspace) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", "")
LSTM_MODE = 2  # the `mode` of an LSTM; the operator is called with no other


@functools.cache
def loops():
    """The compiled loops; imported when first needed."""
    from readtorch.aten.native.cpu import rnn
    return rnn


def wide(t):
    """A tensor's numbers as contiguous float32. None stays None."""
    return None if t is None else np.ascontiguousarray(t._array, F4)


def turned(states):
    """(batch, size) as (size · batch). See Note [ Turned states ]."""
    return states.T.flatten()


def turned_back(states, batch, dtype):
    """(size · batch) as a tensor (batch, size)."""
    return wrap(states.reshape(-1, batch).T.astype(dtype, order="C"))


# ---------------------------------------------------------------------------------------------------- forward

@mkldnn_rnn_layer.meta
def mkldnn_rnn_layer_meta(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode,
                          hidden_size, num_layers, has_biases, bidirectional, batch_first, train):
    """The outputs of all steps, the last h and c, and what backward will need (None while nothing is recorded)."""
    bias = weight2._array if has_biases else weight0._array[:, 0]
    check_sizes(*[t._array for t in (input, weight0, weight1)], bias, hx_._array, cx_._array)
    (steps, batch), size, kind = input._array.shape[:2], weight1._array.shape[1], dtype_of(input)
    state = TensorMeta((batch, size), kind)
    workspace = TensorMeta((steps, 5, size * batch), float32) if grad_mode_enabled() else None
    return TensorMeta((steps, batch, size), kind), state, state, workspace


@mkldnn_rnn_layer.kernel
def mkldnn_rnn_layer_cpu(input, weight0, weight1, weight2, weight3, hx_, cx_, reverse, batch_sizes, mode,
                         hidden_size, num_layers, has_biases, bidirectional, batch_first, train):
    x, w_ih, w_hh, h, c = map(wide, (input, weight0, weight1, hx_, cx_))
    steps, batch, _ = x.shape
    bias = wide(weight2) + wide(weight3) if has_biases else np.zeros(len(w_ih), F4)
    check_sizes(x, w_ih, w_hh, bias, h, c)
    bias = np.repeat(bias, batch)
    h, c = turned(h), turned(c)
    kept = steps if grad_mode_enabled() else 1
    workspace = np.empty((kept, 5, c.size), F4)
    output = np.empty((steps, batch, w_hh.shape[1]), F4)
    loops().lstm_forward(x, w_ih.reshape(-1), w_hh.reshape(-1), bias, reverse, workspace, h, c, output)
    dtype = input._array.dtype
    states = turned_back(h, batch, dtype), turned_back(c, batch, dtype)
    # in PyTorch: the workspace is a tensor of bytes that only oneDNN can read
    return wrap(output.astype(dtype, copy=False)), *states, (wrap(workspace) if grad_mode_enabled() else None)


def check_sizes(x, w_ih, w_hh, bias, h, c):
    # in PyTorch: nothing is checked here, and what does not fit is read from beyond a tensor's end
    if not fits(4, x, w_ih, w_hh, (bias,), (h, c)):
        sizes = ", ".join([str(list(array.shape)) for array in (x, w_ih, w_hh, bias, h, c)])
        raise RuntimeError("mkldnn_rnn_layer: input, weight_ih, weight_hh, bias, h and c do not fit: their sizes "
                           f"are {sizes}")


def fits(gates, x, w_ih, w_hh, biases, states):
    """Whether the sizes are those of one layer whose weights have `gates` blocks of rows."""
    if x.ndim != 3 or w_hh.ndim != 2:
        return False
    size, rows = w_hh.shape[1], gates * w_hh.shape[1]
    wanted = [(w_ih, (rows, x.shape[2])), (w_hh, (rows, size))]
    wanted += [(bias, (rows,)) for bias in biases] + [(state, (x.shape[1], size)) for state in states]
    return all([array.shape == shape for array, shape in wanted])


# --------------------------------------------------------------------------------------------------- backward

@mkldnn_rnn_layer.backward
class MkldnnRnnLayerBackward0:
    output_differentiability = [True, True, True, False]

    def input__weight0__weight1__weight2__weight3__hx___cx_(
            grads, input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, reverse,
            mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3):
        if grad_mode_enabled():
            return lstm_backward_by_steps(input, weight0, weight1, weight2, weight3, hx_, cx_, grads,
                                           reverse, has_biases)
        return mkldnn_rnn_layer_backward.call(
            input, weight0, weight1, weight2, weight3, hx_, cx_, result0, result1, result2, *grads[:3],
            reverse, mode, hidden_size, num_layers, has_biases, train, bidirectional, batch_sizes, batch_first, result3)


@mkldnn_rnn_layer_backward.meta
def mkldnn_rnn_layer_backward_meta(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, *rest):
    """In float32, whatever the dtype of the operands."""
    biases = (weight1._array.shape[:1],) * 2
    shapes = [t._array.shape for t in (input, weight1, weight2)], biases, [t._array.shape for t in (hx_, cx_tmp)]
    return tuple([TensorMeta(shape, float32) for part in shapes for shape in part])


@mkldnn_rnn_layer_backward.kernel
def mkldnn_rnn_layer_backward_cpu(input, weight1, weight2, weight3, weight4, hx_, cx_tmp, output, hy_, cy_,
                                  grad_output, grad_hy, grad_cy, reverse, mode, hidden_size, num_layers,
                                  has_biases, train, bidirectional, batch_sizes, batch_first, workspace):
    """The gradients of input, weight1 … weight4, hx_ and cx_tmp."""
    x, w_ih, w_hh, h, c, y = map(wide, (input, weight1, weight2, hx_, cx_tmp, output))
    batch, width = len(h), len(w_ih)
    dy = np.zeros_like(y) if grad_output is None else wide(grad_output)
    dh, dc = (np.zeros(h.size, F4) if g is None else turned(wide(g)) for g in (grad_hy, grad_cy))
    dx, dw_ih, dw_hh, db = np.empty_like(x), np.zeros_like(w_ih), np.zeros_like(w_hh), np.zeros(width, F4)
    before, c = hidden_before(y, h, reverse), turned(c)
    for begin, end, times in groups_of_steps(len(x), max(1, COLUMNS_AT_ONCE // batch), reverse):
        d_sums = np.empty((width, (end - begin) * batch), F4)
        loops().lstm_backward(w_hh.reshape(-1), c, workspace._array, dy, reverse, begin, end, dh, dc, d_sums)
        add_product(d_sums, rows(x[times]), dw_ih)
        add_product(d_sums, rows(before[times]), dw_hh)
        add_product(d_sums.T, w_ih, rows(dx[times]), beta=0.0)
        db += d_sums.dot(np.ones(d_sums.shape[1], F4))
    # in PyTorch: gradients of bfloat16 tensors leave this operator as float32, and the engine rounds them
    states = turned_back(dh, batch, F4), turned_back(dc, batch, F4)
    return *map(wrap, (dx, dw_ih, dw_hh, db, db.copy())), *states


# So many columns of gradients make one product: few enough to stay in the cache, many enough to keep BLAS busy.
COLUMNS_AT_ONCE = 128


def groups_of_steps(steps, length, reverse):
    """(begin, end, the slice of times) of each group, last steps first."""
    for end in range(steps, 0, -length):
        begin = max(0, end - length)
        yield begin, end, slice(steps - end, steps - begin) if reverse else slice(begin, end)


def add_product(x, y, out, beta=1.0):
    """out = x y + beta · out. One thread is fastest by itself with Note [ Small products ]."""
    if parallel.get_num_threads() > 1:
        return gemm(x, y, out, beta)
    turned = not x.flags.c_contiguous
    stored = x.T if turned else x
    loops().add_product(turned, *out.shape, len(y), stored.reshape(-1), y.reshape(-1), beta, out.reshape(-1))


def rows(array):
    """(steps, batch, features) as a matrix."""
    return array.reshape(-1, array.shape[2])


def hidden_before(output, first, reverse):
    """The h that each step started from: the output of the step before."""
    return np.concatenate((output[1:], first[None]) if reverse else (first[None], output[:-1]))


def lstm_backward_by_steps(x, w_ih, w_hh, b_ih, b_hh, h, c, grads, reverse, has_biases):
    """The same out of operators that can be differentiated again: the layer is computed again, then its steps are
    reversed."""
    if all(g is None for g in grads[:3]):
        return (None,) * 7
    steps = len(x)
    dh = at.zeros_like(h) if grads[1] is None else grads[1]
    dc = at.zeros_like(c) if grads[2] is None else grads[2]
    order = range(steps - 1, -1, -1) if reverse else range(steps)
    states, gates = [(h, c)], []
    for t in order:
        h, c = states[-1]
        sums = linear.call(x[t], w_ih, b_ih if has_biases else None)
        i, f, g, o = (sums + linear.call(h, w_hh, b_hh if has_biases else None)).chunk(4, 1)
        gates.append((i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()))
        i, f, g, o = gates[-1]
        c = f * c + i * g
        states.append((o * c.tanh(), c))
    dx, dw_ih, dw_hh, db = [None] * steps, 0, 0, 0
    for step in range(steps - 1, -1, -1):
        t, (h, c), (i, f, g, o) = order[step], states[step], gates[step]
        shown = states[step + 1][1].tanh()
        dh = dh if grads[0] is None else grads[0][t] + dh
        change = dc + dh * o * (1 - shown * shown)
        d_sums = at.cat([change * g * i * (1 - i), change * c * f * (1 - f), change * i * (1 - g * g),
                         dh * shown * o * (1 - o)], 1)
        dx[t] = d_sums.matmul(w_ih).unsqueeze(0)
        dw_ih, dw_hh = dw_ih + d_sums.t().matmul(x[t]), dw_hh + d_sums.t().matmul(h)
        db = db + d_sums.sum(0)
        dh, dc = d_sums.matmul(w_hh), change * f
    return at.cat(dx, 0), dw_ih, dw_hh, db, db, dh, dc


# ----------------------------------------------------------------------------------------- GRU and simple RNN
# In PyTorch there is no such operator: on the CPU these layers are made of a dozen operators and nodes for each step,
# as they are here for other dtypes and for packed sequences. oneDNN could run them too, but PyTorch asks it for the
# LSTM only.

_rnn_layer = native_function(
    "_rnn_layer(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, str mode, "
    "bool reverse) -> (Tensor, Tensor, Tensor)", "")
_rnn_layer_backward = native_function(
    "_rnn_layer_backward(Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor output, "
    "Tensor? grad_output, Tensor? grad_hy, str mode, bool reverse, Tensor workspace) -> "
    "(Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)", "")
GATES = {"gru": 3, "rnn_tanh": 1, "rnn_relu": 1}


def serves(mode, input, hx, params):
    """Whether the loops can run this layer: float32 throughout, sizes that fit, and nothing but values in the tensors."""
    tensors = [t for t in (input, hx, *params[:4]) if t is not None]
    arrays = [t._array for t in tensors]
    x, h, w_ih, w_hh, *biases = arrays
    if any([t._keys & tls.mask & (TANGENT | NO_STORAGE) for t in tensors]):
        return False
    return (input._keys & CPU and x.size and all([a.dtype is F4 for a in arrays]) and len(biases) in (0, 2)
            and fits(GATES[mode], x, w_ih, w_hh, biases, (h,)))


# ---------------------------------------------------------------------------------------------------- forward

@_rnn_layer.meta
def _rnn_layer_meta(input, hx, w_ih, w_hh, b_ih, b_hh, mode, reverse):
    """The outputs of all steps, the last h, and what a GRU's backward will need."""
    (steps, batch), size = input._array.shape[:2], w_hh._array.shape[1]
    kept = steps if grad_mode_enabled() else 1, 4 if mode == "gru" else 0, size * batch
    return tuple([TensorMeta(shape, float32) for shape in ((steps, batch, size), (batch, size), kept)])


@_rnn_layer.kernel
def _rnn_layer_cpu(input, hx, w_ih, w_hh, b_ih, b_hh, mode, reverse):
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


@_rnn_layer_backward.meta
def _rnn_layer_backward_meta(input, hx, w_ih, w_hh, *rest):
    shapes = *[t._array.shape for t in (input, hx, w_ih, w_hh)], *(w_ih._array.shape[:1],) * 2
    return tuple([TensorMeta(shape, float32) for shape in shapes])


@_rnn_layer_backward.kernel
def _rnn_layer_backward_cpu(input, hx, w_ih, w_hh, output, grad_output, grad_hy, mode, reverse, workspace):
    """The gradients of input, hx and the four weights.

    A GRU's sums are kept in the order n, r, z, n of h: the first three are the input's, the last three those of h.
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
    """The same out of operators that can be differentiated again: the layer is computed again, then its steps are
    reversed."""
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
