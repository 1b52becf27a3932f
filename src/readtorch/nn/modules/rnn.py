"""Recurrent layers, and their cells for a single step. In PyTorch: `torch/nn/modules/rnn.py`. See the
chapter "Layers, functional, init".

The arithmetic is in `aten/native/rnn.py`; the weights are kept by the base class in `_rnn_base.py`.
"""
import math
import warnings

import readtorch
from readtorch.nn import init
from readtorch.nn.modules._rnn_base import RNNBase, _apply_permutation
from readtorch.nn.modules.module import Module
from readtorch.nn.parameter import Parameter

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]


def apply_permutation(tensor, permutation, dim=1):
    """`tensor.index_select(dim, permutation)`; deprecated."""
    warnings.warn("`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
                  "instead", category=FutureWarning, stacklevel=2)
    return _apply_permutation(tensor, permutation, dim)


class RNN(RNNBase):
    """h' = tanh(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh), step by step; or relu, with nonlinearity="relu".

    RNN(input_size, hidden_size, num_layers=1, nonlinearity="tanh", bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, device=None, dtype=None)
    input: (L, N, input_size), (N, L, input_size) with batch_first, (L, input_size), or a PackedSequence;
    hx: (num_layers · directions, N, hidden_size), by default zeros.
    Returns the outputs of the last layer, with the features of both directions beside each other, and the
    last hidden states of all layers, of the shape of hx. J. L. Elman: Finding structure in time (1990).
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if len(args) > 3:
            self.nonlinearity = args[3]
            args = args[:3] + args[4:]
        else:
            self.nonlinearity = kwargs.pop("nonlinearity", "tanh")
        if self.nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{self.nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(f"RNN_{self.nonlinearity.upper()}", *args, **kwargs)

    def forward(self, input, hx=None):
        operator = readtorch.rnn_tanh if self.mode == "RNN_TANH" else readtorch.rnn_relu
        return self._run(operator, input, hx)


class LSTM(RNNBase):
    """c' = f c + i g, h' = o tanh(c'): a cell state c, and gates i, f, o that open with x and h.

    i, f, o = σ(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh), each with its block of rows; g likewise with tanh.
    LSTM(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0,
    bidirectional=False, proj_size=0, device=None, dtype=None). proj_size: h is multiplied by a matrix that
    makes it this small. Shapes as for RNN, but the hidden state is a pair (h, c). S. Hochreiter, J.
    Schmidhuber: LSTM (1997).
    """

    def __init__(self, *args, **kwargs):
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(self, input, batch_sizes):
        """(layers · directions, batch, features of c)."""
        return self._state_size(self._batch_size(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input, hidden, batch_sizes) -> None:
        self.check_input(input, batch_sizes)
        expected = (self.get_expected_hidden_size, self.get_expected_cell_size)
        for i, size in enumerate(expected):
            message = f"Expected hidden[{i}] size {{}}, got {{}}"
            self.check_hidden_size(hidden[i], size(input, batch_sizes), message)

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def _check_state_dims(self, hx, dims):
        if hx[0].dim() != dims or hx[1].dim() != dims:
            raise RuntimeError(f"For {'batched' if dims == 3 else 'unbatched'} {dims}-D input, hx and cx should "
                               f"also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors")

    def _zero_state(self, input, batch_size):
        c = super()._zero_state(input, batch_size)
        if self.proj_size == 0:
            return super()._zero_state(input, batch_size), c
        size = self._state_size(batch_size, self.proj_size)
        return readtorch.zeros(size, dtype=input.dtype, device=input.device), c

    def _joined(self, states):
        return tuple(states)

    def _on_state(self, hx, function):
        return function(hx[0]), function(hx[1])

    def forward(self, input, hx=None):
        return self._run(readtorch.lstm, input, hx)


class GRU(RNNBase):
    """h' = (1 - z) n + z h: how much is new is a gate z, and a gate r says how much of h goes into the new.

    r, z = σ(x W_ihᵀ + b_ih + h W_hhᵀ + b_hh), n = tanh(x W_inᵀ + b_in + r (h W_hnᵀ + b_hn)).
    GRU(input_size, hidden_size, num_layers=1, bias=True, batch_first=False, dropout=0.0, bidirectional=False,
    device=None, dtype=None). Shapes as for RNN. K. Cho et al.: Learning phrase representations (2014), with
    the reset gate applied after the product, as cuDNN has it.
    """

    def __init__(self, *args, **kwargs):
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)

    def forward(self, input, hx=None):
        return self._run(readtorch.gru, input, hx)


# Cells


class RNNCellBase(Module):
    """The weights of one cell, which start uniform in ±1/√hidden_size."""

    __constants__ = ["input_size", "hidden_size", "bias"]

    def __init__(self, input_size, hidden_size, bias, num_chunks, device=None, dtype=None) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias

        def new_parameter(*shape):
            return Parameter(readtorch.empty(shape, device=device, dtype=dtype))
        rows = num_chunks * hidden_size
        self.weight_ih = new_parameter(rows, input_size)
        self.weight_hh = new_parameter(rows, hidden_size)
        self.register_parameter("bias_ih", new_parameter(rows) if bias else None)
        self.register_parameter("bias_hh", new_parameter(rows) if bias else None)
        self.reset_parameters()

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        if self.__dict__.get("bias", True) is not True:
            s += f", bias={self.bias}"
        if self.__dict__.get("nonlinearity", "tanh") != "tanh":
            s += f", nonlinearity={self.nonlinearity}"
        return s

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _check_dims(self, tensor, what):
        if tensor.dim() not in (1, 2):
            raise ValueError(f"{type(self).__name__}: Expected {what} to be 1D or 2D, got {tensor.dim()}D "
                             "instead")

    def _zero_state(self, input):
        return readtorch.zeros(input.size(0), self.hidden_size, dtype=input.dtype, device=input.device)

    def _run(self, operator, input, hx):
        """One step of a cell whose state is one tensor."""
        self._check_dims(input, "input")
        if hx is not None:
            self._check_dims(hx, "hidden")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            hx = None if hx is None else hx.unsqueeze(0)
        if hx is None:
            hx = self._zero_state(input)
        result = operator(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return result if batched else result.squeeze(0)


class RNNCell(RNNCellBase):
    """One step of RNN: input (N, input_size), hx (N, hidden_size) or None; returns the new hx. N may be
    missing."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(
        self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input, hx=None):
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        operator = readtorch.rnn_tanh_cell if self.nonlinearity == "tanh" else readtorch.rnn_relu_cell
        return self._run(operator, input, hx)


class LSTMCell(RNNCellBase):
    """One step of LSTM: input (N, input_size), hx a pair (h, c) of (N, hidden_size) or None; returns the new
    pair."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        self._check_dims(input, "input")
        for i, state in enumerate(hx or ()):
            self._check_dims(state, f"hx[{i}]")
        batched = input.dim() == 2
        if not batched:
            input = input.unsqueeze(0)
            hx = hx and (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        if hx is None:
            zeros = self._zero_state(input)
            hx = (zeros, zeros)
        h, c = readtorch.lstm_cell(input, hx, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if batched else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of GRU: input (N, input_size), hx (N, hidden_size) or None; returns the new hx. N may be
    missing."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input, hx=None):
        return self._run(readtorch.gru_cell, input, hx)
