"""MultiheadAttention and the transformer next to the reference: parameters, masks, both paths, warnings,
errors.
"""

import itertools
import warnings

import pytest

from tests.programs import same


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"add_bias_kv": True},
        {"add_zero_attn": True},
        {"bias": False},
        {"kdim": 6, "vdim": 3},
        {"batch_first": True},
        {"dropout": 0.3},
    ],
)
def test_attention_to_another_sequence(settings):
    def program(T, show):
        layer = T.nn.MultiheadAttention(8, 2, **settings)
        show(layer, list(layer.state_dict()), sorted(layer.__dict__))
        show.numbers(*layer.parameters())
        query = T.randn(4, 2, 8, requires_grad=True)
        key = T.randn(5, 2, settings.get("kdim", 8))
        value = T.randn(5, 2, 3) if "vdim" in settings else key
        inputs = [x.transpose(0, 1) for x in (query, key, value)] if layer.batch_first else (query, key, value)
        later, padding = T.ones(4, 5).triu(1) > 0, T.tensor([[False, False, False, True, True], [False] * 5])
        for call in (
            {},
            {"need_weights": False},
            {"average_attn_weights": False},
            {"attn_mask": later},
            {"attn_mask": later, "need_weights": False, "is_causal": True},
            {"key_padding_mask": padding, "need_weights": False},
            {"key_padding_mask": padding.float(), "attn_mask": T.randn(4, 4, 5)},
        ):
            for training in (True, False):
                output, weights = layer.train(training)(*inputs, **call)
                show(output.grad_fn.name(), output.stride(), None if weights is None else weights.grad_fn.name())
                show.numbers(output, weights)
                wanted = [query, *layer.parameters()]
                show.numbers(*T.autograd.grad((output * output).sum(), wanted, allow_unused=True))

    same(program, rtol=2e-5)


def test_attention_to_itself_with_and_without_a_graph():
    def program(T, show):
        x, later = T.randn(2, 4, 8), T.ones(4, 4).triu(1) > 0
        padding = T.tensor([[False, False, False, True], [False] * 4])
        for batch_first in (True, False):
            layer = T.nn.MultiheadAttention(8, 2, batch_first=batch_first).eval()
            hidden = padding if batch_first else T.tensor([[False, True]] * 4)
            for mask, padded, need, average in itertools.product((None, later), (None, hidden), *((True, False),) * 2):
                call = {"need_weights": need, "average_attn_weights": average, "key_padding_mask": padded}
                call["attn_mask"] = mask if batch_first else None
                with T.no_grad():
                    output, weights = layer(x, x, x, **call)
                show(output.stride(), weights is None or weights.stride())
                show.numbers(output, weights, layer(x, x, x, **call)[0])
        unbatched = T.randn(4, 8)
        show.numbers(*layer(unbatched, unbatched, unbatched, average_attn_weights=False, attn_mask=T.randn(2, 4, 4)))
        show.numbers(*layer(unbatched, unbatched, unbatched, key_padding_mask=padding[0]))

    same(program, rtol=2e-5)


def test_attention_refuses():
    def program(T, show):
        nn, x, u = T.nn, T.randn(2, 4, 8), T.randn(4, 8)
        layer = nn.MultiheadAttention(8, 2)
        functional, weight = nn.functional.multi_head_attention_forward, T.randn(24, 8)

        def call(q, k, v, bias_k=None, bias_v=None, zero=False, **kwargs):
            w = None if kwargs.get("use_separate_proj_weight") else weight
            return functional(q, k, v, 8, 2, w, None, bias_k, bias_v, zero, 0.0, T.eye(8), None, **kwargs)

        one = T.randn(1, 1, 8)
        for wrong in (
            lambda: nn.MultiheadAttention(0, 2),
            lambda: nn.MultiheadAttention(7, 2),
            lambda: layer(u, u, T.randn(1, 4, 8)),
            lambda: layer(T.randn(2, 2, 2, 8), u, u),
            lambda: layer(x, u, u),
            lambda: layer(u, u, u, key_padding_mask=T.zeros(4, 4)),
            lambda: layer(x, x, x, key_padding_mask=T.zeros(4)),
            lambda: layer(u, u, u, attn_mask=T.zeros(4)),
            lambda: layer(u, u, u, attn_mask=T.zeros(1, 4, 4)),
            lambda: layer(u, u, u, attn_mask=T.zeros(3, 4)),
            lambda: layer(x, x, x, attn_mask=T.zeros(3, 4, 4)),
            lambda: layer(x, x, x, key_padding_mask=T.zeros(3, 4)),
            lambda: layer(x, x, x, key_padding_mask=T.zeros(4, 3)),
            lambda: layer(x, x, x, attn_mask=T.ones(2, 2).long()),
            lambda: layer(u, u, u, is_causal=True),
            lambda: layer(x[..., :7], x, x),
            lambda: layer(x, x, x[:1]),
            lambda: call(x, x, x, bias_k=one),
            lambda: call(x, x, x, bias_v=one),
            lambda: call(x, x, x, one, one, static_k=T.randn(8, 3, 4)),
            lambda: call(x, x, x, static_k=T.randn(7, 3, 4)),
            lambda: call(x, x, x, static_v=T.randn(8, 3, 5)),
            lambda: call(x, x, x, use_separate_proj_weight=True),
            lambda: call(
                x,
                x,
                x,
                use_separate_proj_weight=True,
                q_proj_weight=T.eye(8),
                k_proj_weight=T.eye(7),
                v_proj_weight=T.eye(8),
            ),
        ):
            show.error(wrong)
        show.numbers(*call(x, x, x, zero=True, static_k=T.randn(8, 3, 4), static_v=T.randn(8, 3, 4)))
        show.warnings(lambda: layer(x, x, x, key_padding_mask=T.zeros(4, 2), attn_mask=T.zeros(2, 2) > 0))

    same(program, rtol=2e-5)


@pytest.mark.parametrize("batch_first, norm_first", list(itertools.product((False, True), repeat=2)))
@pytest.mark.parametrize("activation", ["relu", "gelu", "tanh"])
def test_encoder_and_decoder(batch_first, norm_first, activation):
    def program(T, show):
        nn = T.nn
        settings = (8, 2, 16, 0.1, T.tanh if activation == "tanh" else activation)
        layer = nn.TransformerEncoderLayer(*settings, batch_first=batch_first, norm_first=norm_first)
        encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8))
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*settings, batch_first=batch_first, norm_first=norm_first), 2
        )
        show(list(encoder.state_dict()), list(decoder.state_dict()), encoder.use_nested_tensor)
        if activation != "tanh":
            show(encoder, decoder)
        n, s = (3, 4) if batch_first else (4, 3)
        source, target = T.randn(3, 4, 8), T.randn(3, 4, 8) if batch_first else T.randn(5, 4, 8)
        padding = T.zeros(n, s) > 0
        padding[0, -1] = padding[1, -2] = padding[1, -1] = True
        for mask in (None, nn.Transformer.generate_square_subsequent_mask(s), T.ones(s, s).triu(1) > 0):
            for hidden in (None, padding):
                call = {"mask": mask, "src_key_padding_mask": hidden}
                encoded = encoder.train()(source, **call)
                show(encoded.grad_fn.name(), encoded.stride())
                show.numbers(encoded, *T.autograd.grad((encoded**2).sum(), list(encoder.parameters())))
                show.numbers(decoder.train()(target, encoded.detach(), memory_key_padding_mask=hidden))
                show.numbers(encoder.eval()(source, **call), decoder.eval()(target, encoded.detach()))
                with T.no_grad():  # the fast path
                    show.numbers(encoder(source, **call), encoder.layers[0](source, mask, hidden))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program, rtol=2e-5)


@pytest.mark.parametrize("settings", [{}, {"batch_first": True}, {"norm_first": True, "bias": False}])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_transformer(settings):
    def program(T, show):
        model = T.nn.Transformer(8, 2, 1, 1, 16, **settings)
        show(model, list(model.state_dict()))
        show.numbers(*model.parameters())
        mask = model.generate_square_subsequent_mask(3)
        show.numbers(
            mask, model(T.randn(3, 3, 8), T.randn(3, 3, 8), tgt_mask=mask), model(T.randn(3, 8), T.randn(4, 8))
        )
        show.error(lambda: model(T.randn(3, 2, 8), T.randn(4, 3, 8)))
        show.error(lambda: model(T.randn(3, 3, 7), T.randn(3, 3, 8)))
        show.error(lambda: T.nn.TransformerEncoderLayer(8, 2, activation="tanh"))
        show.error(lambda: T.nn.TransformerDecoderLayer(8, 2, activation="tanh"))

    same(program, rtol=2e-5)


def test_warnings_about_nested_tensors():
    def program(T, show):
        layer = T.nn.TransformerEncoderLayer
        odd = layer(8, 2, batch_first=True)
        odd.norm1.eps = 1e-3
        for one in (
            layer(8, 2),
            layer(8, 2, batch_first=True),
            layer(8, 2, batch_first=True, norm_first=True),
            layer(8, 2, bias=False, batch_first=True),
            layer(8, 2, activation=T.tanh, batch_first=True),
            layer(9, 3, batch_first=True),
            T.nn.TransformerDecoderLayer(8, 2),
            odd,
        ):
            show.warnings(lambda: T.nn.TransformerEncoder(one, 1))
            show.warnings(lambda: T.nn.TransformerEncoder(one, 1, enable_nested_tensor=False))
        show.warnings(lambda: T.nn.Transformer(8, 2, 1, 1, 8))

    same(program)
