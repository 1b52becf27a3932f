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

        for first, second in (
            (modules.register_module_backward_hook, modules.register_module_full_backward_hook),
            (modules.register_module_full_backward_hook, modules.register_module_backward_hook),
        ):
            modules._global_is_full_backward_hook = None
            handle = first(hook)
            show.error(lambda: second(hook))
            net(T.ones(1, 2, requires_grad=True)).sum().backward()
            handle.remove()
        modules._global_is_full_backward_hook = None
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


@pytest.mark.parametrize(
    "make",
    [
        lambda T: T.nn.BatchNorm1d(2)(T.ones(2)),
        lambda T: T.nn.BatchNorm2d(2)(T.ones(2, 2)),
        lambda T: T.nn.BatchNorm3d(2)(T.ones(2, 2, 2)),
        lambda T: T.nn.modules.batchnorm._BatchNorm(2)(T.ones(2, 2)),
        lambda T: T.nn.modules.instancenorm._InstanceNorm(2)(T.ones(2, 2)),
        lambda T: T.nn.InstanceNorm1d(2)(T.ones(2)),
        lambda T: T.nn.InstanceNorm2d(2)(T.ones(2, 2)),
        lambda T: T.nn.InstanceNorm3d(2)(T.ones(2, 2)),
        lambda T: T.nn.LazyBatchNorm2d()(T.ones(2, 2)),
        lambda T: T.nn.BatchNorm1d(3)(T.ones(2, 2)),
        lambda T: T.nn.GroupNorm(2, 3),
        lambda T: T.nn.LayerNorm((2,))(T.ones(3)),
        lambda T: T.nn.Linear(2, 2)(T.ones(3)),
        lambda T: T.nn.Bilinear(0, 1, 1),
        lambda T: T.nn.Conv2d(3, 4, 1, groups=2),
        lambda T: T.nn.Conv2d(2, 3, 1, groups=2),
        lambda T: T.nn.Conv2d(2, 2, 1, groups=0),
        lambda T: T.nn.Conv2d(2, 2, 1, padding="x"),
        lambda T: T.nn.Conv2d(2, 2, 1, stride=2, padding="same"),
        lambda T: T.nn.ConvTranspose2d(2, 2, 1, padding_mode="reflect"),
        lambda T: T.nn.ConvTranspose2d(1, 1, 2)(T.ones(1, 1, 2, 2), output_size=(9, 9)),
        lambda T: T.nn.ConvTranspose2d(1, 1, 2)(T.ones(1, 1, 2, 2), output_size=(3,)),
        lambda T: T.nn.Dropout(1.5),
        lambda T: T.nn.Dropout(-0.1),
        lambda T: T.nn.Embedding(2, 2, padding_idx=2),
        lambda T: T.nn.Embedding(2, 2, padding_idx=-3),
        lambda T: T.nn.Embedding.from_pretrained(T.ones(2)),
        lambda T: T.nn.Embedding(2, 2, _weight=T.ones(2, 3)),
        lambda T: T.nn.EmbeddingBag(2, 2, padding_idx=2),
        lambda T: T.nn.EmbeddingBag(2, 2, padding_idx=-3),
        lambda T: T.nn.EmbeddingBag(2, 2, _weight=T.ones(3, 2)),
        lambda T: T.nn.RNN(2, 2, nonlinearity="x"),
        lambda T: T.nn.LSTM(2, 2, proj_size=2),
        lambda T: T.nn.LSTM(2, 2, proj_size=-1),
        lambda T: T.nn.GRU(2, 2, proj_size=1),
        lambda T: T.nn.RNN(2, 2, dropout=2),
        lambda T: T.nn.RNN(2, 2, dropout=True),
        lambda T: T.nn.RNN(2, 2.0),
        lambda T: T.nn.RNN(2, 0),
        lambda T: T.nn.RNN(2, 2, 0),
        lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 3)),
        lambda T: T.nn.RNN(2, 2)(T.ones(2)),
        lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2), T.ones(1, 2)),
        lambda T: T.nn.RNN(2, 2)(T.ones(1, 2), T.ones(1, 1, 2)),
        lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2), T.ones(1, 2, 2)),
        lambda T: T.nn.LSTM(2, 2)(T.ones(1, 1, 2), (T.ones(1, 2), T.ones(1, 2))),
        lambda T: T.nn.LSTM(2, 2)(T.ones(1, 2), (T.ones(1, 1, 2), T.ones(1, 1, 2))),
        lambda T: T.nn.LSTM(2, 2)(T.ones(1, 1, 2), (T.ones(1, 1, 2), T.ones(1, 2, 2))),
        lambda T: T.nn.GRU(2, 2)(T.ones(1, 1, 2), T.ones(2, 1, 2)),
        lambda T: T.nn.RNN(2, 2)(T.ones(1, 1, 2, dtype=T.float64)),
        lambda T: T.nn.GRU(2, 2)(T.ones(1, 2), T.ones(1, 1, 2)),
        lambda T: T.nn.RNNCell(2, 2)(T.ones(1, 1, 2)),
        lambda T: T.nn.RNNCell(2, 2, nonlinearity="x")(T.ones(2)),
        lambda T: T.nn.RNNCell(2, 2)(T.ones(2), T.ones(1, 1, 2)),
        lambda T: T.nn.LSTMCell(2, 2)(T.ones(1, 1, 2)),
        lambda T: T.nn.LSTMCell(2, 2)(T.ones(2), (T.ones(1, 1, 2), T.ones(2))),
        lambda T: T.nn.LSTMCell(2, 2)(T.ones(2), (T.ones(2), T.ones(1, 1, 2))),
        lambda T: T.nn.GRUCell(2, 2)(T.ones(1, 1, 2)),
        lambda T: T.nn.GRUCell(2, 2)(T.ones(2), T.ones(1, 1, 2)),
        lambda T: T.nn.MultiheadAttention(3, 2),
        lambda T: T.nn.MultiheadAttention(0, 1),
        lambda T: T.nn.MultiheadAttention(2, 0),
        lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 1, 2)] * 3),
        lambda T: T.nn.MultiheadAttention(2, 1)(T.ones(1, 1, 3), *[T.ones(1, 1, 2)] * 2),
        lambda T: T.nn.MultiheadAttention(2, 1)(T.ones(1, 2), *[T.ones(1, 1, 2)] * 2),
        lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, attn_mask=T.ones(3, 3)),
        lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, key_padding_mask=T.ones(3, 3)),
        lambda T: T.nn.MultiheadAttention(2, 1)(*[T.ones(1, 1, 2)] * 3, is_causal=True, need_weights=False),
        lambda T: T.nn.Transformer(2, 1, 1, 1)(T.ones(1, 1, 2), T.ones(1, 2, 2)),
        lambda T: T.nn.Transformer(2, 1, 1, 1)(T.ones(1, 1, 3), T.ones(1, 1, 2)),
        lambda T: T.nn.TransformerEncoderLayer(2, 1, activation="x"),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [3, 2]),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [0, 2]),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [4]),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(1, 2), T.tensor([4])),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2, 2), T.tensor([1])),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2), T.tensor([1])),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(2), T.ones(1, 1).long()),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2])(T.ones(1, 2), T.tensor([-1])),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [1.5]),
        lambda T: T.nn.AdaptiveLogSoftmaxWithLoss(2, 4, [2, 2]),
        lambda T: T.nn.MultiMarginLoss(3),
        lambda T: T.nn.MultiMarginLoss(weight=T.ones(2, 2)),
        lambda T: T.nn.CosineEmbeddingLoss()(T.ones(1, 2), T.ones(1, 2), T.ones(1, 1)),
        lambda T: T.nn.TripletMarginLoss(margin=-1.0),
        lambda T: T.nn.TripletMarginWithDistanceLoss(margin=-1.0),
        lambda T: T.nn.KLDivLoss("x")(T.ones(1), T.ones(1)),
        lambda T: T.nn.L1Loss("x")(T.ones(1), T.ones(1)),
        lambda T: T.nn.HuberLoss(delta=-1.0)(T.ones(1), T.ones(1)),
        lambda T: T.nn.SmoothL1Loss(beta=-1.0)(T.ones(1), T.ones(1)),
        lambda T: T.nn.GaussianNLLLoss(reduction="x")(T.ones(2), T.ones(2), T.ones(2)),
        lambda T: T.nn.GaussianNLLLoss()(T.ones(2), T.ones(2), -T.ones(2)),
        lambda T: T.nn.GaussianNLLLoss()(T.ones(2, 3), T.ones(2, 3), T.ones(2, 2)),
        lambda T: T.nn.BCELoss()(T.ones(2), T.ones(3)),
        lambda T: T.nn.BCELoss()(T.ones(2) * 2, T.ones(2)),
        lambda T: T.nn.BCEWithLogitsLoss()(T.ones(2), T.ones(3)),
        lambda T: T.nn.FractionalMaxPool2d(2),
        lambda T: T.nn.FractionalMaxPool2d(2, 1, 0.5),
        lambda T: T.nn.FractionalMaxPool2d(2, output_ratio=1.5),
        lambda T: T.nn.FractionalMaxPool3d(2),
        lambda T: T.nn.FractionalMaxPool3d(2, 1, 0.5),
        lambda T: T.nn.FractionalMaxPool3d(2, output_ratio=0.0),
        lambda T: T.nn.MaxUnpool2d(2)(T.ones(1, 1, 1), T.ones(1, 1, 1).long(), (9, 9)),
        lambda T: T.nn.MaxUnpool2d(2)(T.ones(1, 1, 1), T.ones(1, 1, 1).long(), (9,)),
        lambda T: T.nn.Softmax2d()(T.ones(2)),
        lambda T: T.nn.Threshold(None, 1)(T.ones(1)),
        lambda T: T.nn.Hardtanh(1, 0),
        lambda T: T.nn.GLU()(T.ones(3)),
        lambda T: T.nn.RReLU(2, 1)(T.ones(1)),
        lambda T: T.nn.PixelShuffle(2)(T.ones(1, 1, 1, 1)),
        lambda T: T.nn.PixelUnshuffle(2)(T.ones(1, 1, 1, 1)),
        lambda T: T.nn.ChannelShuffle(2)(T.ones(1, 3, 1, 1)),
        lambda T: T.nn.Upsample(2, scale_factor=2)(T.ones(1, 1, 1)),
        lambda T: T.nn.Unflatten(0, 2),
        lambda T: T.nn.Unflatten("a", 2),
        lambda T: T.nn.Unflatten(0, (1.5,)),
        lambda T: T.nn.Unflatten(0, "x"),
        lambda T: T.nn.Unflatten("a", ((1, 2),)),
        lambda T: T.nn.Unflatten("a", (("b", 2, 3),)),
        lambda T: T.nn.Unflatten("a", (2,)),
        lambda T: T.nn.Sequential(3),
        lambda T: T.nn.ModuleList([3]),
        lambda T: T.nn.ModuleList().extend(3),
        lambda T: T.nn.ModuleDict(3),
        lambda T: T.nn.ModuleDict({"a": 3}),
        lambda T: T.nn.ModuleDict([1]),
        lambda T: T.nn.ModuleDict([(1, 2, 3)]),
        lambda T: T.nn.ModuleDict().update(3),
        lambda T: T.nn.ParameterList().extend(3),
        lambda T: T.nn.ParameterList(3),
        lambda T: T.nn.ParameterDict(3),
        lambda T: T.nn.ParameterDict([1]),
        lambda T: T.nn.ParameterDict([(1, 2, 3)]),
        lambda T: T.nn.ModuleList()[0],
        lambda T: T.nn.Sequential().insert(1, T.nn.ReLU()),
        lambda T: T.nn.Sequential() + 3,
        lambda T: T.nn.Sequential() * 1.5,
        lambda T: T.nn.Sequential(T.nn.ReLU()) * 0,
        lambda T: T.nn.Sequential().append(3),
        lambda T: T.nn.Sequential().extend([3]),
        lambda T: T.nn.Sequential().insert(0, 3),
        lambda T: T.nn.Sequential().__iadd__(3),
        lambda T: T.nn.Container(),
        lambda T: T.nn.SyncBatchNorm(2)(T.ones(2)),
        lambda T: T.nn.CircularPad1d(1)(T.ones(1)),
        lambda T: T.nn.ReflectionPad2d(2)(T.ones(1, 2, 2)),
        lambda T: T.nn.ZeroPad2d(1, 2),
        lambda T: T.nn.LocalResponseNorm(2)(T.ones(2)),
        lambda T: T.nn.CrossEntropyLoss(label_smoothing=2.0)(T.ones(1, 2), T.tensor([1])),
        lambda T: T.nn.CTCLoss(reduction="x")(T.ones(1, 1, 2), T.ones(1, 1).long(), (1,), (1,)),
        lambda T: T.nn.Identity()(),
        lambda T: T.nn.Flatten()(T.ones(2), 3),
        lambda T: T.nn.Fold(2, 2)(T.ones(1, 3, 1)),
        lambda T: T.nn.Unfold(3)(T.ones(1, 1, 2, 2)),
        lambda T: T.nn.PReLU(2)(T.ones(2, 3)),
        lambda T: T.nn.ConvTranspose1d(1, 1, 2)(T.ones(1, 1, 2), output_size=(1,)),
        lambda T: T.nn.LazyLinear(2).weight.sum(),
        lambda T: T.nn.LazyLinear(2).to(T.float16)(T.ones(1, 2)),
        lambda T: T.nn.PairwiseDistance()(T.ones(2), T.ones(3)),
    ],
)
def test_what_modules_refuse(make):
    def program(T, show):
        show.error(lambda: make(T))

    same(program)


def test_renamed_arguments_and_assertions():
    def program(T, show):
        show.warnings(lambda: show(T.nn.Hardtanh(min_value=-2.0, max_value=3.0)))
        show.error(lambda: T.nn.Hardtanh(1.0, 1.0))
        show.error(lambda: T.nn.modules.batchnorm._NormBase._check_input_dim(T.nn.BatchNorm1d(1), T.ones(1)))
        show.error(lambda: T.nn.ConvTranspose2d(1, 1, 2, padding="same"))
        show.error(lambda: T.nn.EmbeddingBag.from_pretrained(T.ones(2)))
        show.error(lambda: setattr(T.nn.Linear(1, 1), "weight", T.ones(1, 1)))
        show.error(lambda: T.nn.Linear(1, 1).register_parameter("a", T.nn.Parameter(T.ones(1)) * 1))
        show.error(lambda: T.nn.modules.rnn.RNNBase("x", 1, 1))
        lazy = T.nn.LazyBatchNorm1d()
        lazy.reset_parameters()
        show(lazy, T.nn.LazyConv2d(2, 1), T.nn.LazyLinear(3), T.nn.Bilinear(1, 2, 3, bias=False).bias)
        show.error(lambda: T.nn.LazyConv2d(2, 1)(T.ones(2)))
        show(
            T.nn.RNN(2, 3, 1, "relu").nonlinearity,
            T.nn.RNN(2, 3, 2, "tanh", False).bias,
            T.nn.Linear(1, 1).state_dict({}, "a.", True)["a.weight"].requires_grad,
        )

    same(program)


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
@pytest.mark.parametrize("dims", [1, 2, 3])
def test_padding_modes_of_convolutions(dims, mode):
    def program(T, show):
        net = getattr(T.nn, f"Conv{dims}d")(
            2, 3, 3, stride=2, padding=tuple(range(1, dims + 1))[::-1] if dims < 3 else 1, padding_mode=mode
        )
        x = T.arange(2.0 * 4**dims).reshape(2, *[4] * dims).cos().requires_grad_()
        y = net(x)
        y.square().sum().backward()
        show.numbers(y, x.grad, net.weight.grad, net.bias.grad)
        show(net)

    same(program, rtol=1e-4)


def test_masks_of_attention():
    def program(T, show):
        net = T.nn.MultiheadAttention(4, 2, batch_first=True).eval()
        x = T.arange(24.0).reshape(2, 3, 4).sin()
        padding = T.tensor([[False, False, True], [False, True, False]])
        causal = T.ones(3, 3, dtype=T.bool).triu(1)
        each = T.stack([causal, causal.t(), causal, ~T.eye(3, dtype=T.bool)])
        for settings in (
            {},
            {"attn_mask": causal},
            {"attn_mask": each},
            {"key_padding_mask": padding},
            {"attn_mask": causal, "key_padding_mask": padding},
            {"attn_mask": each, "key_padding_mask": padding},
            {"attn_mask": causal, "is_causal": True},
            {"attn_mask": causal.float()},
            {"average_attn_weights": False},
        ):
            for weights in (True, False):
                for mode in (T.no_grad, T.enable_grad):
                    with mode():
                        out, found = net(x, x, x, need_weights=weights, **settings)
                    show.numbers(out.nan_to_num(), None if found is None else found.nan_to_num())
        show(
            net.merge_masks(each, padding, x)[1],
            net.merge_masks(causal, padding, x)[0].shape,
            net.merge_masks(None, None, x),
        )

    same(program, rtol=1e-4)


def test_transformers_of_other_parts():
    def program(T, show):
        encoder, decoder = T.nn.Linear(4, 4), T.nn.Linear(4, 4)
        decoder.forward = lambda tgt, memory, **settings: show(sorted(settings)) or tgt + memory
        encoder.forward = lambda src, **settings: show(sorted(settings)) or src * 2
        net = T.nn.Transformer(4, 2, custom_encoder=encoder, custom_decoder=decoder)
        show(net.encoder is encoder, net.decoder is decoder, net(T.ones(2, 1, 4), T.ones(2, 1, 4)))
        show(T.nn.Transformer.generate_square_subsequent_mask(3))
        for settings in (
            {"nhead": 1},
            {"nhead": 2, "activation": "gelu"},
            {"nhead": 2, "norm_first": True},
            {"nhead": 2, "bias": False},
        ):
            for batch_first in (True, False):
                layer = T.nn.TransformerEncoderLayer(
                    4, dim_feedforward=6, dropout=0.0, batch_first=batch_first, **settings
                ).eval()
                x = T.arange(24.0).reshape(2, 3, 4).sin()
                for mode in (T.no_grad, T.enable_grad):
                    with mode():
                        show.numbers(
                            layer(x),
                            layer(
                                x,
                                src_key_padding_mask=T.zeros(
                                    x.shape[:2] if batch_first else x.shape[1::-1], dtype=T.bool
                                ),
                            ),
                        )
                show.warnings(lambda: T.nn.TransformerEncoder(layer, 1))

    same(program, rtol=1e-4)


def test_recurrent_weights_that_were_replaced():
    def program(T, show):
        net = T.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1)
        state = net.__getstate__()
        show(list(state["_all_weights"][0]), len(net.all_weights), [tuple(w.shape) for w in net._flat_weights])
        net.weight_ih_l0 = T.nn.Parameter(T.ones(12, 2))
        x = T.ones(3, 1, 2)
        show.numbers(*net(x)[1])
        net.weight_hh_l1_reverse = T.nn.Parameter(T.ones(12, 1))
        show.numbers(*net(x)[1])
        other = T.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=1)
        other.__setstate__(state)
        show.numbers(*other(x)[1])
        net.reset_parameters()
        net.flatten_parameters()
        show.numbers(*net(x)[1])
        net._parameters["weight_ih_l0"] = T.nn.Parameter(T.full((12, 2), 0.5))
        show.numbers(*net(x)[1])

    same(program)


def test_hooks_of_all_modules_with_keywords():
    def program(T, show):
        modules = T.nn.modules.module
        handles = [
            modules.register_module_forward_pre_hook(lambda m, args: show("before", type(m).__name__, args)),
            modules.register_module_forward_hook(lambda m, args, out: show("after", args, out)),
            modules.register_module_forward_hook(
                lambda m, args, kwargs, out: show("with keywords", args, kwargs), with_kwargs=True
            ),
            modules.register_module_forward_hook(lambda m, args, out: show("always", out), always_call=True),
        ]

        class Net(T.nn.Module):
            def forward(self, x, *, wrong=False):
                if wrong:
                    raise ValueError("wrong")
                return x + 1

        show(Net()(1, wrong=False))
        show.error(lambda: Net()(1, wrong=True))
        for handle in handles:
            handle.remove()
        show(Net()(1))

    same(program)


def test_transformer_layers_that_go_the_slow_way():
    """Whatever keeps the one operator from serving, the numbers are the same; the encoder says why it keeps padding."""

    def program(T, show):
        x = T.rand(2, 3, 4)
        settings = [{}, {"bias": False}, {"norm_first": True}, {"activation": "gelu"}, {"activation": T.tanh}]
        settings += [{"batch_first": False}, {"nhead": 1}, {"layer_norm_eps": 0.1}]
        for given in settings:
            T.manual_seed(1)
            layer = T.nn.TransformerEncoderLayer(
                4, given.pop("nhead", 2), 5, 0.0, batch_first=given.pop("batch_first", True), **given
            ).eval()
            show.warnings(lambda: show.numbers(T.nn.TransformerEncoder(layer, 1)(x)))
            with T.no_grad():
                show.numbers(layer(x), layer(x[0]))
                layer.linear1.register_forward_hook(lambda *a: show("hook"))
                show.numbers(layer(x))
            layer = T.nn.TransformerEncoderLayer(4, 2, 5, 0.0, batch_first=True).eval()
            layer.norm2.eps = 0.5
            layer.linear2.bias = None
            show.warnings(lambda: show.numbers(T.nn.TransformerEncoder(layer, 1)(x)))
            with T.no_grad():
                show.numbers(layer(x))
            layer.self_attn = T.nn.MultiheadAttention(4, 2, kdim=4, vdim=4, batch_first=True)
            layer.self_attn._qkv_same_embed_dim = False
            for name in "qkv":
                weight = T.nn.Parameter(T.rand(4, 4))
                setattr(layer.self_attn, f"{name}_proj_weight", weight)
            show.warnings(lambda: T.nn.TransformerEncoder(layer, 1))
            with T.no_grad():
                show.numbers(layer(x))

    same(program)


def test_masks_that_are_or_are_not_causal():
    def program(T, show):
        layer = T.nn.TransformerDecoderLayer(4, 2, 5, 0.0).eval()
        x, memory = T.rand(3, 4), T.rand(2, 4)
        causal = T.nn.Transformer.generate_square_subsequent_mask(3)
        for mask in (None, causal, causal.t(), T.zeros(3, 3), T.rand(3, 3) > 2):
            for hint in (None, False):
                show.error(lambda: T.nn.TransformerDecoder(layer, 1)(x, memory, tgt_mask=mask, tgt_is_causal=hint))
                show.numbers(T.nn.TransformerDecoder(layer, 1)(x, memory, tgt_mask=mask, tgt_is_causal=hint))

    same(program)


def test_adaptive_predictions():
    """Where all classes are frequent, where none is, and where some are."""

    def program(T, show):
        net = T.nn.AdaptiveLogSoftmaxWithLoss(3, 10, [2, 5])
        for shift in ([9.0, 0, 0, 0], [0, 0, 9.0, 9.0], [0.0, 0, 0, 0]):
            with T.no_grad():
                net.head.weight.mul_(1 if shift[0] == shift[2] else 0)
                net.head.weight.add_(T.tensor(shift).unsqueeze(1))
            for x in (T.ones(4, 3), T.rand(4, 3) - 0.5):
                show(net.predict(x).tolist())
                show.numbers(net.log_prob(x))

    same(program)


def test_old_states_of_recurrent_modules():
    def program(T, show):
        for kind in ("RNN", "LSTM", "GRU"):
            net = getattr(T.nn, kind)(2, 3, 2, bidirectional=True)
            x = T.rand(4, 1, 2)
            expected = net(x)[0]
            state = net.__getstate__()
            old = dict(state)
            del old["proj_size"]
            old["all_weights"] = [[net._parameters[name] for name in names] for names in net._all_weights]
            for given in (state, old):
                other = getattr(T.nn, kind).__new__(getattr(T.nn, kind))
                show.error(lambda: other.__setstate__(given))
                show.numbers(other(x)[0] - expected)
                show(other._all_weights, other.proj_size, len(other._flat_weights))

    same(program)


def test_recurrent_modules_without_hidden_numbers():
    def program(T, show):
        for kind in ("RNNCell", "LSTMCell", "GRUCell"):
            show.error(lambda: list(getattr(T.nn, kind)(2, 0).parameters())[0].shape)
        for kind in ("RNN", "LSTM", "GRU"):
            net = getattr(T.nn, kind)(2, 3)
            for shape in ((2,), (2, 2, 2, 2), (2, 3)):
                show.error(lambda: net(T.ones(shape)))
            show.error(lambda: net(T.ones(2, 1, 2, dtype=T.float64)))
            show.error(lambda: net.check_input(T.ones(2, 2), None))
            show.error(lambda: net.check_input(T.ones(2, 2, 2), T.tensor([1])))

    same(program)


def test_what_is_said_of_meta_modules():
    def program(T, show):
        net = T.nn.Sequential(T.nn.Linear(2, 1, device="meta"), T.nn.BatchNorm1d(1, device="meta"))
        show.error(lambda: net.to("cpu"))
        full = T.nn.Sequential(T.nn.Linear(2, 1), T.nn.BatchNorm1d(1)).state_dict()
        show.warnings(lambda: show(net.load_state_dict(full)))
        old = {name: t for name, t in full.items() if not name.endswith("tracked")}
        show.warnings(lambda: show.error(lambda: net.load_state_dict(old)))
        show.warnings(lambda: show(net.load_state_dict(full, assign=True), net[0].weight.device))

    same(program)


def test_backward_hooks_of_several_nodes():
    def program(T, show):
        class Two(T.nn.Module):
            def forward(self, x):
                return x * 2, x.exp()

        class Nested(T.nn.Module):
            def forward(self, x):
                return [x * 2] if isinstance(x, T.Tensor) else x[0] * 2

        class One(T.nn.Module):
            def forward(self, x, y=1):
                return (x * 2).exp() * y

        def seen(module, grad_input, grad_output):
            show([None if g is None else g.tolist() for g in (*grad_input, *grad_output)])

        x = T.ones(2, requires_grad=True)
        for module, given in ((Two(), x), (Nested(), x), (Nested(), [x]), (One(), x)):
            handle = module.register_backward_hook(seen)

            def run():
                result = module(given)
                parts = result if isinstance(result, (list, tuple)) else [result]
                sum(p.sum() for p in parts).backward()

            show.warnings(run)
            handle.remove()

    same(program)
