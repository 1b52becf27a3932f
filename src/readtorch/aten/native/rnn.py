"""Recurrent layers: a cell is applied to one input after the other, and a layer to the outputs of the layer below.

A *layer* runs its cell over a sequence: forwards, backwards, or both; over a padded batch or a packed one. The
operators at the end stack layers. Whole layers as one operator are in `mkldnn/rnn.py`.

A *cell* takes what the input contributes to the gates, x W_ihᵀ + b_ih: a layer computes that for all steps at once. The
hidden state of an LSTM is the pair (h, c), that of the others h.

In PyTorch: `aten/src/ATen/native/RNN.cpp`. Explained in the chapter "Layers: convolution, embedding, recurrence".
"""

from collections import namedtuple

from readtorch.aten.functions import at
from readtorch.aten.native_function import native_function, packets, python_binding
from readtorch.aten.python_arg_parser import make_parser
from readtorch.c10.dispatch_key import CPU
from readtorch.c10.local_dispatch_key_set import any_autocast_enabled
from readtorch.c10.python_dispatcher_tls import python_dispatcher_enabled
from readtorch.c10.scalar_type import bfloat16
from readtorch.c10.tensor_impl import TensorImpl, wrap

from .linear import linear
from .mkldnn.rnn import LSTM_MODE, _rnn_layer, fits, mkldnn_rnn_layer, serves
from .tensor_iterator import F4
from .tensor_shape.split import unsafe_chunk

# The weights of one layer in one direction. Biases may be None; w_hr projects the h of an LSTM, or is None.
CellParams = namedtuple("CellParams", "w_ih w_hh b_ih b_hh w_hr")


# in PyTorch: these write in place where they can. Here an operator's result is a new array in any case.


def rnn_tanh_step(input_gates, hidden, params):
    return at.tanh(linear.call(hidden, params.w_hh, params.b_hh) + input_gates)


def rnn_relu_step(input_gates, hidden, params):
    return at.relu(linear.call(hidden, params.w_hh, params.b_hh) + input_gates)


def lstm_step(input_gates, hidden, params):
    """c' = f c + i g and h' = o tanh(c'): the forget, input and output gates are f, i and o."""
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
        raise RuntimeError(f"Input batch size {input.size(0)} doesn't match hidden{label} batch size {hidden.size(0)}")
    if hidden.size(1) != hidden_size:
        raise RuntimeError(f"hidden{label} has inconsistent hidden_size: got {hidden.size(1)}, expected {hidden_size}")


def check_weights(w_ih, w_hh, gate_count):
    """Each weight has `gate_count` blocks of rows, one for each gate."""
    rows = gate_count * w_hh.size(1)
    for name, weight in (("weight_ih", w_ih), ("weight_hh", w_hh)):
        if weight.size(0) != rows:
            raise RuntimeError(
                f"{name} first dim must be {gate_count} * hidden_size = {rows}, but got {weight.size(0)}"
            )


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
            biases = (b_ih, b_hh) if biases else (w_ih, w_hh)  # which are not read
            _, h, c, _ = mkldnn_rnn_layer.kernels[CPU](
                wrap(x[None]),
                w_ih,
                w_hh,
                *biases,
                *hx,
                False,
                (),
                LSTM_MODE,
                h.shape[1],
                1,
                b_ih is not None,
                False,
                False,
                False,
            )
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


# ----------------------------------------------------------------------------------------------------- layers


def gather_params(params, has_biases, has_projections=False):
    """The flat list of a module's weights as CellParams, one for each layer and direction. Raises RuntimeError."""
    width = 2 + 2 * has_biases + has_projections
    if len(params) % width:
        raise RuntimeError("got an incorrect number of RNN parameters")
    gathered = []
    for i in range(0, len(params), width):
        w_ih, w_hh, *others = params[i : i + width]
        biases = others[:2] if has_biases else (None, None)
        gathered.append(CellParams(w_ih, w_hh, *biases, others[-1] if has_projections else None))
    return gathered


# ------------------------------------------------------------------------------------- layers: padded batches


def shown(hidden):
    """The part of a hidden state that is output."""
    return hidden[0] if type(hidden) is tuple else hidden


def on_parts(function, *hiddens):
    """`function` on the states, or on the h of all and on the c of all."""
    if type(hiddens[0]) is tuple:
        return tuple([function(*parts) for parts in zip(*hiddens)])
    return function(*hiddens)


def run_steps(step, inputs, hidden, params):
    """The output of every step, and the last hidden state."""
    outputs = []
    for input_gates in inputs:
        hidden = step(input_gates, hidden, params)
        outputs.append(shown(hidden))
    if not outputs:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    return outputs, hidden


def full_layer(step, input, hidden, params):
    """The inputs' part of the gates is one product for all steps."""
    input_gates = linear.call(input, params.w_ih, params.b_ih)
    outputs, hidden = run_steps(step, input_gates.unbind(0), hidden, params)
    return at.stack(outputs, 0), hidden


def full_reversed_layer(step, input, hidden, params):
    """From the last step to the first; the outputs in the order of the inputs."""
    input_gates = linear.call(input, params.w_ih, params.b_ih)
    outputs, hidden = run_steps(step, input_gates.unbind(0)[::-1], hidden, params)
    return at.stack(outputs[::-1], 0), hidden


# ------------------------------------------------------------------------------------- layers: packed batches


class PackedSequence(namedtuple("PackedSequence", "data batch_sizes")):
    """A packed tensor and its batch sizes, a list of ints. See `packed_sequence.py`."""


def packed_layer(step, input, hidden, params):
    """Sequences end on the way: their hidden states leave the batch, and join the others at the end."""
    input_gates = linear.call(input.data, params.w_ih, params.b_ih)
    outputs, ended, start, before = [], [], 0, input.batch_sizes[0]
    for size in input.batch_sizes:
        if size < before:
            ended.append(on_parts(lambda h: h.narrow(0, size, before - size), hidden))
            hidden = on_parts(lambda h: h.narrow(0, 0, size), hidden)
        hidden = step(input_gates.narrow(0, start, size), hidden, params)
        outputs.append(shown(hidden))
        start, before = start + size, size
    hidden = on_parts(lambda *h: at.cat(h, 0), hidden, *ended[::-1])
    return PackedSequence(at.cat(outputs, 0), input.batch_sizes), hidden


def packed_reversed_layer(step, input, hidden, params):
    """Backwards the longest sequences begin alone; the others join with their first hidden states."""
    input_gates = linear.call(input.data, params.w_ih, params.b_ih)
    waiting, before = hidden, input.batch_sizes[-1]
    outputs, end = [], input.data.size(0)
    hidden = on_parts(lambda h: h.narrow(0, 0, before), waiting)
    for size in input.batch_sizes[::-1]:
        if size > before:
            joining = on_parts(lambda h: h.narrow(0, before, size - before), waiting)
            hidden = on_parts(lambda *h: at.cat(h, 0), hidden, joining)
        hidden = step(input_gates.narrow(0, end - size, size), hidden, params)
        outputs.append(shown(hidden))
        end, before = end - size, size
    return PackedSequence(at.cat(outputs[::-1], 0), input.batch_sizes), hidden


# ----------------------------------------------------------------------------------------------------- stacks


def on_data(function, *inputs):
    """`function` on tensors, or on the data of packed sequences."""
    if type(inputs[0]) is PackedSequence:
        return PackedSequence(function(*[i.data for i in inputs]), inputs[0].batch_sizes)
    return function(*inputs)


def both_directions(step, input, hiddens, params, layer, reversed_layer):
    """The outputs of both directions beside each other, and the two last hidden states."""
    forth, hidden_forth = layer(step, input, hiddens[0], params[0])
    back, hidden_back = reversed_layer(step, input, hiddens[1], params[1])
    return on_data(lambda *outputs: at.cat(outputs, -1), forth, back), [hidden_forth, hidden_back]


PADDED, PACKED = (full_layer, full_reversed_layer), (packed_layer, packed_reversed_layer)


def stack_of_layers(step, input, hiddens, params, num_layers, dropout, train, bidirectional, layers):
    """Each layer on the (dropped out) outputs of the one below: its outputs, and all last hidden states."""
    layer, reversed_layer = layers
    check_stack(hiddens, params, num_layers, bidirectional)
    last_hiddens = []
    for number in range(num_layers):
        if bidirectional:
            both = slice(2 * number, 2 * number + 2)
            input, hidden = both_directions(step, input, hiddens[both], params[both], layer, reversed_layer)
            last_hiddens += hidden
        else:
            input, hidden = layer(step, input, hiddens[number], params[number])
            last_hiddens.append(hidden)
        if dropout and train and number < num_layers - 1:
            input = on_data(lambda data: at.dropout(data, dropout, True), input)
    return input, on_parts(lambda *h: at.stack(h, 0), *last_hiddens)


def check_stack(hiddens, params, num_layers, bidirectional):
    """Raises RuntimeError unless there is one hidden state and one set of weights for each layer and direction."""
    directions = 2 if bidirectional else 1
    if len(hiddens) % directions or len(params) % directions:
        raise RuntimeError("Odd number of params or hiddens given to a bidirectional RNN")
    for given, what in ((hiddens, "hidden states"), (params, "weights")):
        if len(given) != num_layers * directions:
            raise RuntimeError(f"Expected more {what} in stacked_rnn")


# ------------------------------------------------------------------------------------------------- operators

_ARGUMENT_TYPES = (list, bool, int, float, bool, bool, bool)


def fused_layers(mode):
    """Both directions of a layer as one operator, or step by step where that does not apply."""

    def layer(step, input, hidden, params):
        return one_operator(mode, input, hidden, params, False) or full_layer(step, input, hidden, params)

    def reversed_layer(step, input, hidden, params):
        return one_operator(mode, input, hidden, params, True) or full_reversed_layer(step, input, hidden, params)

    return layer, reversed_layer


def one_operator(mode, input, hidden, params, reverse):
    """(outputs, last hidden state), or None."""
    if any_autocast_enabled() or python_dispatcher_enabled() or not serves(mode, input, hidden, params):
        return None
    output, hidden, _ = _rnn_layer.call(input, hidden, *params[:4], mode, reverse)
    if output.requires_grad:  # in PyTorch: each step has a node, and a stack joins them
        output = at.stack(output.unbind(0), 0)
    return output, hidden


def declare_binding(name, padded, state_type):
    """The Python binding: what a module passes needs no conversion. The rest goes to the argument parser."""
    parse = None

    def binding(*args, **kwargs):
        nonlocal parse
        if not kwargs and tuple(map(type, args[2:])) == _ARGUMENT_TYPES:
            if isinstance(args[1], state_type) and isinstance(args[0], TensorImpl):
                return padded.call(*args)
        parse = parse or make_parser(packets["torch", name], False)
        return parse(args, kwargs)

    binding.__name__ = binding.__qualname__ = name
    python_binding(name, "function")(binding)


_REST = "Tensor[] params, bool has_biases, int num_layers, float dropout, bool train, bool bidirectional"


def declare(name, step):
    """rnn_tanh, rnn_relu and gru: on a packed and on a padded batch, with one tensor of hidden states."""
    data = native_function(f"{name}.data(Tensor data, Tensor batch_sizes, Tensor hx, {_REST}) -> (Tensor, Tensor)")
    layers = fused_layers(name)
    padded = native_function(f"{name}.input(Tensor input, Tensor hx, {_REST}, bool batch_first) -> (Tensor, Tensor)")

    @data.compose
    def packed_composite(data, batch_sizes, hx, params, has_biases, *settings):
        input = PackedSequence(data, batch_sizes.tolist())
        params = gather_params(params, has_biases)
        output, hy = stack_of_layers(step, input, hx.unbind(0), params, *settings, PACKED)
        return output.data, hy

    @padded.compose
    def padded_composite(input, hx, params, has_biases, *settings):
        *settings, batch_first = settings
        input = input.transpose(0, 1) if batch_first else input
        params = gather_params(params, has_biases)
        output, hy = stack_of_layers(step, input, hx.unbind(0), params, *settings, layers)
        return (output.transpose_(0, 1) if batch_first else output), hy

    declare_binding(name, padded, TensorImpl)
    return data, padded


rnn_tanh_data, rnn_tanh = declare("rnn_tanh", rnn_tanh_step)
rnn_relu_data, rnn_relu = declare("rnn_relu", rnn_relu_step)
gru_data, gru = declare("gru", gru_step)

lstm_data = native_function(
    f"lstm.data(Tensor data, Tensor batch_sizes, Tensor[] hx, {_REST}) -> (Tensor, Tensor, Tensor)"
)
lstm = native_function(f"lstm.input(Tensor input, Tensor[] hx, {_REST}, bool batch_first) -> (Tensor, Tensor, Tensor)")
declare_binding("lstm", lstm, tuple)


def lstm_stack(input, hx, params, has_biases, *settings, layers=PADDED):
    hiddens = list(zip(hx[0].unbind(0), hx[1].unbind(0)))
    params = gather_params(params, has_biases, has_projections(hx))
    output, (hy, cy) = stack_of_layers(lstm_step, input, hiddens, params, *settings, layers)
    return output, hy, cy


def has_projections(hx):
    """A projection makes h smaller than c."""
    return hx[0].size(2) != hx[1].size(2)


def check_two_states(hx):
    if len(hx) != 2:
        raise RuntimeError("lstm expects two hidden states")


@lstm_data.compose
def lstm_data_composite(data, batch_sizes, hx, params, has_biases, *settings):
    """Sequences of equal lengths are a padded batch without padding: layer by layer, where `lstm.input` would."""
    check_two_states(hx)
    sizes = batch_sizes.tolist()
    if has_layer_operator(data) and not has_projections(hx) and sizes[0] > 0 and sizes.count(sizes[0]) == len(sizes):
        input = data.reshape((len(sizes), sizes[0], data.size(-1)))
        output, hy, cy = lstm_stack_of_operators(input, hx, params, has_biases, *settings)
        return output.reshape((data.size(0), output.size(-1))), hy, cy
    output, hy, cy = lstm_stack(PackedSequence(data, sizes), hx, params, has_biases, *settings, layers=PACKED)
    return output.data, hy, cy


@lstm.compose
def lstm_composite(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """Layer by layer for the common types, else step by step."""
    check_two_states(hx)
    stack = lstm_stack if has_projections(hx) or not has_layer_operator(input) else lstm_stack_of_operators
    input = input.transpose(0, 1) if batch_first else input
    output, hy, cy = stack(input, hx, params, has_biases, num_layers, dropout, train, bidirectional)
    return (output.transpose(0, 1) if batch_first else output), hy, cy


def has_layer_operator(input):
    # in PyTorch: bfloat16 only on processors that multiply it
    on_host = input._keys & CPU and not python_dispatcher_enabled()  # in PyTorch: on a GPU, cuDNN has one
    return on_host and input._array.size and (input._array.dtype is F4 or input.dtype is bfloat16)


def lstm_stack_of_operators(input, hx, params, has_biases, num_layers, dropout, train, bidirectional):
    """As `stack_of_layers`, with one operator for a layer and direction."""
    width = 4 if has_biases else 2
    if len(params) % width:
        raise RuntimeError(f"MatrixRef: ArrayRef size {len(params)} not divisible by stride {width}")
    input, hx, cx = input.contiguous(), hx[0].contiguous(), hx[1].contiguous()
    directions = 2 if bidirectional else 1
    last_states = []
    for layer in range(num_layers):
        outputs = []
        for direction in range(directions):
            number = layer * directions + direction
            w_ih, w_hh, *biases = params[number * width : (number + 1) * width]
            biases = biases or [at.zeros_like(w_ih), at.zeros_like(w_hh)]  # never read
            output, h, c, _ = mkldnn_rnn_layer.call(
                input,
                w_ih,
                w_hh,
                *biases,
                hx[number],
                cx[number],
                direction == 1,
                (),
                LSTM_MODE,
                cx.size(2),
                num_layers,
                has_biases,
                bidirectional,
                False,
                train,
            )
            outputs.append(output)
            last_states.append((h, c))
        input = outputs[0] if directions == 1 else at.cat(outputs, -1)
        if dropout and train and layer < num_layers - 1:
            input = at.dropout(input, dropout, True)
    return input, *on_parts(lambda *states: at.stack(states, 0), *last_states)
