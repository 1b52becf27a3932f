"""Recurrent operators and packed sequences, against the reference: values, gradients, graphs, refusals."""

import itertools

import pytest
import torch

from tests.reference import both

DTYPES = [torch.float32, torch.float64]
FORMS = [
    dict(layers=1, bidirectional=False, bias=True),
    dict(layers=2, bidirectional=True, bias=True),
    dict(layers=2, bidirectional=False, bias=False),
]
OPERATORS = ["rnn_tanh", "rnn_relu", "gru", "lstm"]
INPUTS, SIZE, PROJECTION = 3, 4, 2


def weights(name, dtype, layers, bidirectional, bias, projection=0):
    module = {"lstm": torch.nn.LSTM, "gru": torch.nn.GRU}.get(name, torch.nn.RNN)
    more = {"proj_size": projection} if projection else {}
    made = module(INPUTS, SIZE, layers, bidirectional=bidirectional, bias=bias, dtype=dtype, **more)
    return [p.detach().clone().requires_grad_() for p in made.parameters()]


def states(name, dtype, layers, bidirectional, batch, projection=0):
    def state(size):
        return torch.randn(layers * (1 + bidirectional), batch, size, dtype=dtype, requires_grad=True)

    return (state(projection or SIZE), state(SIZE)) if name == "lstm" else state(SIZE)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_padded(name, form, dtype):
    hx, params = states(name, dtype, form["layers"], form["bidirectional"], 2), weights(name, dtype, **form)
    for batch_first in (False, True):
        shape = (2, 5, INPUTS) if batch_first else (5, 2, INPUTS)
        x = torch.randn(shape, dtype=dtype, requires_grad=True)
        both(
            lambda T, x, hx, params: getattr(T, name)(
                x, hx, params, form["bias"], form["layers"], 0.0, True, form["bidirectional"], batch_first
            ),
            x,
            hx,
            params,
        )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", OPERATORS)
def test_packed(name, form):
    hx = states(name, torch.float32, form["layers"], form["bidirectional"], 3)
    params = weights(name, torch.float32, **form)
    data, batch_sizes = torch.randn(8, INPUTS, requires_grad=True), torch.tensor([3, 2, 2, 1])
    settings = form["bias"], form["layers"], 0.0, True, form["bidirectional"]
    both(
        lambda T, data, sizes, hx, params: getattr(T, name)(data, sizes, hx, params, *settings),
        data,
        batch_sizes,
        hx,
        params,
    )


@pytest.mark.parametrize("bidirectional", [False, True])
def test_projection(bidirectional):
    params = weights("lstm", torch.float64, 2, bidirectional, True, PROJECTION)
    hx = states("lstm", torch.float64, 2, bidirectional, 2, PROJECTION)
    x = torch.randn(4, 2, INPUTS, dtype=torch.float64, requires_grad=True)
    settings = True, 2, 0.0, True, bidirectional, False
    both(lambda T, x, hx, params: T.lstm(x, hx, params, *settings), x, hx, params)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", OPERATORS)
def test_second_derivatives(name, dtype):
    """Also of the layer that is one node: its backward, when a graph is asked for, is made of steps."""
    params, hx = weights(name, dtype, 1, True, True), states(name, dtype, 1, True, 2)
    x = torch.randn(3, 2, INPUTS, dtype=dtype, requires_grad=True)
    settings = True, 1, 0.0, True, True, False
    both(lambda T, x, hx, params: getattr(T, name)(x, hx, params, *settings), x, hx, params, grad=2)


@pytest.mark.parametrize(
    "batch, inputs, size, steps", [(1, 1, 1, 1), (3, 5, 7, 4), (16, 64, 128, 10), (64, 33, 65, 5), (20, 8, 160, 3)]
)
@pytest.mark.parametrize("name", OPERATORS)
def test_sizes_of_the_loops(name, batch, inputs, size, steps):
    """Tiles and groups of steps that do and do not come out even; nothing recorded, and recorded."""
    gates = {"lstm": 4, "gru": 3}.get(name, 1)
    params = [torch.randn(gates * size, n) * size**-0.5 for n in (inputs, size)]
    params += [torch.randn(gates * size) for _ in range(2)]
    x, h, c = torch.randn(steps, batch, inputs), torch.randn(1, batch, size), torch.randn(1, batch, size)
    hx = (h, c) if name == "lstm" else h

    def call(T, x, hx, params):
        return getattr(T, name)(x, hx, params, True, 1, 0.0, False, False, False)

    both(call, x, hx, params, rtol=1e-4, atol=1e-5)
    for t in (x, *params, h):
        t.requires_grad_()
    both(call, x, hx, params, rtol=1e-3, atol=1e-4)


def test_hidden_state_gradient_alone():
    """Only the last c is used, only the first h asked for."""
    params = [p.detach() for p in weights("lstm", torch.float32, 1, False, True)]
    h, c = (s.detach() for s in states("lstm", torch.float32, 1, False, 2))
    settings = True, 1, 0.0, True, False, False
    both(
        lambda T, x, h, c, params: T.lstm(x, (h, c), params, *settings)[2],
        torch.randn(3, 2, INPUTS),
        h.requires_grad_(),
        c,
        params,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("name", ["lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell"])
def test_cells(name, bias, dtype):
    cell = {"lstm_cell": torch.nn.LSTMCell, "gru_cell": torch.nn.GRUCell}.get(name, torch.nn.RNNCell)
    params = [p.detach().clone().requires_grad_() for p in cell(INPUTS, SIZE, bias, dtype=dtype).parameters()]
    x, h, c = (torch.randn(2, n, dtype=dtype, requires_grad=True) for n in (INPUTS, SIZE, SIZE))
    hx = (h, c) if name == "lstm_cell" else h
    both(lambda T, x, hx, params: getattr(T, name)(x, hx, *params), x, hx, params, grad=2, versions=False)
    with torch.no_grad():
        plain = [t.detach() for t in (x, h, c, *params)]
        hx = (plain[1], plain[2]) if name == "lstm_cell" else plain[1]
        both(lambda T, x, hx, *params: getattr(T, name)(x, hx, *params), plain[0], hx, *plain[3:], versions=False)


def test_refusals():
    x, h = torch.randn(2, INPUTS), torch.zeros(2, SIZE)
    w_ih, w_hh = torch.randn(4 * SIZE, INPUTS), torch.randn(4 * SIZE, SIZE)
    for hx in ((h,), (h[:1], h), (h, h[:, :2])):
        both(lambda T, x, hx, *w: T.lstm_cell(x, hx, *w), x, hx, w_ih, w_hh)
    both(lambda T, x, h, *w: T.lstm_cell(x[:, :2], (h, h), *w), x, h, w_ih, w_hh)
    both(lambda T, x, h, *w: T.gru_cell(x, h, *w), x, h, w_ih, w_hh)
    both(lambda T, x, h, *w: T.rnn_tanh_cell(x, h, *w), x, h, w_ih, w_hh)
    hx = torch.zeros(2, 2, SIZE)
    params = [p.detach() for p in weights("gru", torch.float32, 2, False, True)]
    sequence = torch.randn(5, 2, INPUTS)
    both(lambda T, x, h, p: T.gru(x, h, p[:-1], True, 2, 0.0, False, False, False), sequence, hx, params)
    both(lambda T, x, h, p: T.gru(x, h, p, False, 2, 0.0, False, False, False), sequence, hx, params)
    both(lambda T, x, h, p: T.gru(x, h[:1], p, True, 2, 0.0, False, False, False), sequence, hx, params)
    both(lambda T, x, h, p: T.gru(x[:0], h, p, True, 2, 0.0, False, False, False), sequence, hx, params)
    both(lambda T, x, h, p: T.lstm(x, (h,), p, True, 2, 0.0, False, False, False), sequence, hx, params)


# Packed sequences


def test_pack_and_pad():
    x = torch.randn(4, 3, 2, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([4, 2, 2])
    for batch_first in (False, True):
        padded = x.transpose(0, 1) if batch_first else x
        both(
            lambda T, x, lengths: T._pack_padded_sequence(x, lengths, batch_first),
            padded,
            lengths,
            grad=2,
            versions=False,
        )
        data, sizes = torch.randn(8, 2, requires_grad=True), torch.tensor([3, 3, 1, 1])
        both(
            lambda T, data, sizes: T._pad_packed_sequence(data, sizes, batch_first, -1.5, 6),
            data,
            sizes,
            versions=False,
        )


@pytest.mark.parametrize("lengths", [[3, 4], [4], [4, 0], [[4, 2]], [4.0, 2.0]])
def test_lengths_that_do_not_fit(lengths):
    both(lambda T, x, lengths: T._pack_padded_sequence(x, lengths, False), torch.randn(4, 2), torch.tensor(lengths))


@pytest.mark.parametrize("batch_first, side", list(itertools.product([False, True], ["left", "right", "up"])))
def test_pad_sequence(batch_first, side):
    sequences = [torch.randn(n, 2, requires_grad=True) for n in (2, 4, 1)]
    both(lambda T, s: T._C._nn.pad_sequence(s, batch_first, 0.5, side), sequences, versions=False)
    both(lambda T: T._C._nn.pad_sequence([], batch_first, 0.5, side))
