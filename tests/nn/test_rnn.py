"""RNN, LSTM, GRU, their cells and the tools for packed sequences, against the reference."""

import copy
import pickle

import pytest
import torch

import readtorch as rt
from tests.reference import assert_close, both, to_readtorch

LAYERS = ["RNN", "LSTM", "GRU"]
SETTINGS = [
    dict(),
    dict(num_layers=2, bidirectional=True, dropout=0.4),
    dict(bias=False, batch_first=True),
    dict(num_layers=3, dropout=0.5, dtype="float64"),
]


def pair(name, *args, seed=0, **settings):
    """The reference's module and ours, made from the same seed."""
    modules = []
    for T in (torch, rt):
        T.manual_seed(seed)
        dtype = {"dtype": getattr(T, settings["dtype"])} if "dtype" in settings else {}
        modules.append(getattr(T.nn, name)(*args, **{**settings, **dtype}))
    return modules


def reset_seeds():
    torch.manual_seed(1)
    rt.manual_seed(1)


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", LAYERS)
def test_layer(name, settings):
    theirs, ours = pair(name, 3, 4, **settings)
    assert repr(ours) == repr(theirs)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    for p, q in zip(ours.parameters(), theirs.parameters()):
        assert_close(p, q, exact=True)
    assert_close(ours.all_weights, theirs.all_weights, exact=True)
    dtype = theirs.weight_ih_l0.dtype
    for shape in ((2, 5, 3), (5, 3)):
        x = torch.randn(shape, dtype=dtype)
        for train in (True, False):
            theirs.train(train), ours.train(train)
            reset_seeds()
            expected = theirs(x)
            assert_close(ours(to_readtorch(x)), expected)
        assert_close(ours(to_readtorch(x), to_readtorch(expected[1])), theirs(x, expected[1]))


@pytest.mark.parametrize("name", LAYERS)
def test_packed(name):
    theirs, ours = pair(name, 3, 4, 2, bidirectional=True)
    x = torch.randn(5, 3, 3)
    for enforce_sorted, lengths in ((True, [5, 3, 3]), (False, [2, 5, 4])):
        results = []
        for T, module, x_ in ((torch, theirs, x), (rt, ours, to_readtorch(x))):
            packed = T.nn.utils.rnn.pack_padded_sequence(x_, lengths, enforce_sorted=enforce_sorted)
            output, hidden = module(packed)
            assert isinstance(output, T.nn.utils.rnn.PackedSequence)
            again = module(packed, hidden)[1]
            results.append(
                (tuple(packed), tuple(output), hidden, again, T.nn.utils.rnn.pad_packed_sequence(output, True, -1.0, 7))
            )
        assert_close(results[1], results[0])


def node_names(tensor):
    """The names of the nodes behind a tensor, from the last one to the first."""
    seen, todo = [], [tensor.grad_fn]
    for node in todo:
        if node is not None and node not in seen:
            seen.append(node)
            todo += [edge[0] for edge in node.next_functions]
    return [node.name().split("::")[-1] for node in seen]


@pytest.mark.parametrize("steps, sequences", [(7, 2), (1, 3), (4, 1)])
@pytest.mark.parametrize(
    "settings",
    [*SETTINGS, dict(bidirectional=True), dict(proj_size=2), dict(dtype="float16"), dict(dtype="bfloat16")],
    ids=str,
)
def test_packed_lstm_of_equal_lengths(settings, steps, sequences):
    """It is a padded batch, and goes the same way: values, the graph behind outputs and states, gradients."""
    if settings.get("dtype") == "bfloat16" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("PyTorch goes step by step here")
    theirs, ours = pair("LSTM", 3, 4, **{**settings, "dropout": 0})
    x = torch.randn(steps, sequences, 3, dtype=theirs.weight_ih_l0.dtype, requires_grad=True)
    results = []
    for T, module, x_ in ((torch, theirs, x), (rt, ours, to_readtorch(x.detach()).requires_grad_())):
        packed = T.nn.utils.rnn.pack_padded_sequence(x_, [steps] * sequences)
        output, (h, c) = module(packed)
        (output.data.square().sum() + h.sum() + c.sum()).backward()
        gradients = [p.grad for p in (x_, *module.parameters())]
        results.append((output.data.detach(), h.detach(), c.detach(), gradients))
        results.append([node_names(t) for t in (output.data, h, c)])
    few = {"rtol": 3e-2, "atol": 3e-2} if x.dtype.itemsize == 2 else {}
    assert_close(results[2], results[0], **few)
    assert results[3] == results[1]


@pytest.mark.parametrize("rows, sizes", [(15, [2] * 7), (13, [2] * 7), (12, [3, 2, 2, 2, 3]), (0, [0, 0])])
def test_batch_sizes_that_do_not_fit(rows, sizes):
    outcomes = []
    for T in (torch, rt):
        T.manual_seed(0)
        layer, h = T.nn.LSTM(3, 4), T.zeros(1, sizes[0], 4)
        try:
            arguments = T.zeros(rows, 3), T.tensor(sizes), (h, h), list(layer.parameters())
            outcomes.append(tuple(T.lstm(*arguments, True, 1, 0.0, False, False)[0].shape))
        except RuntimeError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def test_gradients_of_all_parameters():
    theirs, ours = pair("LSTM", 3, 4, 2, proj_size=2)
    x = torch.randn(5, 2, 3)
    for module, x_ in ((theirs, x), (ours, to_readtorch(x))):
        output, (h, c) = module(x_)
        (output.sum() + (h * h).sum() + c.sum()).backward()
    for p, q in zip(ours.parameters(), theirs.parameters()):
        assert_close(p.grad, q.grad)


@pytest.mark.parametrize("name", LAYERS)
def test_copies_keep_their_weights(name):
    _, ours = pair(name, 3, 4)
    x = rt.randn(5, 2, 3)
    for made in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert made(x)[0].equal(ours(x)[0])
        with rt.no_grad():
            made.weight_ih_l0.zero_()
        assert made._flat_weights[0] is made.weight_ih_l0
        assert (made(x)[0] != ours(x)[0]).any()
    assert ours.double()._flat_weights[0].dtype is rt.float64
    ours.weight_ih_l0 = rt.nn.Parameter(rt.zeros_like(ours.weight_ih_l0))
    assert ours._flat_weights[0] is ours.weight_ih_l0


@pytest.mark.parametrize(
    "settings",
    [
        dict(dropout=-0.1),
        dict(dropout=True),
        dict(dropout=0.5),
        dict(bias=1),
        dict(batch_first=None),
        dict(num_layers=0),
        dict(hidden_size=2.0),
        dict(hidden_size=0),
        dict(input_size=0),
        dict(proj_size=-1),
        dict(proj_size=4),
        dict(nonlinearity="tan"),
    ],
)
@pytest.mark.filterwarnings("ignore:dropout option")
@pytest.mark.parametrize("name", LAYERS)
def test_settings_that_do_not_fit(name, settings):
    both(lambda T: repr(getattr(T.nn, name)(**{"input_size": 3, "hidden_size": 4, **settings})) and None)


def test_dropout_without_a_layer_above_warns():
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last"):
        rt.nn.GRU(3, 4, dropout=0.5)


@pytest.mark.parametrize("name", LAYERS)
def test_inputs_that_do_not_fit(name):
    def call(x, hx=None):
        def run(T, x, hx):
            T.manual_seed(0)
            getattr(T.nn, name)(3, 4)(x, hx)

        both(run, x, hx)

    def h(*shape):
        return (torch.zeros(shape), torch.zeros(shape)) if name == "LSTM" else torch.zeros(shape)

    call(torch.zeros(3))
    call(torch.zeros(5, 2, 2))
    call(torch.zeros(5, 2, 3).double())
    call(torch.zeros(5, 2, 3), h(2, 4))
    call(torch.zeros(5, 3), h(1, 2, 4))
    call(torch.zeros(5, 2, 3), h(1, 3, 4))
    call(torch.zeros(5, 2, 3), h(1, 2, 5))


@pytest.mark.parametrize(
    "name, settings",
    [("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"}), ("LSTMCell", {}), ("GRUCell", {"bias": False})],
)
def test_cell(name, settings):
    theirs, ours = pair(name, 3, 4, **settings)
    assert repr(ours) == repr(theirs)
    assert_close(dict(ours.state_dict()), dict(theirs.state_dict()), exact=True)
    for shape in ((2, 3), (3,)):
        x = torch.randn(shape)
        first = theirs(x)
        assert_close(ours(to_readtorch(x)), first)
        assert_close(ours(to_readtorch(x), to_readtorch(first)), theirs(x, first))
    both(lambda T: getattr(T.nn, name)(3, 4)(T.zeros(1, 1, 3)))


def test_cell_states_that_do_not_fit():
    both(lambda T: T.nn.GRUCell(3, 4)(T.zeros(2, 3), T.zeros(1, 1, 4)))
    both(lambda T: T.nn.LSTMCell(3, 4)(T.zeros(2, 3), (T.zeros(2, 4), T.zeros(1, 1, 4))))


def test_tools_for_sequences():
    sequences = [torch.arange(n * 2.0).reshape(n, 2) for n in (2, 4, 1)]

    def tour(T, sequences):
        rnn = T.nn.utils.rnn
        packed = rnn.pack_sequence(sequences, enforce_sorted=False)
        back = rnn.unpack_sequence(packed)
        padded = rnn.pad_sequence(sequences, padding_side="left")
        inverse = rnn.invert_permutation(T.tensor([2, 0, 1]))
        return [
            tuple(packed),
            list(back),
            padded,
            tuple(packed.double()),
            inverse,
            rnn.unpad_sequence(rnn.pad_sequence(sequences, True), T.tensor([2, 4, 1]), True),
        ]

    both(tour, sequences, versions=False)
    both(lambda T, s: T.nn.utils.rnn.pack_sequence(s) and None, sequences)
    both(lambda T: T.nn.utils.rnn.pad_sequence(3))

    def too_short(T, s):
        T.nn.utils.rnn.pad_packed_sequence(T.nn.utils.rnn.pack_sequence(s, False), total_length=2)

    both(too_short, sequences)
    packed = [T.nn.utils.rnn.pack_sequence(s, False) for T, s in ((torch, sequences), (rt, to_readtorch(sequences)))]
    assert repr(packed[1]) == repr(packed[0])
    assert packed[1].to(rt.float32) is packed[1] and packed[1].cpu() is packed[1]


def test_an_assignment_that_is_refused_is_in_the_list_of_weights():
    """The list is written before the module refuses; what goes through `_apply` makes it anew."""
    x = torch.randn(5, 2, 3)
    for T, x in ((torch, x), (rt, to_readtorch(x))):
        layer = T.nn.LSTM(3, 4)
        before = layer(x)[0]
        with pytest.raises(TypeError, match="cannot assign"):
            layer.weight_hh_l0 = T.zeros(16, 4)
        assert layer.weight_hh_l0.any() and not layer(x)[0].equal(before)
        assert layer.float()(x)[0].equal(before)
