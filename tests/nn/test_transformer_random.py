"""Attention and encoder layers with settings and masks drawn at random, next to the reference: within 1e-5 in float32.

Both paths: that of training, and the one operator of inference. Widths begin with 4: a LayerNorm of one or two numbers
magnifies rounding errors, in the reference's results more than in these.
"""

import contextlib
import random
import warnings

import numpy as np
import pytest
import torch

import readtorch
from tests.programs import same

CLOSE = 1e-5


def floats(T, array):
    return T.tensor(array.tolist(), dtype=T.float32).reshape(array.shape)


def some_masks(T, draw, sizes, batched):
    """(attn_mask, key_padding_mask, whether the first is the causal one). Queries may be left that see nothing."""
    B, H, L, S = sizes
    rng = np.random.default_rng(draw.randrange(10**9))
    per_head = ((B if batched else 1) * H, L, S)
    attention = {
        "none": lambda: None,
        "bool": lambda: T.tensor((rng.random((L, S)) < 0.4).tolist()),
        "float": lambda: floats(T, rng.normal(size=(L, S))),
        "bool for each head": lambda: T.tensor((rng.random(per_head) < 0.4).tolist()),
        "float for each head": lambda: floats(T, rng.normal(size=per_head)),
        "causal": lambda: T.ones(L, S).triu(1) > 0,
    }
    behind = np.arange(S) >= rng.integers(0, S + 1, size=(B, 1))
    anywhere = rng.random((B, S)) < 0.3
    padding = {
        "none": lambda: None,
        "at the end": lambda: T.tensor(behind.tolist()),
        "anywhere": lambda: T.tensor(anywhere.tolist()),
        "added": lambda: floats(T, np.where(anywhere, -np.inf, rng.normal(size=(B, S)))),
        "added ones": lambda: floats(T, behind * 1.0),
    }
    kind = draw.choice(["none", *attention])
    hidden = padding[draw.choice(["none", "at the end", *padding])]()
    return attention[kind](), hidden if hidden is None or batched else hidden[0], kind == "causal"


def unsettle(T, draw, module):
    """Parameters that are not 0 or 1, in training or not, some of which want no gradient."""
    with T.no_grad():
        for p in module.parameters():
            p.add_(T.randn(p.shape) * 0.1)
    module.train(draw.random() < 0.4)
    if draw.random() < 0.3:
        module.requires_grad_(False)


def attention(T, draw):
    H = draw.choice([1, 2, 3, 4])
    E, B, L, same_inputs = H * draw.choice([4, 5]), draw.randint(1, 3), draw.randint(1, 6), draw.random() < 0.5
    S = L if same_inputs else draw.randint(1, 6)
    kdim, vdim = (None, None) if same_inputs else (draw.choice([None, None, 3]), draw.choice([None, None, 4]))
    batch_first, batched = draw.random() < 0.6, draw.random() < 0.8
    layer = T.nn.MultiheadAttention(
        E,
        H,
        bias=draw.random() < 0.8,
        add_bias_kv=draw.random() < 0.2,
        add_zero_attn=draw.random() < 0.2,
        kdim=kdim,
        vdim=vdim,
        batch_first=batch_first,
    )
    unsettle(T, draw, layer)

    def sequence(length, width):
        shape = (B, length, width) if batch_first else (length, B, width)
        return T.randn(*(shape if batched else (length, width)))

    query = sequence(L, E).requires_grad_(draw.random() < 0.5)
    key = query if same_inputs else sequence(S, kdim or E)
    value = key if same_inputs or kdim == vdim and draw.random() < 0.5 else sequence(S, vdim or E)
    mask, padding, causal = some_masks(T, draw, (B, H, L, S), batched)
    call = {"attn_mask": mask, "key_padding_mask": padding, "need_weights": draw.random() < 0.6}
    call |= {"average_attn_weights": draw.random() < 0.5, "is_causal": causal and L == S and draw.random() < 0.5}
    with T.set_grad_enabled(draw.random() < 0.6):
        results = layer(query, key, value, **call)
    return results, [query, *layer.parameters()]


def encoder(T, draw):
    H = draw.choice([1, 2, 2, 4])
    E, B, L = H * draw.choice([4, 5]), draw.randint(1, 3), draw.randint(1, 6)
    batch_first, batched = draw.random() < 0.7, draw.random() < 0.85
    activations = ["relu", "gelu", T.nn.functional.relu, T.tanh, T.nn.GELU(), T.nn.ReLU()]
    layer = T.nn.TransformerEncoderLayer(
        E,
        H,
        draw.choice([1, 7]),
        dropout=0.0,
        activation=draw.choice(activations),
        layer_norm_eps=draw.choice([1e-5, 1e-2]),
        batch_first=batch_first,
        norm_first=draw.random() < 0.4,
        bias=draw.random() < 0.8,
    )
    if draw.random() < 0.1:
        layer.norm2.eps = 0.3
    of_layers = draw.random() < 0.6
    if of_layers:
        norm = T.nn.LayerNorm(E) if draw.random() < 0.5 else None
        nested = {"enable_nested_tensor": draw.random() < 0.8, "mask_check": draw.random() < 0.7}
        layer = T.nn.TransformerEncoder(layer, 2, norm, **nested)
    unsettle(T, draw, layer)
    shape = (B, L, E) if batch_first else (L, B, E)
    x = T.randn(*(shape if batched else (L, E))).requires_grad_(draw.random() < 0.4)
    mask, padding, causal = some_masks(T, draw, (B, H, L, L), batched)
    call = {"mask" if of_layers else "src_mask": mask, "src_key_padding_mask": padding}
    call |= {"is_causal": True} if causal and draw.random() < 0.5 else {}
    with fast_path(T, draw.random() < 0.85), T.set_grad_enabled(draw.random() < 0.5):
        return [layer(x, **call)], [x, *layer.parameters()]


@contextlib.contextmanager
def fast_path(T, enabled):
    T.backends.mha.set_fastpath_enabled(enabled)
    try:
        yield
    finally:
        T.backends.mha.set_fastpath_enabled(True)


def results_and_gradients(T, model, seed):
    """Tensors, or the text of the error; beside them whether there is a graph, and strides."""
    draw = random.Random(seed)
    T.manual_seed(seed)
    try:
        results, inputs = model(T, draw)
    except Exception as error:
        return [], f"{type(error).__name__}: {error}"
    about = [x is not None and (x.requires_grad, x.stride()) for x in results]
    losses = [(x * T.randn(x.shape)).sum() for x in results if x is not None and x.requires_grad]
    wanted = [x for x in inputs if x.requires_grad]
    grads = T.autograd.grad(sum(losses), wanted, allow_unused=True) if losses else []
    return [*results, *grads], about


@pytest.mark.parametrize("model", [attention, encoder])
@pytest.mark.parametrize("tens", range(15))
def test_settings_at_random(model, tens):
    for seed in range(10 * tens, 10 * tens + 10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, about_theirs = results_and_gradients(torch, model, seed)
            ours, about_ours = results_and_gradients(readtorch, model, seed)
        assert about_ours == about_theirs, f"{model.__name__}, seed {seed}"
        for position, (mine, expected) in enumerate(zip(ours, theirs, strict=True)):
            assert (mine is None) == (expected is None), f"{model.__name__}, seed {seed}, result {position}"
            if expected is not None:
                mine, expected = (np.array(x.detach().tolist()) for x in (mine, expected))
                where = f"{model.__name__}, seed {seed}, result {position}"
                np.testing.assert_allclose(mine, expected, rtol=CLOSE, atol=CLOSE, err_msg=where)


def test_sequences_without_their_padding():
    """Where the reference makes a nested tensor: what is hidden comes out as 0. And where it does not."""

    def program(T, show):
        layer = T.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        encoder = T.nn.TransformerEncoder(layer, 2).eval()
        x, end = T.randn(2, 4, 8), T.tensor([[False, False, True, True], [False, False, False, True]])
        begin = T.tensor([[True, False, False, False], [False] * 4])

        def run(padding=end, x=x):
            with T.no_grad():
                return show.numbers(encoder(x, src_key_padding_mask=padding))

        run()
        with fast_path(T, False):
            run()
        hook = encoder.layers[1].register_forward_hook(lambda *_: None)
        run()
        hook.remove()
        encoder.layers[0].norm1.eps = 0.1
        run()
        run(begin)
        encoder.mask_check = False  # as many positions as are shown are taken, from the first on
        run(begin)
        encoder.mask_check = True
        for padding in (T.ones(2, 4) > 0, T.ones(2, 3) > 0, T.ones(3, 4) > 0, T.ones(4) > 0, T.ones(2, 4).long()):
            show.error(lambda: run(padding))
        run(T.tensor([[True] * 4, [False] * 4]))
        run(T.tensor([[0.0, 0, 0, -9], [0, 0, 0, -float("inf")]]))
        del encoder.use_nested_tensor
        run()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)


def test_whoever_overrides_functions_gets_them_all():
    """A mode, or a class of tensors, keeps the one operator from being used; its padding is not left out."""

    def program(T, show):
        class Record(T.overrides.TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                names.append(getattr(func, "__name__", ""))
                return func(*args, **(kwargs or {}))

        class Derived(T.Tensor):
            pass

        names = []
        layer = T.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
        encoder, attention = T.nn.TransformerEncoder(layer, 1), layer.self_attn
        x, end = T.randn(2, 4, 8), T.tensor([[False, False, True, True], [False, False, False, True]])
        with T.no_grad():
            for run in (layer, lambda x: attention(x, x, x)[0], lambda x: encoder(x, src_key_padding_mask=end)):
                show.numbers(run(x))
                with Record():
                    show.numbers(run(x))
                found = run(x.as_subclass(Derived))
                show(type(found).__name__, [n for n in names if n in ("multi_head_attention_forward", "layer_norm")])
                show.numbers(found)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(program)
