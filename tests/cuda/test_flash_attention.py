"""Attention tile by tile: the kernels on the simulator against float64, the operators and the choice of them against PyTorch."""

import ml_dtypes
import numpy as np
import pytest
import torch

import readtorch as rt
from readtorch import cuda
from readtorch.aten.native.transformers.cuda.flash_attn.flash_api import mha_bwd, mha_fwd
from readtorch.aten.sdp_backend import SDPBackend
from tests.cuda.launches import aligned, checked

EPS = {ml_dtypes.bfloat16: 2**-8, np.float16: 2**-10}


def operands(shape_q, shape_k, dtype):
    random = np.random.default_rng(0)
    shapes = (shape_q, shape_k, shape_k, shape_q)
    return [aligned(random.standard_normal(shape).astype(np.float32).astype(dtype)) for shape in shapes]


def exact(q, k, v, scale, causal):
    """(result, logsumexp) in float64. The mask is counted from the last position."""
    k, v = (x.repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = scale * q @ k.mT
    if causal:
        queries, keys = scores.shape[2:]
        scores = scores.masked_fill(torch.ones(queries, keys).tril(keys - queries) == 0, -np.inf)
    return scores.softmax(-1).nan_to_num() @ v, scores.logsumexp(-1)


def wide(*arrays):
    return [torch.from_numpy(x.astype(np.float64)).requires_grad_() for x in arrays]


CASES = {
    "heads that share keys": ((1, 2, 5, 24), (1, 1, 70, 24), ml_dtypes.bfloat16, -0.3, False),
    "two tiles, causal": ((1, 1, 66, 32), (1, 1, 66, 32), np.float16, 0.2, True),
    "one band of queries, causal": ((1, 1, 3, 72), (1, 1, 67, 72), ml_dtypes.bfloat16, 0.2, True),
    "queries that see no key": ((1, 1, 9, 8), (1, 1, 3, 8), np.float16, 0.5, True),
}


@pytest.mark.parametrize("name", CASES)
def test_forward(name):
    *shapes, dtype, scale, causal = CASES[name]
    q, k, v, _ = operands(*shapes, dtype)
    out, logsumexp = aligned(np.full_like(q, np.nan)), np.zeros(q.shape[:3], np.float32)
    checked(mha_fwd, q, k, v, out, logsumexp, scale, causal)
    expected, expected_logsumexp = exact(*wide(q, k, v), scale, causal)
    np.testing.assert_allclose(out.astype(float), expected.detach(), rtol=EPS[dtype], atol=2 * EPS[dtype])
    seen = np.isfinite(expected_logsumexp.detach().numpy())
    np.testing.assert_allclose(logsumexp[seen], expected_logsumexp.detach()[seen], rtol=1e-5, atol=1e-5)
    assert (logsumexp[~seen] == np.inf).all()


@pytest.mark.parametrize("name", CASES)
def test_backward(name):
    *shapes, dtype, scale, causal = CASES[name]
    q, k, v, grad = operands(*shapes, dtype)
    inputs, of_result = wide(q, k, v), torch.from_numpy(grad.astype(np.float64))
    out, logsumexp = exact(*inputs, scale, causal)
    delta = (out * of_result).sum(-1).detach().numpy().astype(np.float32)
    saved = logsumexp.detach().numpy().astype(np.float32)
    grads = [aligned(np.full_like(x, np.nan)) for x in (q, k, v)]
    checked(mha_bwd, grad, q, k, v, saved, delta, *grads, scale, causal)
    for found, expected in zip(grads, torch.autograd.grad(out, inputs, of_result)):
        np.testing.assert_allclose(found.astype(float), expected.nan_to_num(), rtol=2 * EPS[dtype], atol=4 * EPS[dtype])


# --------------------------------------------------------------------------------------------------- the operators


@pytest.fixture
def device():
    cuda.simulate(1, "64MiB", kernels=True)
    yield
    cuda.simulate(0)


def trained(T, device, **options):
    """The result and the gradients of one call, from rows that are no multiple of eight numbers and lie apart."""
    torch.manual_seed(3)
    numbers = torch.randn(3, 2, 1, 7, 5).transpose(2, 3).half()
    q, k, v = (T.tensor(x.tolist(), dtype=T.float16, device=device).transpose(1, 2).requires_grad_() for x in numbers)
    out = T.nn.functional.scaled_dot_product_attention(q, k, v, **options)
    out.backward(T.ones_like(out))
    return out, q.grad, k.grad, v.grad


def test_as_on_the_cpu(device):
    with rt.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        ours = trained(rt, "cuda", is_causal=True)
    assert ours[0].grad_fn.name() == "SliceBackward0"
    node = ours[0].grad_fn.next_functions[0][0]
    while not node.name().startswith("Scaled"):
        node = node.next_functions[0][0]
    assert node.name() == "ScaledDotProductFlashAttentionBackward0" and node._saved_max_q == 7
    for found, expected in zip(ours, trained(torch, "cpu", is_causal=True)):
        np.testing.assert_allclose(found.tolist(), expected.tolist(), rtol=2e-3, atol=2e-3)


def half(*shape):
    return rt.ones(*shape, dtype=rt.float16, device="cuda")


X = (1, 2, 4, 8)
REFUSED = {
    "not compiled": (lambda: [rt.ones(X, device="cuda")] * 3, {}, "Expected query, key and value to all be of dtype: {Half, BFloat16}."),
    "too wide": (lambda: [half(1, 2, 4, 136)] * 3, {}, "Flash attention requires q,k,v to have the same last dimension and to be"),
    "mask": (lambda: [half(X)] * 3, {"attn_mask": (4, 4)}, "Flash Attention does not support non-null attn_mask."),
    "dropout": (lambda: [half(X)] * 3, {"dropout_p": 0.5}, "readtorch's flash attention has no dropout."),
    "no square": (lambda: [half(X)] + [half(1, 2, 3, 8)] * 2, {"is_causal": True}, "Flash attention does not support the is_causal flag"),
    "heads": (lambda: [half(X)] + [half(1, 1, 4, 8)] * 2, {}, "For dense input, both fused kernels require query, key and value"),
    "strides": (lambda: [half(X)] * 2 + [half(1, 2, 8, 4).mT], {}, "All fused kernels require the last dimension of the input"),
    "three dimensions": (lambda: [half(2, 4, 8)] * 3, {}, "All fused kernels requires query, key and value to be 4 dimensional"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_why_not(name, device):
    make, options, reason = REFUSED[name]
    operands, options = make(), dict(options)
    if "attn_mask" in options:
        options["attn_mask"] = half(*options["attn_mask"])
    assert rt._fused_sdp_choice(*operands, **options) == int(SDPBackend.MATH)
    with rt.nn.attention.sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.warns(UserWarning) as said:
        with pytest.raises(RuntimeError, match=r"^No available kernel\. Aborting execution\.$"):
            rt._fused_sdp_choice(*operands, **options)
    texts = [str(one.message) for one in said]
    assert texts[:3:2] == ["Memory efficient kernel not used because:", "Flash attention kernel not used because:"]
    assert texts[3].startswith(reason)


def test_the_choice_follows_switches_and_priority(device):
    q, ways = half(X), rt.nn.attention.SDPBackend
    choose = lambda: rt._fused_sdp_choice(q, q, q)
    assert choose() == int(ways.FLASH_ATTENTION)
    rt.backends.cuda.enable_flash_sdp(False)
    try:
        assert choose() == int(ways.MATH)
    finally:
        rt.backends.cuda.enable_flash_sdp(True)
    with rt.nn.attention.sdpa_kernel([ways.MATH, ways.FLASH_ATTENTION], set_priority=True):
        assert choose() == int(ways.MATH)
    assert rt.backends.cuda.is_flash_attention_available()
    asked = rt.backends.cuda.SDPAParams(q, q, q, None, 0.0, False, False)
    assert rt.backends.cuda.can_use_flash_attention(asked)
    asked = rt.backends.cuda.SDPAParams(q, q, q, None, 0.5, False, False)
    with pytest.warns(UserWarning, match="no dropout"):
        assert not rt.backends.cuda.can_use_flash_attention(asked, True)


def test_what_the_operator_refuses(device):
    attend = rt.ops.aten._scaled_dot_product_flash_attention
    q = half(X)
    for message, call in (
        ("FlashAttention only support fp16 and bf16 data type", lambda: attend(q.float(), q.float(), q.float())),
        ("query and key must have the same dtype", lambda: attend(q, q.float(), q)),
        ("head_size must be a multiple of 8, this is ensured by padding!", lambda: attend(*[half(1, 1, 2, 5)] * 3)),
        ("Key and Value must have the same sequence length", lambda: attend(q, q, q[:, :, 1:])),
        (
            "Number of heads in key/value must divide number of heads in query",
            lambda: attend(q, *[half(1, 3, 4, 8)] * 2),
        ),
    ):
        with pytest.raises(RuntimeError, match=message):
            call()
