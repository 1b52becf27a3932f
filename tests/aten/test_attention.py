"""Attention next to the reference: which way it is computed, with which graph, in loops and in NumPy; its
relatives.
"""

import math

import numpy as np
import pytest
import torch

import readtorch
from readtorch.aten.native.transformers import flash_attention
from tests.programs import same
from tests.reference import both


def tensor(*shape, dtype=torch.float32, grad=True):
    return torch.randn(*shape, dtype=dtype).requires_grad_(grad)


def qkv(batch=(2, 3), L=4, S=6, E=5, **kind):
    return tensor(*batch, L, E, **kind), tensor(*batch, S, E, **kind), tensor(*batch, S, E, **kind)


def compare(*args, grad=1, close=None, **kwargs):
    both(
        lambda T, q, k, v, *mask: T.nn.functional.scaled_dot_product_attention(q, k, v, *mask, **kwargs),
        *args,
        grad=grad,
        **({} if close is None else {"rtol": close, "atol": close}),
    )


def graph(t):
    """The names of all nodes, depth first."""

    def names(node):
        return (
            []
            if node is None
            else [node.name()] + [n for following, _ in node.next_functions for n in names(following)]
        )

    return names(t.grad_fn)


MASK = torch.tensor([[1, 0, 1, 1, 0, 1], [0] * 6, [1] * 6, [0, 0, 0, 0, 0, 1]], dtype=torch.bool)


@pytest.mark.parametrize("kwargs", [{}, {"is_causal": True}, {"scale": -0.7}, {"scale": 2, "dropout_p": 0}])
def test_in_one_operator_and_in_steps(kwargs):
    compare(*qkv(), **kwargs)
    compare(*qkv((3,)), grad=2, **kwargs)
    compare(*qkv(()), **kwargs)


@pytest.mark.parametrize(
    "mask",
    [
        MASK,
        torch.randn(4, 6),
        torch.randn(2, 1, 4, 6),
        torch.randn(1, 3, 1, 6),
        torch.randn(4, 1),
        torch.randn(6, 4).t(),
        torch.randn(3, 4, 6),
        tensor(4, 6),
    ],
)
def test_masks(mask):
    compare(*qkv(), mask)
    compare(*qkv(), mask, is_causal=True)  # one operator takes both; the steps refuse
    compare(*qkv((3,)), mask if mask.dim() < 4 else MASK)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16])
def test_other_types(dtype):
    compare(*qkv(dtype=dtype), is_causal=True)
    compare(*qkv(dtype=dtype), MASK)
    compare(*qkv(dtype=dtype), torch.randn(4, 6))
    compare(*qkv((3,), dtype=dtype), torch.randn(4, 6))


@pytest.mark.parametrize("kwargs", [{}, {"is_causal": True}, {"dropout_p": 0.4}])
def test_steps_in_half_precision_in_order(kwargs):
    """Widened before the first product; the weights are narrowed, to be returned, before the second."""

    def program(T, show):
        operators = []

        class Watch(T.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
                out = operator(*args, **(kwargs or {}))
                if operator.name() in ("aten::_to_copy", "aten::bmm", "aten::_safe_softmax"):
                    operators.append((operator.name(), str(out.dtype), tuple(out.shape)))
                return out

        q, k, v = (T.randn(3, n, 5).half() for n in (4, 6, 6))
        with Watch():
            T.nn.functional.scaled_dot_product_attention(q, k, v, **kwargs)
        show(operators)

    same(program)


def test_a_key_shorter_than_the_value_is_refused():
    """In PyTorch step by step only; its fused kernel reads the memory behind the key."""
    q, k, v = qkv(grad=False)
    compare(q[0], k[0, :, :3], v[0])
    q, k, v = readtorch.ones(2, 3, 4, 5), readtorch.ones(2, 3, 3, 5), readtorch.ones(2, 3, 6, 5)
    for device in ("cpu", "meta"):
        inputs = [t.to(device) for t in (q, k, v)]
        with pytest.raises(RuntimeError, match="key has 3 positions, and value 6"):
            readtorch.nn.functional.scaled_dot_product_attention(*inputs)


def test_dropout_draws_the_same_numbers():
    compare(*qkv(), dropout_p=0.4)
    compare(*qkv((3,)), MASK, dropout_p=0.4)
    compare(*qkv(), dropout_p=1.5)


def test_several_heads_of_the_query_share_one_of_key_and_value():
    _, k, v = qkv()
    compare(tensor(2, 6, 4, 5), k, v, enable_gqa=True)
    compare(tensor(2, 6, 4, 5), k, v, torch.randn(2, 6, 4, 6), enable_gqa=True, is_causal=True)
    compare(tensor(6, 4, 5), *qkv((3,))[1:], enable_gqa=True)
    compare(tensor(2, 6, 4, 5), tensor(2, 2, 6, 5), v, enable_gqa=True)
    compare(tensor(2, 5, 4, 5), k, v, enable_gqa=True)
    compare(tensor(2, 6, 4, 5), k, v)


def test_shapes_strides_and_types_that_take_the_other_way():
    q, k, v = qkv()
    integers, numbers = torch.ones(2, 3, 4, 5, dtype=torch.long), torch.randn(2, 3, 4, 5, dtype=torch.complex64)
    for arguments in (
        (q, k, tensor(2, 3, 6, 7)),
        (tensor(2, 3, 5, 4).transpose(-1, -2), k, v),
        (q, k[:1], v[:1]),
        (q, k[0], v[0]),
        (tensor(2, 4, 3, 5).transpose(1, 2), tensor(2, 6, 3, 5).transpose(1, 2), v),
        (q, k, v[:, :, :3]),
        (q, k.double(), v),
        (q[0, 0, 0], k, v),
        (q, k[..., :3], v),
        (integers,) * 3,
        (numbers,) * 3,
        (q, k, v, torch.zeros(6)),
        (q, k, v, torch.ones(4, 6, dtype=torch.long)),
        (q, k, v, torch.ones(4, 6).double()),
    ):
        compare(*arguments)


@pytest.mark.parametrize(
    "sizes",
    [
        ((2, 3, 0, 5), (2, 3, 6, 5), (2, 3, 6, 2)),
        ((2, 3, 4, 5), (2, 3, 0, 5), (2, 3, 0, 7)),
        ((2, 3, 4, 0), (2, 3, 6, 0), (2, 3, 6, 5)),
        ((0, 3, 4, 5), (1, 3, 6, 5), (1, 3, 6, 5)),
        ((0, 5), (6, 5), (6, 5)),
    ],
)
def test_nothing_to_attend_to(sizes):
    compare(*[tensor(*size) for size in sizes])


@pytest.mark.parametrize("L, S", [(64, 64), (65, 33), (33, 130), (200, 70), (1, 2048)])
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_loops(L, S, kv_heads):
    """Sizes around the blocks of the compiled loops, heads inside and outside, masks that hide whole rows."""
    q, k = tensor(2, L, 4, 16).transpose(1, 2), tensor(2, S, kv_heads, 16).transpose(1, 2)
    v = tensor(2, kv_heads, S, 16)
    mask = torch.randn(L, S).masked_fill(torch.rand(L, S) > 0.5, -math.inf)
    mask[0] = -math.inf
    assert flash_attention.loops_serve(
        *(np.empty(s, np.float32) for s in (q.shape, v.shape)), None, np.empty(q.shape, np.float32)
    )
    for arguments, kwargs in (
        ((), {}),
        ((), {"is_causal": True}),
        ((mask,), {}),
        ((mask > 0,), {"is_causal": True}),
        ((torch.randn(2, 1, 1, S),), {"scale": -0.7}),
    ):
        compare(
            q.detach().requires_grad_(),
            k.detach().requires_grad_(),
            v,
            *arguments,
            enable_gqa=kv_heads == 2,
            close=5e-5,
            **kwargs,
        )


def test_nan_infinity_and_expanded_operands():
    q, k, v = (tensor(1, 2, 64, 8, grad=False) for _ in range(3))
    q[0, 0, 3], q[0, 1, 5] = math.nan, math.inf
    compare(q, k, v, is_causal=True)
    compare(q[:, :1].expand(2, 2, 64, 8), k[:, :, :1].expand(1, 2, 64, 8).repeat(2, 1, 1, 1), v.expand(2, 2, 64, 8))


def test_the_way_can_be_chosen():
    def program(T, show):
        attention, Way = T.nn.functional.scaled_dot_product_attention, T.nn.attention.SDPBackend
        q, k, v = (T.randn(2, 3, n, 5, requires_grad=True) for n in (4, 6, 6))
        show(list(Way.__members__), repr(Way.MATH), Way.MATH, int(Way.ERROR), hash(Way.MATH), Way(1), Way.MATH == 0)
        show(graph(attention(q, k, v)), graph(attention(q[0], k[0], v[0], is_causal=True)))
        show(T._fused_sdp_choice(q, k, v), T._fused_sdp_choice(q[0], k[0], v[0]))
        for ways in (Way.MATH, [Way.FLASH_ATTENTION, Way.MATH]):
            with T.nn.attention.sdpa_kernel(ways):
                show(graph(attention(q, k, v)))
        integers, mask = T.ones(2, 3, 4, 5).long(), T.randn(4, 6, requires_grad=True)
        refused = [
            ((q, k, v, None, 0.5), {}),
            ((q, k[:1], v[:1]), {}),
            ((q[:, :2], k, v), {}),
            ((q, k[..., :3], v), {}),
            ((q, k, v, T.zeros(3, 4, 6)), {}),
            ((q, k, v, mask), {}),
            ((q[0], k[0], v[0]), {}),
            ((T.randn(2, 3, 5, 4).transpose(-1, -2), k, v), {}),
            ((integers,) * 3, {}),
            ((T.randn(2, 3, 5, 4).transpose(-1, -2), k, v, T.zeros(4, 6)), {}),
            ((q, k[:, :2], v), {"enable_gqa": True}),
            ((q, k[:, :2], v[:, :2]), {"enable_gqa": True}),
        ]
        with T.nn.attention.sdpa_kernel(Way.FLASH_ATTENTION):
            for arguments, kwargs in refused:
                show.warnings(lambda: show.error(lambda: attention(*arguments, **kwargs)))
        with T.nn.attention.sdpa_kernel(Way.EFFICIENT_ATTENTION):
            show.error(lambda: attention(q, k, v))
        show.error(lambda: T.nn.attention.sdpa_kernel(3).__enter__())
        show(graph(attention(q, k, v)))

    same(program)


def test_the_operators_themselves():
    def program(T, show):
        q, k, v = (T.randn(2, 3, n, 5, requires_grad=True) for n in (4, 6, 6))
        fused = T._scaled_dot_product_flash_attention_for_cpu
        output, logsumexp = fused(q, k, v, is_causal=True)
        show(output.stride(), logsumexp.stride(), logsumexp.requires_grad)
        show.numbers(output, logsumexp)
        for arguments, kwargs in (
            ((q[0], k, v), {}),
            ((q, k, v[..., :2]), {}),
            ((q, k, v), {"dropout_p": 0.5}),
            ((q, k, v), {"attn_mask": T.zeros(6)}),
            ((q.long(), k.long(), v.long()), {}),
            ((q, k, v), {"attn_mask": T.zeros(6, dtype=T.float64)}),
        ):
            show.error(lambda: fused(*arguments, **kwargs))
        (slope,) = T.autograd.grad(output.sum(), [q], create_graph=True)
        show(slope.stride(), slope.requires_grad)
        show.error(lambda: slope.sum().backward())
        mask = T.ones(2, 3, 4, 6) > 0
        show.warnings(
            lambda: show.numbers(*T._scaled_dot_product_attention_math(q, k, v, dropout_p=0.5, dropout_mask=mask))
        )
        for dtype in (T.float32, T.bfloat16):
            show.numbers(T._safe_softmax(T.tensor([[1.0, 2.0], [-math.inf, -math.inf]]).to(dtype), -1))

    same(program)


def test_masked_softmax():
    def program(T, show):
        x = T.randn(2, 2, 3, 3, requires_grad=True)
        padding, full = T.tensor([[False, True, True], [False] * 3]), T.ones(2, 2, 3, 3).triu(1) > 0
        for kind in (None, 0, 1, 2, 3):
            for mask in (padding, T.ones(3, 3).triu(1) > 0, full, padding.view(2, 1, 1, 3), padding.float()):
                show.error(lambda: show.numbers(T._masked_softmax(x, mask, 3, kind)))
        show.error(lambda: T._masked_softmax(x.long(), full, 3, 1))
        result = T._masked_softmax(x, full, 3, 2)
        show(graph(result))
        show.numbers(*T.autograd.grad(result[..., 0].sum(), x))

    same(program)


def test_attention_of_inference():
    def program(T, show):
        x, w, b, pw, pb = T.randn(2, 3, 4), T.randn(12, 4), T.randn(12), T.randn(4, 4), T.randn(4)
        y, z, mask = T.randn(2, 3, 4), T.randn(2, 3, 4), T.tensor([[False, False, True], [False] * 3])

        def attend(*inputs, dim=4, heads=2, w=w, b=b, rest=()):
            return T._native_multi_head_attention(*inputs, dim, heads, w, b, pw, pb, *rest)

        for inputs in ((x, x, x), (x, y, y), (x, y, z)):
            for rest in ((), (None, False), (None, True, False), (mask, True, True, 1)):
                output, weights = attend(*inputs, rest=rest)
                show(output.stride(), weights is None or weights.stride())
                show.numbers(output, weights)
        for inputs, kwargs in (
            ((x[0], x, x), {}),
            ((x, x[0], x), {}),
            ((x, x, x[0]), {}),
            ((x, x[:, :2], x), {}),
            ((x,) * 3, {"dim": 5}),
            ((x,) * 3, {"w": w[0]}),
            ((x,) * 3, {"w": w[1:]}),
            ((x,) * 3, {"w": w[:, 1:]}),
            ((x,) * 3, {"b": w}),
            ((x,) * 3, {"b": b[1:]}),
            ((x,) * 3, {"heads": 3}),
        ):
            show.error(lambda: attend(*inputs, **kwargs))
        show(
            attend(x[:0], x[:0], x[:0])[1], [t.stride() for t in T._transform_bias_rescale_qkv(T.randn(2, 3, 12), b, 2)]
        )
        for width, heads in ((11, 2), (12, 3)):
            show.error(lambda: T._transform_bias_rescale_qkv(T.randn(2, 3, width), b, heads))
        for use_gelu in (False, True):
            show.numbers(T._addmm_activation(pb, x[0], pw, beta=2, alpha=0.5, use_gelu=use_gelu))

    same(program)


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "elu", "softplus", "leaky_relu", "hardswish", "hardtanh"])
def test_activations_in_loops(name):
    """Many numbers are computed by other code than few; so are special ones, behind them in a vector."""
    x = torch.linspace(-30, 30, 3000)
    x[:4] = torch.tensor([-math.inf, math.nan, 0.0, -0.0])
    for kwargs in ({}, {"approximate": "tanh"}) if name == "gelu" else ({},):

        def call(T, x):
            return getattr(T.nn.functional, name)(x, **kwargs)

        both(call, x.clone().requires_grad_(), rtol=2e-6, atol=1e-5)
        few = call(readtorch, readtorch.tensor(x[-900:].tolist()))
        many = call(readtorch, readtorch.tensor(x.tolist()))[-900:]
        np.testing.assert_allclose(many.numpy(), few.numpy(), rtol=3e-6, atol=3e-7)


def test_shapes_of_flash_attention_on_meta():
    """The logarithm of the sums has no last dimension."""
    found = []
    for T in (readtorch, torch):
        q, k = T.ones(2, 3, 5, 4, device="meta"), T.ones(2, 3, 7, 4, device="meta")
        found.append([tuple(t.shape) for t in T.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, k, k)])
    assert found[0] == found[1]
