"""The steps of a whole LSTM layer as one loop, forward and backward, in float32.

What does not wait for the step before is done outside, for all steps at once: the input's part of the gates, and the
gradients of the input and the weights.

Note [ Turned states ]
States and gates are stored with the batch last: (features, batch). Then each gate of a step is one block of memory,
whatever the batch size, and a flat loop over it vectorizes. The product of a step is W h with a few columns.

Note [ Small products ]
BLAS copies a large matrix into a layout of its own before it multiplies. In a recurrent layer that copy would be made
anew in every step. OpenBLAS spares it for products of at most a million multiply-adds, so a step's product is taken in
tiles of rows which are that small: 114 against 85 billion operations a second for 512 × 128 times 16 columns.

In PyTorch: oneDNN's LSTM, called from `aten/src/ATen/native/mkldnn/RNN.cpp`.
"""
import numpy as np

from ...cpu import vec
from ...cpu.blas import gemm
from ...cpu.compile import fast_kernel

ONE = np.float32(1)
SMALL_PRODUCT, FEWEST_ROWS = 1_000_000, 16


@fast_kernel
def add_product(turned, m, n, k, a, b, beta, c):
    """c = a b + beta c, or aᵀ b + beta c, of matrices stored flat: c m × n, b k × n. See Note [ Small products ]."""
    rows = SMALL_PRODUCT // (n * k)
    rows = m if rows < FEWEST_ROWS else min(rows, m)
    tiles = (m + rows - 1) // rows
    rows = (m + tiles - 1) // tiles
    for first in range(0, m, rows):
        start, width = (first, m) if turned else (first * k, k)
        gemm(turned, False, min(rows, m - first), n, k, 1.0, a[start:], width, b, n, beta, c[first * n:], n)


@fast_kernel
def sigmoid_(x):
    for n in range(x.size):
        x[n] = vec.sigmoid(x[n])


@fast_kernel
def tanh(x, out):
    for n in range(x.size):
        out[n] = vec.tanh(x[n])


@fast_kernel
def lstm_gates(gates, c, h):
    """The gates' inputs become the gates i, f, g, o; then c' = f c + i g, kept as the fifth row, and h' = o tanh(c')."""
    i, f, g, o, kept = gates[0], gates[1], gates[2], gates[3], gates[4]
    sigmoid_(i)
    sigmoid_(f)
    tanh(g, g)
    sigmoid_(o)
    for n in range(c.size):
        c[n] = f[n] * c[n] + i[n] * g[n]
        kept[n] = c[n]
    tanh(c, h)
    for n in range(c.size):
        h[n] *= o[n]


@fast_kernel
def lstm_forward(input_gates, w_hh, reverse, workspace, h, c, output):
    """The steps of a layer.

    input_gates: (4 · size, steps · batch), W x + b; w_hh: flat; workspace: (steps, 5, size · batch) for the gates and c
    of each step, or (1, 5, size · batch) when no backward will ask for them; h, c: (size · batch), the first states,
    which become the last; output: (steps, batch, size).
    """
    steps, batch, size = output.shape
    for step in range(steps):
        t = steps - 1 - step if reverse else step
        gates = workspace[t if workspace.shape[0] == steps else 0]
        flat = gates.reshape(gates.size)
        for row in range(4 * size):
            for b in range(batch):
                flat[row * batch + b] = input_gates[row, t * batch + b]
        add_product(False, 4 * size, batch, size, w_hh, h, 1.0, flat)
        lstm_gates(gates, c, h)
        for b in range(batch):
            for j in range(size):
                output[t, b, j] = h[j * batch + b]


@fast_kernel
def lstm_gates_backward(gates, c, dh, dc, d_gates):
    """From the gradients of h' and c' those of the gates' inputs; dc becomes the gradient of c."""
    i, f, g, o, new_c = gates[0], gates[1], gates[2], gates[3], gates[4]
    di, df, dg, do = d_gates[0], d_gates[1], d_gates[2], d_gates[3]
    tanh(new_c, do)
    for n in range(c.size):
        shown = do[n]
        change = dc[n] + dh[n] * o[n] * (ONE - shown * shown)
        di[n] = change * g[n] * i[n] * (ONE - i[n])
        df[n] = change * c[n] * f[n] * (ONE - f[n])
        dg[n] = change * i[n] * (ONE - g[n] * g[n])
        do[n] = dh[n] * shown * o[n] * (ONE - o[n])
        dc[n] = change * f[n]


@fast_kernel
def lstm_backward(w_hh, first_c, workspace, d_output, reverse, dh, dc, d_input_gates):
    """Back through the steps. dh, dc: (size · batch), the gradients of the last states, which become those of the
    first; first_c: (size · batch); d_input_gates: like input_gates."""
    steps, batch, size = d_output.shape
    d_gates = np.empty((4, size * batch), d_output.dtype)
    flat = d_gates.reshape(d_gates.size)
    for step in range(steps - 1, -1, -1):
        t = steps - 1 - step if reverse else step
        c = first_c if step == 0 else workspace[t + 1 if reverse else t - 1, 4]
        for j in range(size):
            for b in range(batch):
                dh[j * batch + b] += d_output[t, b, j]
        lstm_gates_backward(workspace[t], c, dh, dc, d_gates)
        for row in range(4 * size):
            for b in range(batch):
                d_input_gates[row, t * batch + b] = flat[row * batch + b]
        add_product(True, size, batch, 4 * size, w_hh, flat, 0.0, dh)
