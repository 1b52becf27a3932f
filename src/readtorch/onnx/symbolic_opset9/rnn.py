"""Recurrent networks: one ONNX node a layer.

Note [Gates in another order]
PyTorch keeps the weights of an LSTM's gates as input, forget, cell, output; ONNX wants input, output, forget,
cell. Of a GRU PyTorch has reset, update, new; ONNX wants update, reset, hidden. So the weights are cut and
put together anew: with nodes, which constant folding computes, so that the file holds the rearranged weights.

In PyTorch: `_generic_rnn` in `torch/onnx/_internal/torchscript_exporter/symbolic_opset9.py`.
"""

from readtorch.onnx.registration import onnx_symbolic
from readtorch.onnx.symbolic_helper import (
    is_none,
    parse_arg,
    rank,
    reshape,
    sizes,
    slice_,
    squeeze,
    unpack_list,
    unsqueeze,
    unsupported,
)

GATES = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}  # see Note [Gates in another order]


def recurrent(g, kind, input, states, weights, settings):
    """Outputs and last states of all layers. settings: what PyTorch's operators take after the weights."""
    has_biases, layers, dropout, train, bidirectional, batch_first = settings
    if train and dropout:
        raise unsupported("recurrent networks with dropout in training mode", input)
    directions = 2 if bidirectional else 1
    per_cell = 4 if has_biases else 2
    if len(weights) != layers * directions * per_cell:
        raise unsupported("LSTM with projections", input)
    cells = [weights[i : i + per_cell] for i in range(0, len(weights), per_cell)]
    x = g.op("Transpose", input, perm_i=[1, 0, 2]) if batch_first else input
    last = []
    for layer in range(layers):
        own = cells[layer * directions : (layer + 1) * directions]
        starts = [_of_layer(g, state, layer, layers, directions) for state in states]
        x, *ends = _layer(g, kind, x, starts, own)
        last.append(ends)
    x = g.op("Transpose", x, perm_i=[1, 0, 2]) if batch_first else x
    return x, *[ends[0] if layers == 1 else g.op("Concat", *ends, axis_i=0) for ends in zip(*last)]


def _of_layer(g, state, layer, layers, directions):
    """The rows of a first state that belong to one layer."""
    return state if layers == 1 else slice_(g, state, [0], [layer * directions], [(layer + 1) * directions])


def _layer(g, kind, x, starts, cells):
    """One node; its output has a dimension for the directions, which PyTorch has side by side in the
    features.
    """
    hidden = sizes(cells[0][1], "recurrent network")[-1]
    name, _, activation = kind.partition("_")  # "RNN_TANH"
    activations = [activation.capitalize()] * len(cells) if activation else None
    joined = [_joined(g, parts) for parts in zip(*[_for_onnx(g, name, hidden, cell) for cell in cells])]
    w, r, b = [*joined, None][:3]
    y, *ends = g.op(
        name,
        x,
        w,
        r,
        b,
        None,
        *starts,
        hidden_size_i=hidden,
        direction_s="bidirectional" if len(cells) == 2 else None,
        linear_before_reset_i=1 if name == "GRU" else None,
        activations_s=activations,
        outputs=1 + len(starts),
    )
    if len(cells) == 1:
        return squeeze(g, y, [1]), *ends
    return reshape(g, g.op("Transpose", y, perm_i=[0, 2, 1, 3]), [0, 0, -1]), *ends


def _joined(g, parts):
    return parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis_i=0)


def _for_onnx(g, name, hidden, cell):
    """The weights of one direction: of the input, of the state, and the two biases concatenated."""
    turned = [_reordered(g, value, hidden, GATES[name]) for value in cell]
    biases = [g.op("Concat", *turned[2:], axis_i=0)] if len(cell) == 4 else []
    return [unsqueeze(g, value, [0]) for value in (*turned[:2], *biases)]


def _reordered(g, value, hidden, order):
    if order == [0]:
        return value
    gates = [slice_(g, value, [0], [i * hidden], [(i + 1) * hidden]) for i in order]
    return g.op("Concat", *gates, axis_i=0)


def _arguments(values):
    kinds = ("b", "i", "f", "b", "b", "b")
    return [parse_arg(value, kind) for value, kind in zip(values, kinds)]


@onnx_symbolic("aten::lstm")
def lstm(g, *arguments):
    if len(arguments) != 9 or is_none(arguments[0]) or rank(arguments[0]) != 3:
        raise unsupported("LSTM of packed sequences", arguments[0])
    input, states, weights, *settings = arguments
    return recurrent(g, "LSTM", input, unpack_list(states), unpack_list(weights), _arguments(settings))


def _with_one_state(kind):
    def symbolic(g, *arguments):
        input, state, weights, *settings = arguments
        if rank(input) != 3 or len(settings) != 6:
            raise unsupported(f"{kind} of packed sequences", input)
        return recurrent(g, kind, input, [state], unpack_list(weights), _arguments(settings))

    return symbolic


onnx_symbolic("aten::gru")(_with_one_state("GRU"))
onnx_symbolic("aten::rnn_tanh")(_with_one_state("RNN_TANH"))
onnx_symbolic("aten::rnn_relu")(_with_one_state("RNN_RELU"))
