"""Recurrent layers, and their cells for a single step. The arithmetic is in `aten/native/rnn.py`.

In PyTorch: `torch/nn/modules/rnn.py`. See the chapter "Layers: convolution, embedding, recurrence".
"""

import math
import numbers
import warnings
import weakref

import readtorch
from readtorch import Tensor
from readtorch.nn import init
from readtorch.nn.parameter import Parameter
from readtorch.nn.utils.rnn import PackedSequence

from .module import Module

__all__ = ["RNNBase", "RNN", "LSTM", "GRU", "RNNCellBase", "RNNCell", "LSTMCell", "GRUCell"]


# How many blocks of `hidden_size` rows the weights have: one for each gate.
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return tensor.index_select(dim, permutation)


class RNNBase(Module):
    """What RNN, LSTM and GRU share: weights for each layer and direction, and the preparation of the arguments.

    mode: "RNN_TANH", "RNN_RELU", "LSTM" or "GRU". Weights have names such as `weight_ih_l0` (input to hidden,
    layer 0), `bias_hh_l1_reverse` (hidden to hidden, layer 1, backward) and start uniform in ±1/√hidden_size.
    """

    __constants__ = [
        "mode",
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ]
    __jit_unused_properties__ = ["all_weights"]

    def __init__(
        self,
        mode,
        input_size,
        hidden_size,
        num_layers=1,
        bias=True,
        batch_first=False,
        dropout=0.0,
        bidirectional=False,
        proj_size=0,
        device=None,
        dtype=None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._flat_weight_refs = []
        self._check_settings(dropout)
        self._flat_weights_names = []
        self._all_weights = []
        for layer, direction in self._layers_and_directions():
            names = self._weight_names(layer, direction)
            for name, shape in zip(names, self._weight_shapes(layer), strict=True):
                setattr(self, name, Parameter(readtorch.empty(shape, device=device, dtype=dtype)))
            self._flat_weights_names.extend(names)
            self._all_weights.append(names)
        self._init_flat_weights()
        self.reset_parameters()

    def _check_settings(self, dropout):
        if not isinstance(dropout, numbers.Number) or not 0 <= dropout <= 1 or isinstance(dropout, bool):
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=3,
            )
        for name, kind in (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int)):
            value = getattr(self, name)
            if not isinstance(value, kind):
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {type(value).__name__}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError("proj_size should be a positive integer or zero to disable projections")
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")
        if self.mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + self.mode)

    # The weights

    def _layers_and_directions(self):
        directions = 2 if self.bidirectional else 1
        return [(layer, direction) for layer in range(self.num_layers) for direction in range(directions)]

    def _weight_names(self, layer, direction):
        names = ["weight_ih", "weight_hh"] + ["bias_ih", "bias_hh"] * self.bias
        names += ["weight_hr"] * (self.proj_size > 0)
        return [f"{name}_l{layer}{'_reverse' if direction else ''}" for name in names]

    def _weight_shapes(self, layer):
        """In the order of the names. Two biases where one would do: cuDNN has two."""
        rows = _GATES[self.mode] * self.hidden_size
        output_size = self.proj_size or self.hidden_size
        input_size = self.input_size if layer == 0 else output_size * (2 if self.bidirectional else 1)
        shapes = [(rows, input_size), (rows, output_size)] + [(rows,), (rows,)] * self.bias
        return shapes + [(self.proj_size, self.hidden_size)] * (self.proj_size > 0)

    def _init_flat_weights(self) -> None:
        """Collect the weights in the order in which operators take them."""
        self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._refer_to_weights()
        self.flatten_parameters()

    def _refer_to_weights(self):
        self._flat_weight_refs = [w if w is None else weakref.ref(w) for w in self._flat_weights]

    def _weights_have_changed(self):
        """Whether an attribute is another tensor than at the last forward: `functional_call` puts others
        there."""
        for ref, name in zip(self._flat_weight_refs, self._flat_weights_names, strict=True):
            weight = getattr(self, name, None)
            if weight is not None and ref is not None and ref() is not weight:
                return True
        return False

    def _update_flat_weights(self) -> None:
        if not readtorch.jit.is_scripting():
            if self._weights_have_changed():
                self._init_flat_weights()

    def __setattr__(self, attr, value) -> None:
        if hasattr(self, "_flat_weights_names") and attr in self._flat_weights_names:
            # A weight may be assigned while the constructor has not yet collected them.
            index = self._flat_weights_names.index(attr)
            self._flat_weights[index] = value
        super().__setattr__(attr, value)

    def flatten_parameters(self) -> None:
        """Does nothing. In PyTorch: lays weights on a GPU into one block of memory, as cuDNN wants them."""

    def _apply(self, fn, recurse=True):
        self._flat_weight_refs = []
        super()._apply(fn, recurse)
        self._init_flat_weights()
        return self

    def reset_parameters(self) -> None:
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    @property
    def all_weights(self):
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def __getstate__(self):
        self._update_flat_weights()
        state = self.__dict__.copy()
        del state["_flat_weight_refs"]  # weak references cannot be pickled
        return state

    def __setstate__(self, d):
        super().__setstate__(d)
        if "all_weights" in d:
            self._all_weights = d["all_weights"]
        # What modules that were pickled by older versions lack:
        self.__dict__.setdefault("proj_size", 0)
        if not isinstance(self._all_weights[0][0], str):
            self._all_weights = [self._weight_names(*pair) for pair in self._layers_and_directions()]
            self._flat_weights_names = sum(self._all_weights, [])
            self._flat_weights = [getattr(self, name, None) for name in self._flat_weights_names]
        self._refer_to_weights()

    def _replicate_for_data_parallel(self):
        replica = super()._replicate_for_data_parallel()
        replica._flat_weights = replica._flat_weights[:]
        replica._flat_weights_names = replica._flat_weights_names[:]
        return replica

    # Checks

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises ValueError for another dtype than the weights', RuntimeError for other sizes."""
        dtype = self._flat_weights[0].dtype
        if input.dtype != dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({dtype}). "
                f"Convert input: input.to({dtype}), or convert model: model.to({input.dtype})"
            )
        expected_input_dim = 2 if batch_sizes is not None else 3
        if input.dim() != expected_input_dim:
            raise RuntimeError(f"input must have {expected_input_dim} dimensions, got {input.dim()}")
        if self.input_size != input.size(-1):
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def _batch_size(self, input: Tensor, batch_sizes: Tensor | None) -> int:
        return input.size(0 if self.batch_first else 1) if batch_sizes is None else int(batch_sizes[0])

    def _state_size(self, batch_size: int, size: int) -> tuple[int, int, int]:
        return self.num_layers * (2 if self.bidirectional else 1), batch_size, size

    def get_expected_hidden_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers · directions, batch, features of h)."""
        size = self.proj_size if self.proj_size > 0 else self.hidden_size
        return self._state_size(self._batch_size(input, batch_sizes), size)

    def check_hidden_size(
        self, hx: Tensor, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        if hx.size() != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.size())))

    def check_forward_args(self, input: Tensor, hidden: Tensor, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def _check_state_dims(self, hx: Tensor, dims: int) -> None:
        """Raises RuntimeError unless the state is 3-D beside a batch (2-D beside a single sequence)."""
        if hx.dim() != dims:
            raise RuntimeError(
                f"For {'batched' if dims == 3 else 'unbatched'} {dims}-D input, hx should also "
                f"be {dims}-D but got {hx.dim()}-D tensor"
            )

    # From the arguments to the operator and back.

    def _zeros(self, input: Tensor, batch_size: int, features: int) -> Tensor:
        size = self._state_size(batch_size, features)
        return readtorch.zeros(size, dtype=input.dtype, device=input.device)

    def _zero_state(self, input: Tensor, batch_size: int) -> Tensor:
        return self._zeros(input, batch_size, self.hidden_size)

    def permute_hidden(self, hx, permutation):
        """The states of a batch in another order; None leaves them."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def _run_packed(self, operator, packed, hx):
        """The caller's states are in the order of the sequences before they were sorted."""
        data, batch_sizes, sorted_indices, unsorted_indices = packed
        if hx is None:
            hx = self._zero_state(data, int(batch_sizes[0]))
        else:
            hx = self.permute_hidden(hx, sorted_indices)
        if self.mode != "LSTM":  # as in PyTorch
            self.check_forward_args(data, hx, batch_sizes)
        output, *hidden = operator(
            data,
            batch_sizes,
            hx,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
        )
        packed = PackedSequence(output, batch_sizes, sorted_indices, unsorted_indices)
        last = tuple(hidden) if self.mode == "LSTM" else hidden[0]
        return packed, self.permute_hidden(last, unsorted_indices)

    def _as_batch(self, input: Tensor) -> Tensor:
        """Three dimensions: a single sequence is a batch of one."""
        dims = input.dim()
        if dims not in (2, 3):
            is_rnn = self.mode.startswith("RNN")
            name, kind = "RNN" if is_rnn else self.mode, " tensor" if is_rnn else ""
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {dims}D{kind} instead")
        return input.unsqueeze(0 if self.batch_first else 1) if dims == 2 else input

    def _initial_state(self, batch: Tensor, hx: Tensor | None, dims: int) -> Tensor:
        """The state beside a batch that was made of an input of `dims` dimensions; zeros by default."""
        if hx is None:
            return self._zero_state(batch, self._batch_size(batch, None))
        self._check_state_dims(hx, dims)
        return hx.unsqueeze(1) if dims == 2 else hx

    def extra_repr(self) -> str:
        s = f"{self.input_size}, {self.hidden_size}"
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        for name, value in usual.items():
            if getattr(self, name) != value:
                s += f", {name}={getattr(self, name)}"
        return s


def apply_permutation(tensor, permutation, dim=1):
    """`tensor.index_select(dim, permutation)`; deprecated."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` instead",
        category=FutureWarning,
        stacklevel=2,
    )
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

    def forward(self, input, hx: Tensor | None = None):
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._run_packed(readtorch.rnn_tanh if self.mode == "RNN_TANH" else readtorch.rnn_relu, input, hx)
        batch = self._as_batch(input)
        state = self._initial_state(batch, hx, input.dim())
        self.check_forward_args(batch, state, None)
        if self.mode == "RNN_TANH":
            output, last = readtorch.rnn_tanh(
                batch,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        else:
            output, last = readtorch.rnn_relu(
                batch,
                state,
                self._flat_weights,
                self.bias,
                self.num_layers,
                self.dropout,
                self.training,
                self.bidirectional,
                self.batch_first,
            )
        if input.dim() == 2:
            return output.squeeze(0 if self.batch_first else 1), last.squeeze(1)
        return output, last


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

    def get_expected_cell_size(self, input: Tensor, batch_sizes: Tensor | None) -> tuple[int, int, int]:
        """(layers · directions, batch, features of c)."""
        return self._state_size(self._batch_size(input, batch_sizes), self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: tuple[Tensor, Tensor], batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        h_size = self.get_expected_hidden_size(input, batch_sizes)
        c_size = self.get_expected_cell_size(input, batch_sizes)
        self.check_hidden_size(hidden[0], h_size, "Expected hidden[0] size {}, got {}")
        self.check_hidden_size(hidden[1], c_size, "Expected hidden[1] size {}, got {}")

    def permute_hidden(self, hx, permutation):
        if permutation is None:
            return hx
        return _apply_permutation(hx[0], permutation), _apply_permutation(hx[1], permutation)

    def _check_state_dims(self, hx: tuple[Tensor, Tensor], dims: int) -> None:
        if hx[0].dim() != dims or hx[1].dim() != dims:
            raise RuntimeError(
                f"For {'batched' if dims == 3 else 'unbatched'} {dims}-D input, hx and cx should "
                f"also be {dims}-D but got ({hx[0].dim()}-D, {hx[1].dim()}-D) tensors"
            )

    def _zero_state(self, input: Tensor, batch_size: int) -> tuple[Tensor, Tensor]:
        h = self._zeros(input, batch_size, self.proj_size if self.proj_size > 0 else self.hidden_size)
        return h, self._zeros(input, batch_size, self.hidden_size)

    def _initial_state(self, batch: Tensor, hx: tuple[Tensor, Tensor] | None, dims: int) -> tuple[Tensor, Tensor]:
        if hx is None:
            return self._zero_state(batch, self._batch_size(batch, None))
        self._check_state_dims(hx, dims)
        return (hx[0].unsqueeze(1), hx[1].unsqueeze(1)) if dims == 2 else hx

    def forward(self, input, hx: tuple[Tensor, Tensor] | None = None):
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._run_packed(readtorch.lstm, input, hx)
        batch = self._as_batch(input)
        state = self._initial_state(batch, hx, input.dim())
        self.check_forward_args(batch, state, None)
        output, h, c = readtorch.lstm(
            batch,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if input.dim() == 2:
            return output.squeeze(0 if self.batch_first else 1), (h.squeeze(1), c.squeeze(1))
        return output, (h, c)


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

    def forward(self, input, hx: Tensor | None = None):
        self._update_flat_weights()
        if isinstance(input, PackedSequence):
            return self._run_packed(readtorch.gru, input, hx)
        batch = self._as_batch(input)
        state = self._initial_state(batch, hx, input.dim())
        self.check_forward_args(batch, state, None)
        output, last = readtorch.gru(
            batch,
            state,
            self._flat_weights,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.batch_first,
        )
        if input.dim() == 2:
            return output.squeeze(0 if self.batch_first else 1), last.squeeze(1)
        return output, last


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

    def _as_batch(self, input: Tensor, name: str) -> Tensor:
        """Two dimensions: a single example is a batch of one."""
        _check_cell_dims(input, name, "input")
        return input if input.dim() == 2 else input.unsqueeze(0)

    def _initial_state(self, batch: Tensor, hx: Tensor | None, dims: int, name: str) -> Tensor:
        """The state beside a batch that was made of an input of `dims` dimensions; zeros by default."""
        if hx is None:
            return readtorch.zeros(batch.size(0), self.hidden_size, dtype=batch.dtype, device=batch.device)
        _check_cell_dims(hx, name, "hidden")
        return hx if dims == 2 else hx.unsqueeze(0)


def _check_cell_dims(tensor: Tensor, name: str, what: str) -> None:
    if tensor.dim() not in (1, 2):
        raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {tensor.dim()}D instead")


class RNNCell(RNNCellBase):
    """One step of RNN: input (N, input_size), hx (N, hidden_size) or None; returns the new hx. N may be
    missing."""

    __constants__ = ["input_size", "hidden_size", "bias", "nonlinearity"]

    def __init__(self, input_size, hidden_size, bias=True, nonlinearity="tanh", device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=1, device=device, dtype=dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batch = self._as_batch(input, "RNNCell")
        state = self._initial_state(batch, hx, input.dim(), "RNNCell")
        if self.nonlinearity == "tanh":
            state = readtorch.rnn_tanh_cell(batch, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        elif self.nonlinearity == "relu":
            state = readtorch.rnn_relu_cell(batch, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        else:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return state if input.dim() == 2 else state.squeeze(0)


class LSTMCell(RNNCellBase):
    """One step of LSTM: input (N, input_size), hx a pair (h, c) of (N, hidden_size) or None; returns the new
    pair."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=4, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        batch = self._as_batch(input, "LSTMCell")
        if hx is None:
            h = c = self._initial_state(batch, None, 2, "LSTMCell")
        else:
            _check_cell_dims(hx[0], "LSTMCell", "hx[0]")
            _check_cell_dims(hx[1], "LSTMCell", "hx[1]")
            h, c = hx if input.dim() == 2 else (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        h, c = readtorch.lstm_cell(batch, (h, c), self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return (h, c) if input.dim() == 2 else (h.squeeze(0), c.squeeze(0))


class GRUCell(RNNCellBase):
    """One step of GRU: input (N, input_size), hx (N, hidden_size) or None; returns the new hx. N may be
    missing."""

    def __init__(self, input_size, hidden_size, bias=True, device=None, dtype=None) -> None:
        super().__init__(input_size, hidden_size, bias, num_chunks=3, device=device, dtype=dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        batch = self._as_batch(input, "GRUCell")
        state = self._initial_state(batch, hx, input.dim(), "GRUCell")
        state = readtorch.gru_cell(batch, state, self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return state if input.dim() == 2 else state.squeeze(0)
