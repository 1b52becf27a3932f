"""What the other files of this folder leave out: warnings, resets, helpers, refusals of modules."""

import pytest

from tests.programs import same


def test_adaptive_softmax_is_reset():
    def program(T, show):
        net = T.nn.AdaptiveLogSoftmaxWithLoss(6, 10, [3, 6], head_bias=True)
        before = [p.clone() for p in net.parameters()]
        T.manual_seed(3)
        net.reset_parameters()
        show.numbers(*net.parameters())
        show([bool((p == q).any()) for p, q in zip(before, net.parameters())])

    same(program)


def test_prefixes_of_a_state_dict():
    def program(T, show):
        consume = T.nn.modules.utils.consume_prefix_in_state_dict_if_present
        net = T.nn.Sequential(T.nn.Linear(2, 2), T.nn.BatchNorm1d(2))
        state = T.nn.ModuleDict({"module": net}).state_dict()
        consume(state, "module.")
        show(list(state), list(state._metadata))
        consume(state, "module.")
        show(list(state))
        plain = {"ab": 1, "a.b": 2, "a": 3}
        consume(plain, "a")
        show(plain)

    same(program)


def test_module_backward_hooks_of_all():
    def program(T, show):
        modules, net = T.nn.modules.module, T.nn.Linear(2, 1)

        def hook(module, grad_input, grad_output):
            show(type(module).__name__, len(grad_input), len(grad_output))

        handle = modules.register_module_backward_hook(hook)
        show.error(lambda: modules.register_module_full_backward_hook(hook))
        net(T.ones(1, 2, requires_grad=True)).sum().backward()
        handle.remove()
        handle = modules.register_module_full_backward_hook(hook)
        show.error(lambda: modules.register_module_backward_hook(hook))
        net(T.ones(1, 2, requires_grad=True)).sum().backward()
        handle.remove()
        net(T.ones(1, 2)).sum().backward()

    same(program)


def test_renamed_and_deprecated():
    def program(T, show):
        x = T.arange(6.0).reshape(1, 2, 3)
        show.warnings(lambda: show(T.nn.modules.rnn.apply_permutation(x, T.tensor([1, 0]))))
        show(T.nn.modules.rnn.apply_permutation(x, T.tensor([2, 0, 1]), dim=2))
        show.warnings(lambda: show(T.nn.Softmax()(x[0])))
        show.warnings(lambda: show(T.nn.Softmin()(x[0])))
        show.warnings(lambda: show(T.nn.LogSoftmax()(x[0])))
        show.warnings(lambda: T.nn.Threshold(1, 2, True))
        show({"c": 1} | T.nn.ParameterDict({"a": T.nn.Parameter(T.ones(1))}))
        show.error(lambda: 3 | T.nn.ParameterDict())

    same(program)


@pytest.mark.parametrize("make", [
    lambda T: T.nn.BatchNorm1d(2)(T.ones(2)), lambda T: T.nn.BatchNorm2d(2)(T.ones(2, 2)), lambda T: T.nn.BatchNorm3d(2)(T.ones(2, 2, 2)),
    lambda T: T.nn.modules.batchnorm._BatchNorm(2)(T.ones(2, 2)), lambda T: T.nn.modules.instancenorm._InstanceNorm(2)(T.ones(2, 2)),
    lambda T: T.nn.InstanceNorm1d(2)(T.ones(2)), lambda T: T.nn.InstanceNorm2d(2)(T.ones(2, 2)), lambda T: T.nn.InstanceNorm3d(2)(T.ones(2, 2)),
    lambda T: T.nn.LazyBatchNorm2d()(T.ones(2, 2)), lambda T: T.nn.BatchNorm1d(3)(T.ones(2, 2)), lambda T: T.nn.GroupNorm(2, 3),
    lambda T: T.nn.LayerNorm((2,))(T.ones(3)), lambda T: T.nn.Linear(2, 2)(T.ones(3)), lambda T: T.nn.Bilinear(0, 1, 1),
    lambda T: T.nn.Conv2d(3, 4, 1, groups=2), lambda T: T.nn.Conv2d(2, 3, 1, groups=2), lambda T: T.nn.Conv2d(2, 2, 1, groups=0),
    lambda T: T.nn.Conv2d(2, 2, 1, padding="x"), lambda T: T.nn.Conv2d(2, 2, 1, stride=2, padding="same"),
    lambda T: T.nn.Conv2d(2, 2, 1, padding_mode="x"), lambda T: T.nn.ConvTranspose2d(2, 2, 1, padding_mode="reflect"),
    lambda T: T.nn.ConvTranspose2d(1, 1, 2)(T.ones(1, 1, 2, 2), output_size=(9, 9)),
    lambda T: T.nn.ConvTranspose2d(1, 1, 2)(T.ones(1, 1, 2, 2), output_size=(3,)),
    lambda T: T.nn.Dropout(1.5), lambda T: T.nn.Dropout(-0.1), lambda T: T.nn.Embedding(2, 2, padding_idx=2), lambda T: T.nn.Embedding(2, 2, padding_idx=-3),
    lambda T: T.nn.Embedding.from_pretrained(T.ones(2)), lambda T: T.nn.Embedding(2, 2, _weight=T.ones(2, 3)), lambda T: T.nn.EmbeddingBag(2, 2, padding_idx=2),
    lambda T: T.nn.EmbeddingBag(2, 2, padding_idx=-3), lambda T: T.nn.EmbeddingBag(2, 2, _weight=T.ones(3, 2)),
    lambda T: T.nn.RNN(2, 2, nonlinearity="x"), lambda T: T.nn.LSTM(2, 2, proj_size=2), lambda T: T.nn.LSTM(2, 2, proj_size=-1), lambda T: T.nn.GRU(2, 2, proj_size=1),
    lambda T: T.nn.RNN(2, 2, dropout=2), lambda T: T.nn.RNN(2, 2, dropout=True), lambda T: T.nn.RNN(2, 2.0), lambda T: T.nn.RNN(2, 0), lambda T: T.nn.RNN(2, 2, 0),
    lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 3)), lambda T: T.nn.RNN(2, 2)(T.ones(2)), lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2), T.ones(1, 2)),
    lambda T: T.nn.RNN(2, 2)(T.ones(1, 2), T.ones(1, 1, 2)), lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2), T.ones(1, 2, 2)),
    lambda T: T.nn.LSTM(2, 2)(T.ones(1, 1, 2), (T.ones(1, 2), T.ones(1, 2))), lambda T: T.nn.LSTM(2, 2)(T.ones(1, 2), (T.ones(1, 1, 2), T.ones(1, 1, 2))),
    lambda T: T.nn.LSTM(2, 2)(T.ones(1, 1, 2), (T.ones(1, 1, 2), T.ones(1, 2, 2))), lambda T: T.nn.GRU(2, 2)(T.ones(1, 1, 2), T.ones(2, 1, 2)),
    lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2, dtype=T.float64)), lambda T: T.nn.GRU(2, 2)(T.ones(1, 2), T.ones(1, 1, 2)),
    lambda T: T.nn.RNNCell(2, 2)(T.ones(1, 1, 2)), lambda T: T.nn.RNNCell(2, 2, nonlinearity="x")(T.ones(2)), lambda T: T.nn.RNNCell(2, 2)(T.ones(2), T.ones(1, 1, 2)),
    lambda T: T.nn.LSTMCell(2, 2)(T.ones(1, 1, 2)), lambda T: T.nn.LSTMCell(2, 2)(T.ones(2), (T.ones(1, 1, 2), T.ones(2))),
    lambda T: T.nn.LSTMCell(2, 2)(T.ones(2), (T.ones(2), T.ones(1, 1, 2))), lambda T: T.nn.GRUCell(2, 2)(T.ones(1, 1, 2)), lambda T: T.nn.GRUCell(2, 2)(T.ones(2), T.ones(1, 1, 2)),
    lambda T: T.nn.MultiheadAttention(3, 2), lambda T: T.nn.MultiheadAttention(0, 1), lambda T: T.nn.MultiheadAttention(2, 0), lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 1, 2)] * 3),
    lambda T: T.nn.MultiheadAttention(2, 1)(T.ones(1, 1, 3), *[T.ones(1, 1, 2)] * 2), lambda T: T.nn.MultiheadAttention(2, 1)(T.ones(1, 2), *[T.ones(1, 1, 2)] * 2),
    lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, attn_mask=T.ones(3, 3)), lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, key_padding_mask=T.ones(3, 3)),
    lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, is_causal=True, need_weights=False),
    lambda T: T.nn.Transformer(2, 1, 1, 1)(T.ones(1, 1, 2), T.ones(1, 2, 2)), lambda T: T.nn.Transformer(2, 1, 1, 1)(T.ones(1, 1, 3), T.ones(1, 1, 2)),
    lambda T: T.nn.TransformerEncoderLayer(2, 1, activation="x"), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [3, 2]), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [0, 2]),
    lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [4]), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(1, 2), T.tensor([4])),
    lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2, 2), T.tensor([1])), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2), T.tensor([1])),
    lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2), T.ones(1, 1).long()), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(1, 2), T.tensor([-1])),
    lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [1.5]), lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2, 2]),
    lambda T: T.nn.MultiMarginLoss(3), lambda T: T.nn.MultiMarginLoss(weight=T.ones(2, 2)), lambda T: T.nn.CosineEmbeddingLoss()(T.ones(1, 2), T.ones(1, 2), T.ones(1, 1)),
    lambda T: T.nn.TripletMarginLoss(margin=-1.0), lambda T: T.nn.TripletMarginWithDistanceLoss(margin=-1.0), lambda T: T.nn.KLDivLoss("x")(T.ones(1), T.ones(1)),
    lambda T: T.nn.L1Loss("x")(T.ones(1), T.ones(1)), lambda T: T.nn.HuberLoss(delta=-1.0)(T.ones(1), T.ones(1)), lambda T: T.nn.SmoothL1Loss(beta=-1.0)(T.ones(1), T.ones(1)),
    lambda T: T.nn.GaussianNLLLoss(reduction="x")(T.ones(2), T.ones(2), T.ones(2)), lambda T: T.nn.GaussianNLLLoss()(T.ones(2), T.ones(2), -T.ones(2)),
    lambda T: T.nn.GaussianNLLLoss()(T.ones(2, 3), T.ones(2, 3), T.ones(2, 2)), lambda T: T.nn.BCELoss()(T.ones(2), T.ones(3)), lambda T: T.nn.BCELoss()(T.ones(2) * 2, T.ones(2)),
    lambda T: T.nn.BCEWithLogitsLoss()(T.ones(2), T.ones(3)), lambda T: T.nn.FractionalMaxPool2d(2), lambda T: T.nn.FractionalMaxPool2d(2, 1, 0.5), lambda T: T.nn.FractionalMaxPool2d(2, output_ratio=1.5),
    lambda T: T.nn.FractionalMaxPool3d(2), lambda T: T.nn.FractionalMaxPool3d(2, 1, 0.5), lambda T: T.nn.FractionalMaxPool3d(2, output_ratio=0.0),
    lambda T: T.nn.MaxUnpool2d(2)(T.ones(1, 1, 1), T.ones(1, 1, 1).long(), (9, 9)), lambda T: T.nn.MaxUnpool2d(2)(T.ones(1, 1, 1), T.ones(1, 1, 1).long(), (9,)),
    lambda T: T.nn.Softmax2d()(T.ones(2)), lambda T: T.nn.Threshold(None, 1)(T.ones(1)), lambda T: T.nn.Hardtanh(1, 0), lambda T: T.nn.GLU()(T.ones(3)), lambda T: T.nn.RReLU(2, 1)(T.ones(1)),
    lambda T: T.nn.PixelShuffle(2)(T.ones(1, 1, 1, 1)), lambda T: T.nn.PixelUnshuffle(2)(T.ones(1, 1, 1, 1)), lambda T: T.nn.ChannelShuffle(2)(T.ones(1, 3, 1, 1)),
    lambda T: T.nn.Upsample(2, scale_factor=2)(T.ones(1, 1, 1)), lambda T: T.nn.Unflatten(0, 2), lambda T: T.nn.Unflatten("a", 2), lambda T: T.nn.Unflatten(0, (1.5,)), lambda T: T.nn.Unflatten(0, "x"),
    lambda T: T.nn.Unflatten("a", ((1, 2),)), lambda T: T.nn.Unflatten("a", (("b", 2, 3),)), lambda T: T.nn.Unflatten("a", (2,)),
    lambda T: T.nn.Sequential(3), lambda T: T.nn.ModuleList([3]), lambda T: T.nn.ModuleList().extend(3), lambda T: T.nn.ModuleDict(3), lambda T: T.nn.ModuleDict({"a": 3}), lambda T: T.nn.ModuleDict([1]),
    lambda T: T.nn.ModuleDict([(1, 2, 3)]), lambda T: T.nn.ModuleDict().update(3), lambda T: T.nn.ParameterList().extend(3), lambda T: T.nn.ParameterList(3), lambda T: T.nn.ParameterDict(3), lambda T: T.nn.ParameterDict([1]),
    lambda T: T.nn.ParameterDict([(1, 2, 3)]), lambda T: T.nn.ModuleList()[0], lambda T: T.nn.Sequential().insert(1, T.nn.ReLU()), lambda T: T.nn.Sequential() + 3, lambda T: T.nn.Sequential() * 1.5,
    lambda T: T.nn.Sequential(T.nn.ReLU()) * 0, lambda T: T.nn.Sequential().append(3), lambda T: T.nn.Sequential().extend([3]), lambda T: T.nn.Sequential().insert(0, 3), lambda T: T.nn.Sequential().__iadd__(3),
    lambda T: T.nn.Container(), lambda T: T.nn.SyncBatchNorm(2)(T.ones(2)), lambda T: T.nn.CircularPad1d(1)(T.ones(1)), lambda T: T.nn.ReflectionPad2d(2)(T.ones(1, 2, 2)), lambda T: T.nn.ZeroPad2d(1, 2),
    lambda T: T.nn.LocalResponseNorm(2)(T.ones(2)), lambda T: T.nn.CrossEntropyLoss(label_smoothing=2.0)(T.ones(1, 2), T.tensor([1])), lambda T: T.nn.CTCLoss(reduction="x")(T.ones(1, 1, 2), T.ones(1, 1).long(), (1,), (1,)),
    lambda T: T.nn.Identity()(), lambda T: T.nn.Flatten()(T.ones(2), 3), lambda T: T.nn.Fold(2, 2)(T.ones(1, 3, 1)), lambda T: T.nn.Unfold(3)(T.ones(1, 1, 2, 2)), lambda T: T.nn.PReLU(2)(T.ones(2, 3)),
    lambda T: T.nn.ConvTranspose1d(1, 1, 2)(T.ones(1, 1, 2), output_size=(1,)), lambda T: T.nn.LazyLinear(2).weight.sum(), lambda T: T.nn.LazyLinear(2).to(T.float16)(T.ones(1, 2)), lambda T: T.nn.PairwiseDistance()(T.ones(2), T.ones(3)),
])
def test_what_modules_refuse(make):
    def program(T, show):
        show.error(lambda: make(T))

    same(program)
