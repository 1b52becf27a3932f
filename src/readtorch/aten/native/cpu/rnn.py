"""The steps of a whole recurrent layer as one loop, in float32: forward and backward.

Backward, what does not wait for another step is left to the caller: the gradients of the input and the
weights are products of matrices that hold several steps.

Note [ Turned states ]
States and gates are stored with the batch last: (features, batch). Then each gate of a step is one block of
memory, whatever the batch size, and a flat loop over it vectorizes. The product of a step is W h with a few
columns.

Note [ Small products ]
BLAS copies a large matrix into a layout of its own before it multiplies. In a recurrent layer that copy would
be made anew in every step. OpenBLAS spares it for products of at most a million multiply-adds, so a step's
product is taken in tiles of rows which are that small: 114 against 85 billion operations a second for 512 ×
128 times 16 columns.

In PyTorch: oneDNN's LSTM, called from `aten/src/ATen/native/mkldnn/RNN.cpp`.
"""

import numpy as np

from readtorch.aten.cpu import vec
from readtorch.aten.cpu.blas import gemm
from readtorch.aten.cpu.compile import fast_kernel

ZERO, ONE = np.float32(0), np.float32(1)
SMALL_PRODUCT, FEWEST_ROWS, DEEPEST = 1_000_000, 16, 512


@fast_kernel
def add_product(turned, m, n, k, a, b, beta, c):
    """c = a b + beta c, or aᵀ b + beta c, of matrices stored flat: c m × n, b k × n.

    See Note [ Small products ]. A long sum is taken in parts, so that tiles do not become too narrow.
    """
    depth = min(k, DEEPEST)
    rows = SMALL_PRODUCT // (n * depth)
    if rows < FEWEST_ROWS:
        rows, depth = m, k
    tiles = (m + rows - 1) // rows
    rows = (m + tiles - 1) // tiles
    width = m if turned else k
    for begin in range(0, k, depth):
        for first in range(0, m, rows):
            start = begin * m + first if turned else first * k + begin
            gemm(
                turned,
                False,
                min(rows, m - first),
                n,
                min(depth, k - begin),
                1.0,
                a[start:],
                width,
                b[begin * n :],
                n,
                beta if begin == 0 else 1.0,
                c[first * n :],
                n,
            )


@fast_kernel
def sigmoid_(x):
    for n in range(x.size):
        x[n] = vec.sigmoid(x[n])


@fast_kernel
def tanh_(x):
    for n in range(x.size):
        x[n] = vec.tanh(x[n])


@fast_kernel
def tanh(x, out):
    for n in range(x.size):
        out[n] = vec.tanh(x[n])


@fast_kernel
def lstm_gates(gates, c, h):
    """The gates' inputs become the gates i, f, g, o; then c' = f c + i g, kept as the fifth row, and h' = o
    tanh(c')."""
    i, f, g, o, kept = gates[0], gates[1], gates[2], gates[3], gates[4]
    sigmoid_(i)
    sigmoid_(f)
    tanh_(g)
    sigmoid_(o)
    for n in range(c.size):
        kept[n] = f[n] * c[n] + i[n] * g[n]
    tanh(kept, h)
    for n in range(c.size):
        c[n] = kept[n]
    for n in range(c.size):
        h[n] *= o[n]


@fast_kernel
def turn(rows, turned):
    """(batch, features) as (features · batch)."""
    batch, features = rows.shape
    for j in range(features):
        for b in range(batch):
            turned[j * batch + b] = rows[b, j]


@fast_kernel
def turn_back(turned, rows):
    batch, features = rows.shape
    for b in range(batch):
        for j in range(features):
            rows[b, j] = turned[j * batch + b]


@fast_kernel
def add_turned(rows, turned):
    batch, features = rows.shape
    for j in range(features):
        for b in range(batch):
            turned[j * batch + b] += rows[b, j]


@fast_kernel
def keep_columns(flat, first, columns):
    """The gradients of one step into their columns of all steps'."""
    batch = flat.size // columns.shape[0]
    for row in range(columns.shape[0]):
        for b in range(batch):
            columns[row, first + b] = flat[row * batch + b]


@fast_kernel
def lstm_forward(x, w_ih, w_hh, bias, reverse, workspace, h, c, output):
    """The steps of a layer.

    x: (steps, batch, inputs); w_ih, w_hh: flat; bias: (4 · size · batch), the same for each of the batch;
    workspace: (steps, 5, size · batch) for the gates and c of each step, or (1, 5, size · batch) when no
    backward will ask for them; h, c: (size · batch), the first states, which become the last; output: (steps,
    batch, size).
    """
    steps, batch, inputs = x.shape
    size = output.shape[2]
    turned_x = np.empty(inputs * batch, x.dtype)
    for step in range(steps):
        t = steps - 1 - step if reverse else step
        gates = workspace[t if workspace.shape[0] == steps else 0]
        flat = gates.reshape(gates.size)
        for n in range(bias.size):
            flat[n] = bias[n]
        turn(x[t], turned_x)
        add_product(False, 4 * size, batch, inputs, w_ih, turned_x, 1.0, flat)
        add_product(False, 4 * size, batch, size, w_hh, h, 1.0, flat)
        lstm_gates(gates, c, h)
        turn_back(h, output[t])


@fast_kernel
def lstm_gates_backward(gates, c, dh, dc, d_gates):
    """From the gradients of h' and c' those of the gates' inputs; dc becomes the gradient of c.

    One loop for each result: among more arrays LLVM does not look whether they overlap, and does not
    vectorize.
    """
    i, f, g, o, new_c = gates[0], gates[1], gates[2], gates[3], gates[4]
    di, df, dg, do = d_gates[0], d_gates[1], d_gates[2], d_gates[3]
    tanh(new_c, do)
    for n in range(dc.size):
        dc[n] += dh[n] * o[n] * (ONE - do[n] * do[n])
    for n in range(dc.size):
        do[n] *= dh[n] * o[n] * (ONE - o[n])
    for n in range(dc.size):
        di[n] = dc[n] * g[n] * i[n] * (ONE - i[n])
    for n in range(dc.size):
        df[n] = dc[n] * c[n] * f[n] * (ONE - f[n])
    for n in range(dc.size):
        dg[n] = dc[n] * i[n] * (ONE - g[n] * g[n])
    for n in range(dc.size):
        dc[n] *= f[n]


@fast_kernel
def lstm_backward(w_hh, first_c, workspace, d_output, reverse, begin, end, dh, dc, d_sums):
    """Back from step `end` to step `begin`.

    dh, dc: (size · batch), the gradients of the states after these steps, which become those of the states
    before; first_c: (size · batch); d_sums: (4 · size, steps · batch), the gradients of the gates' inputs, by
    time.
    """
    steps, batch, size = d_output.shape
    d_gates = np.empty((4, size * batch), d_output.dtype)
    flat = d_gates.reshape(d_gates.size)
    start = steps - end if reverse else begin
    for step in range(end - 1, begin - 1, -1):
        t = steps - 1 - step if reverse else step
        c = first_c if step == 0 else workspace[t + 1 if reverse else t - 1, 4]
        add_turned(d_output[t], dh)
        lstm_gates_backward(workspace[t], c, dh, dc, d_gates)
        keep_columns(flat, (t - start) * batch, d_sums)
        add_product(True, size, batch, 4 * size, w_hh, flat, 0.0, dh)


# ------------------------------------------------------------------------------------------------ GRU and RNN


@fast_kernel
def gru_gates(sums, h):
    """sums: what r, z and n have of the input (r and z of h as well), and what n has of h."""
    r, z, n, n_of_h = sums[0], sums[1], sums[2], sums[3]
    sigmoid_(r)
    sigmoid_(z)
    for k in range(h.size):
        n[k] += r[k] * n_of_h[k]
    tanh_(n)
    for k in range(h.size):
        h[k] = (h[k] - n[k]) * z[k] + n[k]


@fast_kernel
def gru_forward(x, w_ih, w_hh, bias, reverse, workspace, h, output):
    """As lstm_forward. bias: (4 · size · batch), of r, z, of n's input and of n's h; workspace: (steps or 1,
    4, size · batch)."""
    steps, batch, inputs = x.shape
    size = output.shape[2]
    block = size * batch
    turned_x = np.empty(inputs * batch, x.dtype)
    for step in range(steps):
        t = steps - 1 - step if reverse else step
        sums = workspace[t if workspace.shape[0] == steps else 0]
        flat = sums.reshape(sums.size)
        for n in range(bias.size):
            flat[n] = bias[n]
        turn(x[t], turned_x)
        add_product(False, 3 * size, batch, inputs, w_ih, turned_x, 1.0, flat)
        add_product(False, 2 * size, batch, size, w_hh, h, 1.0, flat)
        add_product(False, size, batch, size, w_hh[2 * size * size :], h, 1.0, flat[3 * block :])
        gru_gates(sums, h)
        turn_back(h, output[t])


@fast_kernel
def relu_(x):
    for n in range(x.size):
        x[n] = x[n] if x[n] > ZERO or x[n] != x[n] else ZERO


@fast_kernel
def rnn_forward(x, w_ih, w_hh, bias, reverse, is_relu, h, output):
    """As lstm_forward. bias: (size · batch)."""
    steps, batch, inputs = x.shape
    size = output.shape[2]
    turned_x = np.empty(inputs * batch, x.dtype)
    sums = np.empty(size * batch, x.dtype)
    for step in range(steps):
        t = steps - 1 - step if reverse else step
        for n in range(bias.size):
            sums[n] = bias[n]
        turn(x[t], turned_x)
        add_product(False, size, batch, inputs, w_ih, turned_x, 1.0, sums)
        add_product(False, size, batch, size, w_hh, h, 1.0, sums)
        if is_relu:
            relu_(sums)
        else:
            tanh_(sums)
        for n in range(h.size):
            h[n] = sums[n]
        turn_back(h, output[t])


@fast_kernel
def gru_gates_backward(kept, h, dh, d_sums):
    """kept: r, z, n, and what n has of h; d_sums: the gradients of n's sum, of r's, of z's, and of n's part
    of h. dh, the gradient of h', becomes that of h as far as h is kept."""
    r, z, n, n_of_h = kept[0], kept[1], kept[2], kept[3]
    dn, dr, dz, dn_of_h = d_sums[0], d_sums[1], d_sums[2], d_sums[3]
    for k in range(dh.size):
        dz[k] = dh[k] * (h[k] - n[k]) * z[k] * (ONE - z[k])
    for k in range(dh.size):
        dn[k] = dh[k] * (ONE - z[k]) * (ONE - n[k] * n[k])
    for k in range(dh.size):
        dn_of_h[k] = dn[k] * r[k]
    for k in range(dh.size):
        dr[k] = dn_of_h[k] * n_of_h[k] * (ONE - r[k])
    for k in range(dh.size):
        dh[k] *= z[k]


@fast_kernel
def gru_backward(w_hh, before, workspace, d_output, reverse, begin, end, dh, d_sums):
    """As lstm_backward. before: (steps, batch, size), the h that each step started from."""
    steps, batch, size = d_output.shape
    step_sums = np.empty((4, size * batch), d_output.dtype)
    flat = step_sums.reshape(step_sums.size)
    h = np.empty(size * batch, d_output.dtype)
    start = steps - end if reverse else begin
    for step in range(end - 1, begin - 1, -1):
        t = steps - 1 - step if reverse else step
        add_turned(d_output[t], dh)
        turn(before[t], h)
        gru_gates_backward(workspace[t], h, dh, step_sums)
        keep_columns(flat, (t - start) * batch, d_sums)
        add_product(True, size, batch, 3 * size, w_hh, flat[size * batch :], 1.0, dh)


@fast_kernel
def rnn_backward(w_hh, output, d_output, reverse, begin, end, is_relu, dh, d_sums):
    """As lstm_backward. d_sums: (size, steps · batch)."""
    steps, batch, size = d_output.shape
    step_sums = np.empty(size * batch, d_output.dtype)
    h = np.empty(size * batch, d_output.dtype)
    start = steps - end if reverse else begin
    for step in range(end - 1, begin - 1, -1):
        t = steps - 1 - step if reverse else step
        add_turned(d_output[t], dh)
        turn(output[t], h)
        if is_relu:
            for n in range(h.size):
                step_sums[n] = dh[n] if h[n] > ZERO else ZERO
        else:
            for n in range(h.size):
                step_sums[n] = dh[n] * (ONE - h[n] * h[n])
        keep_columns(step_sums, (t - start) * batch, d_sums)
        add_product(True, size, batch, size, w_hh, step_sums, 0.0, dh)
