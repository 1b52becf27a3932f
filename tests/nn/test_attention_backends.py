"""`nn.attention`: which implementation may compute attention, which one does, and masks that are classes."""

import random
import warnings

import pytest
import torch
import torch.nn.attention.bias

import readtorch
import readtorch.nn.attention.bias
from tests.programs import same


def allowed(T):
    """The backends that may be used, in the order in which they are listed and in that of their priority."""
    return T.nn.attention._cur_sdpa_kernel_backends(), T.nn.attention._cur_sdpa_kernel_backends(with_priority=True)


def test_what_may_be_used_follows_every_context():
    def program(T, show):
        kernel, Way, switches = T.nn.attention.sdpa_kernel, T.nn.attention.SDPBackend, T.backends.cuda
        show(*allowed(T))
        with kernel(Way.MATH) as made:
            show(made, *allowed(T), switches.math_sdp_enabled(), switches.flash_sdp_enabled())
            with kernel([Way.FLASH_ATTENTION, Way.EFFICIENT_ATTENTION]):
                show(*allowed(T))
            show(*allowed(T))
        with kernel([Way.EFFICIENT_ATTENTION, Way.MATH, Way.MATH], set_priority=True):
            show(*allowed(T))
            with kernel([Way.OVERRIDEABLE, Way.FLASH_ATTENTION], set_priority=True):
                show(*allowed(T))
            show(*allowed(T))
        show(*allowed(T))
        switches.enable_flash_sdp(False)
        with kernel(Way.FLASH_ATTENTION):
            show(*allowed(T))
        show(*allowed(T))
        switches.enable_flash_sdp(True)
        for nothing in ([], [Way.ERROR]):
            with kernel(nothing):
                show(*allowed(T))
                x = T.randn(1, 1, 2, 4)
                show.error(lambda: T.nn.functional.scaled_dot_product_attention(x, x, x))
        for wrong in ("MATH", (Way.MATH,), None, 0):
            show.error(lambda: kernel(wrong).__enter__())
        with pytest.raises(KeyError), kernel(Way.MATH):
            raise KeyError
        show(*allowed(T), Way.__module__ and Way.MATH)

    same(program)


@pytest.mark.parametrize("seed", range(20))
def test_contexts_and_switches_at_random(seed):
    """Contexts within contexts, with and without priorities; switches are thrown inside them."""

    def program(T, show):
        draw = random.Random(seed)
        ways = list(T.nn.attention.SDPBackend.__members__.values())[1:]

        def walk(depth):
            for _ in range(draw.randint(1, 3)):
                if draw.random() < 0.3:
                    name, on = draw.choice(["flash", "mem_efficient", "math", "cudnn"]), draw.random() < 0.6
                    getattr(T.backends.cuda, f"enable_{name}_sdp")(on)
                elif depth:
                    with T.nn.attention.sdpa_kernel(draw.sample(ways, draw.randint(0, 4)), draw.random() < 0.5):
                        show(*allowed(T))
                        walk(depth - 1)
                show(*allowed(T))

        walk(4)
        with T.nn.attention.sdpa_kernel([ways[i] for i in (1, 2, 0, 3, 4)], set_priority=True):
            pass
        for name in ("flash", "mem_efficient", "math", "cudnn"):
            getattr(T.backends.cuda, f"enable_{name}_sdp")(True)

    try:
        same(program)
    finally:
        for T in (torch, readtorch):
            everything = list(T.nn.attention.SDPBackend.__members__.values())
            T.nn.attention._sdpa_kernel([everything[i + 1] for i in (1, 2, 0, 3, 4)], set_priority=True)


@pytest.mark.parametrize("seed", range(60))
def test_the_choice_at_random(seed):
    """The operator's choice among what is allowed: number, or error and the reasons, for calls of all kinds."""

    def program(T, show):
        draw = random.Random(seed)
        pick = draw.choice
        heads, width, kinds = pick([1, 2, 4]), pick([0, 3, 8]), [T.float32, T.float64, T.float16, T.bfloat16]
        batch, L, S = pick([1, 2]), pick([0, 1, 5, 5]), pick([0, 1, 6, 6])
        dtype = pick([*kinds, T.float32, T.float32, T.int64])
        shapes = [
            (batch, heads, L, width),
            (batch, pick([heads, 1, 2]), S, width),
            (batch, 0, S, pick([width, width, 5])),
        ]
        shapes[2] = (pick([batch, batch, 1]), pick([shapes[1][1], shapes[1][1], heads]), *shapes[2][2:])
        q, k, v = (T.ones(shape, dtype=dtype) for shape in shapes)
        if draw.random() < 0.15:
            q, k, v = q[0], k[0], v[0]
        if draw.random() < 0.15:
            k = k.transpose(-1, -2).contiguous().transpose(-1, -2)
        mask = pick(
            [None, None, T.ones(L, S) > 0, T.ones(L, S, dtype=q.dtype), T.ones(heads, L, S) > 0, T.ones(L, 1) > 0]
        )
        if mask is not None and mask.is_floating_point() and draw.random() < 0.3:
            mask.requires_grad_()
        options = {
            "attn_mask": mask,
            "dropout_p": pick([0.0, 0.0, 0.5]),
            "is_causal": mask is None and draw.random() < 0.3,
        }
        options |= {"scale": pick([None, 0.3]), "enable_gqa": draw.random() < 0.5}
        ways = T.nn.attention.SDPBackend
        for allowed in ([ways.FLASH_ATTENTION, ways.MATH], [ways.FLASH_ATTENTION], [ways.MATH]):
            with T.nn.attention.sdpa_kernel(allowed):
                show.warnings(lambda: show.error(lambda: show(T._fused_sdp_choice(q, k, v, **options))))

    same(program)


def test_questions_about_gpus():
    def program(T, show):
        cuda, x = T.backends.cuda, T.randn(1, 1, 2, 4)
        parameters = cuda.SDPAParams(x, x, x, None, 0.5, True, False)
        show(
            parameters.query is x, parameters.attn_mask, parameters.dropout, parameters.is_causal, parameters.enable_gqa
        )
        for name in ("flash", "efficient", "cudnn"):
            for debug in (False, True):
                show.warnings(lambda: show(getattr(cuda, f"can_use_{name}_attention")(parameters, debug)))
        show(cuda.is_flash_attention_available())

    same(program)


# ------------------------------------------------------------------------------------------------------- other kernels


def test_implementations_by_name(caplog):
    def program(T, show):
        attention, told = T.nn.attention, []

        class Handle:
            def remove(self):
                told.append("removed")

        show(attention.list_flash_attention_impls(), attention.current_flash_attention_impl())
        attention.register_flash_attention_impl("own", register_fn=lambda: told.append("made") or Handle())
        attention.register_flash_attention_impl("no handle", register_fn=lambda: told.append("made"))
        for name in ("own", "no handle", "own", "own"):
            attention.activate_flash_attention_impl(name)
            show(told, attention.current_flash_attention_impl(), attention.list_flash_attention_impls())
        show.error(lambda: attention.activate_flash_attention_impl("nobody's"))
        show.error(lambda: attention.activate_flash_attention_impl("FA4"))
        attention.activate_flash_attention_impl("own")
        attention.restore_flash_attention_impl()
        attention.restore_flash_attention_impl()
        show(told, attention.current_flash_attention_impl())

    with caplog.at_level("WARNING"):
        try:
            same(program)
        finally:
            torch.nn.attention._registry._FLASH_ATTENTION_IMPLS.pop("own")
            torch.nn.attention._registry._FLASH_ATTENTION_IMPLS.pop("no handle")
            readtorch.nn.attention._registry._implementations.pop("own")
            readtorch.nn.attention._registry._implementations.pop("no handle")
    assert "no custom impl was activated" in caplog.text


# ------------------------------------------------------------------------------------------------ masks that are classes


def test_causal_masks():
    def program(T, show):
        bias, attention = T.nn.attention.bias, T.nn.functional.scaled_dot_product_attention
        for made in (bias.causal_upper_left, bias.causal_lower_right):
            for L, S in ((3, 5), (4, 4), (5, 3), (1, 6)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    mask = made(L, S)
                show.warnings(lambda: made(L, S))
                show(
                    repr(mask),
                    type(mask).__name__,
                    mask.shape,
                    mask.dtype,
                    repr(mask.variant),
                    mask.seq_len_q,
                    mask.seq_len_kv,
                )
                show(type(mask + 1).__name__, mask._materialize().dtype)
                q, k = T.randn(2, 4, L, 8, requires_grad=True), T.randn(2, 4, S, 8)
                for arguments, options in [
                    ((q, k, k, mask), {}),
                    ((q, k, k), {"attn_mask": mask, "scale": 0.3}),
                    ((q, k[:, :2], k[:, :2], mask), {"enable_gqa": True}),
                ]:
                    out = attention(*arguments, **options)
                    show(type(out) is T.Tensor, out.grad_fn.name())
                    show.numbers(out, *T.autograd.grad(out.sum(), q))
                show.error(lambda: attention(q, k, k, mask, is_causal=True))
                show.error(lambda: attention(q, k, k, mask, 0.0, True))
                show.error(lambda: attention(q, k.double(), k, mask))
                show.error(lambda: attention(q[0, 0, 0], k, k, mask))
        show.error(lambda: bias.causal_lower_right(3))
        show.error(lambda: bias.causal_upper_left(1, 2, 3))
        show.error(lambda: bias.CausalBias(1, 3, 3))
        show(list(bias.CausalVariant), bias.__all__)
        T.nn.attention.WARN_FOR_UNFUSED_KERNELS = True
        q, k = T.randn(1, 1, 3, 4), T.randn(1, 1, 5, 4)
        show.warnings(lambda: attention(q, k, k, bias.causal_lower_right(3, 5)))
        show.warnings(lambda: attention(q, k, k, bias.causal_upper_left(3, 5)))
        T.nn.attention.WARN_FOR_UNFUSED_KERNELS = False

    same(program)


def test_sizes_may_be_of_a_class_of_integers():
    """A CausalBias is made by the old constructor of tensors, whose first size is its variant."""

    def program(T, show):
        two = T.nn.attention.bias.CausalVariant.LOWER_RIGHT
        show(T.Tensor(two, 3).shape, T.Tensor(two).shape, T.zeros(1).new(two).shape, T.zeros(two, 3).shape)
        show.error(lambda: T.Tensor(True))

    same(program)
