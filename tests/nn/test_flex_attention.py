"""FlexAttention next to the reference: a hundred functions of scores and masks made at random, block masks, errors."""

import functools

import numpy as np
import pytest
import torch
import torch.nn.attention.flex_attention
from torch._higher_order_ops.flex_attention import flex_attention as their_operator
from torch._higher_order_ops.flex_attention import math_attention

import readtorch
import readtorch.nn.attention.flex_attention
from readtorch._higher_order_ops.flex_attention import flex_attention as our_operator
from tests.programs import same

# ------------------------------------------------------------------------------------------- functions made at random


class Draw:
    """One random program: sizes, arrays, and functions of (T, buffers) that return functions of a place.

    A function reads its tables from `buffers`, a list of tensors of T made of `self.arrays`.
    """

    def __init__(self, seed):
        self.rng = rng = np.random.default_rng(seed)
        pick = rng.integers
        self.B, self.Hkv, self.groups = int(pick(1, 4)), int(pick(1, 4)), int(pick(1, 4))
        self.L, self.S = int(pick(1, 45)), int(pick(1, 45))
        self.E, self.Ev = int(pick(1, 9)), int(pick(1, 9))
        self.H = self.Hkv * self.groups
        self.block = int(pick(4, 20)) if pick(2) else (int(pick(4, 20)), int(pick(4, 20)))
        self.Bkv = 1 if self.B > 1 and pick(6) == 0 else self.B
        self.arrays = []  # those of floats get gradients

    def array(self, *shape):
        self.arrays.append(self.rng.normal(size=shape))
        return len(self.arrays) - 1

    def numbers(self, high, *shape):
        self.arrays.append(self.rng.integers(0, high, size=shape))
        return len(self.arrays) - 1

    def one_of(self, choices):
        return choices[self.rng.integers(len(choices))]()

    def score(self, depth):
        """f(T, t) with f(T, t)(s, b, h, i, j) → another score; t: the buffers."""
        if depth == 0:
            return self.one_of([self.plain, self.alibi, self.relative, self.of_query, self.of_key, self.of_head])
        return self.one_of([self.unary(depth), self.binary(depth), self.chosen(depth)])

    def plain(self):
        return lambda T, t: lambda s, b, h, i, j: s

    def alibi(self):
        n = self.array(self.H)
        return lambda T, t: lambda s, b, h, i, j: s + t[n][h] * (j - i)

    def relative(self):
        reach = int(self.rng.integers(1, 10))
        n = self.array(self.H, 2 * reach + 1)
        return lambda T, t: lambda s, b, h, i, j: s + t[n][h, (i - j).clamp(-reach, reach) + reach]

    def of_query(self):
        n = self.array(self.L)
        return lambda T, t: lambda s, b, h, i, j: s * t[n][i]

    def of_key(self):
        n = self.array(self.B, self.S)
        return lambda T, t: lambda s, b, h, i, j: s + t[n][b, j]

    def of_head(self):
        n = self.array(3)
        return lambda T, t: lambda s, b, h, i, j: s - t[n][h % 3] * t[n][0]

    def unary(self, depth):
        def made():
            f = self.score(depth - 1)
            c = float(self.rng.uniform(0.5, 3))
            g = [
                lambda T, x: c * T.tanh(x / c),
                lambda T, x: T.sin(x * c),
                lambda T, x: T.relu(x) - c,
                lambda T, x: x.abs() * c,
                lambda T, x: T.exp(-x.abs()),
                lambda T, x: (x * x) / (1 + c * x.abs()),
                lambda T, x: T.nn.functional.gelu(x),
                lambda T, x: x.clamp(-c, c),
            ][self.rng.integers(8)]
            return lambda T, t: lambda *place: g(T, f(T, t)(*place))

        return made

    def binary(self, depth):
        def made():
            f, g = self.score(depth - 1), self.score(depth - 1)
            join = [
                lambda T, x, y: x + y,
                lambda T, x, y: x - 0.5 * y,
                lambda T, x, y: x * T.sigmoid(y),
                lambda T, x, y: T.maximum(x, y - 0.1),
            ][self.rng.integers(4)]
            return lambda T, t: lambda *place: join(T, f(T, t)(*place), g(T, t)(*place))

        return made

    def chosen(self, depth):
        def made():
            f, g, mask = self.score(depth - 1), self.score(depth - 1), self.mask(depth - 1)
            return lambda T, t: (
                lambda s, *place: T.where(mask(T, t)(*place), f(T, t)(s, *place), 0.5 * g(T, t)(s, *place))
            )

        return made

    def mask(self, depth):
        """f(T, t) with f(T, t)(b, h, i, j) → whether it may be seen."""
        if depth == 0:
            return self.one_of(
                [self.causal, self.window, self.prefix, self.documents, self.dilated, self.lengths, self.table]
            )
        f, g = self.mask(depth - 1), self.mask(depth - 1)
        return [
            lambda T, t: T.nn.attention.flex_attention.and_masks(f(T, t), g(T, t)),
            lambda T, t: T.nn.attention.flex_attention.or_masks(f(T, t), g(T, t)),
            lambda T, t: lambda b, h, i, j: f(T, t)(b, h, i, j) | ~g(T, t)(b, h, i, j),
        ][self.rng.integers(3)]

    def causal(self):
        return lambda T, t: lambda b, h, i, j: i >= j

    def window(self):
        reach = int(self.rng.integers(0, 12))
        return lambda T, t: lambda b, h, i, j: (i - j).abs() <= reach

    def prefix(self):
        length = int(self.rng.integers(0, self.S + 1))
        return lambda T, t: lambda b, h, i, j: j < length

    def documents(self):
        n = self.numbers(3, self.B, max(self.L, self.S))
        return lambda T, t: lambda b, h, i, j: t[n][b, i] == t[n][b, j]

    def dilated(self):
        step = int(self.rng.integers(1, 5))
        return lambda T, t: lambda b, h, i, j: (i - j + h) % step == 0

    def lengths(self):
        n = self.numbers(self.S + 1, self.B)
        return lambda T, t: lambda b, h, i, j: j < t[n][b]

    def table(self):
        n = self.numbers(2, self.L, self.S)
        return lambda T, t: lambda b, h, i, j: t[n][i][j] > 0


class Program:
    """What is run on both sides: one score function, with or without a mask."""

    def __init__(self, seed):
        draw = Draw(seed)
        self.draw = draw
        self.score_mod = draw.score(int(draw.rng.integers(0, 4)))
        self.mask_mod = draw.mask(int(draw.rng.integers(0, 3))) if seed % 5 else None
        self.apart = bool(draw.rng.integers(2))
        self.scale = float(draw.rng.uniform(0.1, 1)) if draw.rng.integers(2) else None
        shapes = [(draw.B, draw.H, draw.L, draw.E)]
        shapes += [(draw.Bkv, draw.Hkv, draw.S, width) for width in (draw.E, draw.Ev)]
        self.inputs = [draw.rng.normal(size=shape) for shape in shapes]
        self.grad_out = draw.rng.normal(size=(draw.B, draw.H, draw.L, draw.Ev))
        self.grad_lse = draw.rng.normal(size=(draw.B, draw.H, draw.L))

    def tensors(self, T, requires_grad):
        made = [T.tensor(x.tolist(), dtype=T.float64).reshape(x.shape) for x in self.inputs]
        buffers = [T.tensor(x.tolist(), dtype=T.float64 if x.dtype == float else T.int64) for x in self.draw.arrays]
        for x in (*made, *buffers) if requires_grad else buffers:
            x.requires_grad_(x.dtype == T.float64)
        return made, buffers

    def block_mask(self, T, buffers):
        if self.mask_mod is None:
            return None
        draw = self.draw
        return T.nn.attention.flex_attention.create_block_mask(
            self.mask_mod(T, [t.detach() for t in buffers]),
            draw.B,
            draw.H,
            draw.L,
            draw.S,
            BLOCK_SIZE=draw.block,
            separate_full_blocks=self.apart,
        )

    def mask_or_all(self, T, buffers):
        flex = T.nn.attention.flex_attention
        mask = self.block_mask(T, buffers)
        return mask or flex.BlockMask.from_kv_blocks(T.ones([1, 1, 1]).int(), T.zeros([1, 1, 1, 1]).int())


def weighed(T, program, out, lse):
    """A scalar of both results. In a row where everything is hidden lse is -inf and has no gradient."""
    loss = (out * T.tensor(program.grad_out.tolist(), dtype=T.float64).reshape(out.shape)).sum()
    if lse is None:
        return loss
    return loss + (lse * T.tensor(program.grad_lse.tolist(), dtype=T.float64).reshape(lse.shape))[~lse.isinf()].sum()


def compare(ours, theirs, what):
    for position, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        assert (a is None) == (b is None), f"{what} {position}"
        if a is not None:
            assert tuple(a.shape) == tuple(b.shape), f"{what} {position}"
            a, b = np.array(a.detach().tolist()), np.array(b.detach().tolist())
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9, err_msg=f"{what} {position}")


def zeros_for_none(T, grads, inputs):
    return [T.zeros_like(x) if g is None else g for g, x in zip(grads, inputs)]


@pytest.mark.parametrize("seed", range(100))
def test_random_functions(seed):
    """Values, logsumexp and gradients equal those of the reference's form for code that is not compiled."""
    program = Program(seed)
    # math_attention is the definition, differentiated by autograd; the operator has a backward of its own, and takes longer
    reference = their_operator if seed % 10 == 0 else math_attention
    values, grads = results_and_gradients(readtorch, program, our_operator)
    their_values, their_grads = results_and_gradients(torch, program, reference)
    compare(values, their_values, f"seed {seed}: out, lse or max_scores")
    compare(grads, their_grads, f"seed {seed}: the gradient of input")


def results_and_gradients(T, program, operator):
    inputs, buffers = program.tensors(T, requires_grad=True)
    mask = program.mask_or_all(T, buffers).as_tuple()
    score_mod = lambda s, b, h, i, j, *t: program.score_mod(T, t)(s, b, h, i, j)  # noqa: E731
    scale = program.scale or 1 / program.draw.E**0.5
    results = operator(*inputs, score_mod, mask, scale, {"BACKEND": "AUTO"}, tuple(buffers))
    seen_by_all = not np.isinf(np.array(results[1].tolist())).any()
    loss = weighed(T, program, results[0], results[1] if seen_by_all else None)
    wanted = [x for x in (*inputs, *buffers) if x.requires_grad]
    return results, zeros_for_none(T, T.autograd.grad(loss, wanted, allow_unused=True), wanted)


def test_the_hidden_blocks_are_skipped():
    flex, seen = readtorch.nn.attention.flex_attention, []

    def causal(b, h, i, j):
        return i >= j

    def spy(score, b, h, i, j):
        seen.append(tuple(_sizes_below(score)))
        return score

    q = readtorch.randn(2, 2, 40, 4)
    with readtorch.no_grad():
        masked = flex.flex_attention(q, q, q, spy, flex.create_block_mask(causal, None, None, 40, 40, BLOCK_SIZE=16))
    assert seen == [(2, 2, 16, 16), (2, 2, 16, 32), (2, 2, 8, 40)]
    expected = readtorch.nn.functional.scaled_dot_product_attention(q, q, q, is_causal=True)
    assert readtorch.allclose(masked, expected, atol=1e-6)


def _sizes_below(x):
    """The sizes of what `vmap` has wrapped."""
    while readtorch._C._functorch.is_batchedtensor(x):
        x = readtorch._C._functorch.get_unwrapped(x)
    return x.shape


# --------------------------------------------------------------------------------------------------- the public function


@pytest.fixture(autouse=True)
def warned(monkeypatch):
    """Both have said already that they are not compiled."""
    for T in (readtorch, torch):
        monkeypatch.setattr(T.nn.attention.flex_attention, "_WARNINGS_SHOWN", {"flex_attention_performance"})


def test_captured_tensors_get_gradients():
    """Found in a closure, in an object, in globals, behind a partial, through an operation."""

    def program(T, show):
        flex = T.nn.attention.flex_attention
        q, k, v = (T.randn(2, 4, n, 8) for n in (5, 7, 7))
        leaf, table = T.randn(4, requires_grad=True), T.randn(4, 12, requires_grad=True)
        slopes = leaf * 2

        class Bias(T.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = T.nn.Parameter(T.randn(4, 12))

            def relative(self, score, b, h, i, j):
                return score + self.table[h, i - j + 6]

            def forward(self, score, b, h, i, j):
                return score * self.table[h, j]

        bias = Bias()
        functions = [
            lambda score, b, h, i, j: score + leaf[h] * (i - j),
            lambda score, b, h, i, j: score + slopes[h] * (i - j) + (table * 2)[h, j],
            bias.relative,
            bias,
            lambda score, b, h, i, j: score * 0 + table[h, i],
            functools.partial(lambda bias, score, b, h, i, j: score - (bias * leaf[0])[h, j], table),
        ]
        wanted = [leaf, table, *bias.parameters()]
        for function in functions:
            out, aux = flex.flex_attention(q, k, v, function, return_aux=flex.AuxRequest(lse=True))
            show(out.grad_fn.name(), aux.max_scores, [node and node.name() for node, _ in out.grad_fn.next_functions])
            show.numbers(out, aux.lse)
            grads = T.autograd.grad((out * out).sum() + aux.lse.sum(), wanted, allow_unused=True)
            show.numbers(*(T.zeros(1) if g is None or g.abs().max() < 1e-5 else g for g in grads))
            with T.no_grad():
                show(flex.flex_attention(q, k, v, function).grad_fn)

    same(program, rtol=1e-4)


def test_types_layouts_and_scales():
    def program(T, show):
        flex = T.nn.attention.flex_attention
        mask = flex.create_block_mask(lambda b, h, i, j: (i >= j) & (j != h), 2, 4, 6, 6, BLOCK_SIZE=4)
        for dtype in (T.float32, T.float64, T.bfloat16, T.float16):
            q, k, v = (T.randn(2, 6, n, 8).to(dtype).transpose(1, 2) for n in (4, 2, 2))
            for options in ({}, {"scale": -0.3}, {"block_mask": mask}, {"block_mask": mask, "return_lse": True}):
                found = flex.flex_attention(q, k, v, enable_gqa=True, **options)
                found = found if isinstance(found, tuple) else (found,)
                show([x.stride() for x in found])
                show.numbers(*found)
        show.numbers(flex.flex_attention(q, k.to(T.float32), v.to(T.float64), enable_gqa=True))

    same(program, rtol=2e-2)


def test_a_mask_without_a_function_hides_nothing():
    """Only kernels that are compiled read the lists of blocks."""

    def program(T, show):
        flex = T.nn.attention.flex_attention
        q = T.randn(1, 2, 8, 4)
        by_hand = flex.BlockMask.from_kv_blocks(
            T.ones(1, 1, 2).int(), T.tensor([[[[0, 1], [1, 0]]]]).int(), BLOCK_SIZE=4
        )
        show(by_hand)
        show.numbers(flex.flex_attention(q, q, q, block_mask=by_hand))
        by_hand.mask_mod = lambda b, h, i, j: i // 4 == j // 4
        show.numbers(flex.flex_attention(q, q, q, block_mask=by_hand))

    same(program, rtol=1e-5)


def test_refusals():
    def program(T, show):
        flex = T.nn.attention.flex_attention
        q = T.randn(2, 4, 6, 8)
        mask = flex.create_block_mask(flex.noop_mask, None, None, 6, 6, BLOCK_SIZE=4)
        for arguments, options in [
            ((q, q[..., :4], q), {}),
            ((q, q[:, :2], q[:, :2]), {}),
            ((q, T.randn(2, 3, 6, 8), T.randn(2, 3, 6, 8)), {"enable_gqa": True}),
            ((q[0], q[0], q[0]), {}),
            ((q[0, 0, 0], q, q), {}),
            ((q, q.to("meta"), q), {}),
            ((q.to("meta"),) * 3, {}),
            ((q, q[:1], q[:1]), {}),
            ((q, q[:1], q[:1]), {"block_mask": mask}),
            ((q[:, :, :5], q, q), {"block_mask": mask}),
            ((q, T.randn(2, 4, 7, 8), T.randn(2, 4, 7, 8)), {"block_mask": mask}),
            ((q, q, q), {"block_mask": mask[0]}),
            ((q, q, q), {"return_lse": True, "return_aux": flex.AuxRequest()}),
            ((q, q, q), {"return_aux": flex.AuxRequest(max_scores=True)}),
            ((q, q, q), {"kernel_options": {"BACKEND": "NONE"}}),
            ((q, q, q), {"kernel_options": {"BACKEND": "AUTO", "FORCE_USE_FLEX_ATTENTION": True}}),
            ((q, q, q), {"kernel_options": {"BACKEND": "FLASH"}, "return_aux": flex.AuxRequest(max_scores=True)}),
            ((q, q, q), {"kernel_options": {"OUTPUT_MAX": True}}),
            ((q.clone().requires_grad_(), q, q), {}),
            ((q, q, q.clone().requires_grad_()), {}),
        ]:
            show.error(lambda: flex.flex_attention(*arguments, **options))
        show.error(lambda: flex.create_block_mask(lambda s, b, h, i, j: s, 1, 1, 4, 4))
        show.error(lambda: flex.create_block_mask(lambda i, j: i > j, 1, 1, 4, 4))
        show.error(lambda: flex.create_block_mask(flex.noop_mask, 1, 1, 4, 4, dq_kv_order=None))
        show.error(lambda: flex.create_block_mask(lambda b, h, i, j: i - j, 1, 1, 4, 4))
        show.error(lambda: flex.and_masks(flex.noop_mask, 3))
        show.error(lambda: flex.or_masks(None))
        show.error(lambda: mask[0].mask_mod(*T.arange(4)))
        show.error(lambda: flex.BlockMask.from_kv_blocks(T.ones(2).int(), T.ones(2).int()))
        show.error(lambda: flex.BlockMask.from_kv_blocks(T.ones(1, 1, 2).int(), T.ones(1, 1, 2, 2).int(), T.ones(2)))

    same(program)


def test_a_mask_that_wants_a_gradient_is_refused():
    flex, weight = readtorch.nn.attention.flex_attention, readtorch.randn(6, requires_grad=True)
    mask = flex.create_block_mask(lambda b, h, i, j: weight[i] > weight[j], None, None, 6, 6)
    q = readtorch.randn(1, 1, 6, 4)
    with pytest.raises(AssertionError, match="Captured buffers from mask mod that require grad are not supported."):
        flex.flex_attention(q, q, q, block_mask=mask)


def test_what_is_said_once():
    def program(T, show):
        flex = T.nn.attention.flex_attention
        flex._WARNINGS_SHOWN = set()
        q = T.randn(1, 1, 2, 3)
        show.warnings(lambda: flex.flex_attention(q, q, q, return_lse=True))
        show.warnings(lambda: flex.flex_attention(q, q, q, return_lse=True))

    same(program)


def test_training_on_a_device():
    """A CPU refuses gradients of query, key and value; a simulated GPU computes them."""
    flex = readtorch.nn.attention.flex_attention
    readtorch.cuda.simulate()
    try:
        inputs = [readtorch.randn(2, 2, 9, 4, device="cuda", requires_grad=True) for _ in range(3)]
        mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 9, 9, BLOCK_SIZE=4)
        assert mask.kv_indices.device.type == "cuda"
        request = flex.AuxRequest(lse=True, max_scores=True)
        out, aux = flex.flex_attention(*inputs, block_mask=mask, return_aux=request)
        expected = readtorch.nn.functional.scaled_dot_product_attention(*inputs, is_causal=True)
        weights = readtorch.randn_like(out)
        grads = [readtorch.autograd.grad((x * weights).sum(), inputs) for x in (out, expected)]
        assert all(readtorch.allclose(a, b, atol=1e-5) for a, b in zip((out, *grads[0]), (expected, *grads[1])))
        assert aux.lse.shape == aux.max_scores.shape == (2, 2, 9) and not aux.max_scores.requires_grad
        assert (aux.max_scores <= aux.lse + 1e-6).all()
    finally:
        readtorch.cuda.simulate(0)


# ----------------------------------------------------------------------------------------------------------- block masks


def test_block_masks():
    def program(T, show):
        flex = T.nn.attention.flex_attention
        documents = T.tensor([[0] * 9 + [1] * 12, [0] * 20 + [1]])

        def causal(b, h, i, j):
            return i >= j

        def by_document(b, h, i, j):
            return documents[b, i] == documents[b, j]

        def every_other(b, h, i, j):
            return (i + j + h) % 2 == 0

        both, either = flex.and_masks(causal, by_document), flex.or_masks(causal, by_document)
        for mask_mod, B, H in [
            (causal, None, None),
            (by_document, 2, 1),
            (every_other, None, 3),
            (both, 2, 2),
            (either, 2, 1),
        ]:
            for block, apart in ((4, True), ((8, 5), False), (128, True)):
                options = {"compute_dq_write_order": True, "dq_kv_order": apart}
                mask = flex.create_block_mask(
                    mask_mod, B, H, 21, 21, BLOCK_SIZE=block, separate_full_blocks=apart, **options
                )
                look(T, show, mask)
                for part in (mask[0], mask[-1, 0], mask[0:1, 0:1, :1], mask[:, :, T.tensor([0])]):
                    look(T, show, part)
                if mask_mod is causal and not apart:  # the reference's IndexError for lists that do not grow
                    look(T, show, mask._adjust(13, 8))
                look(T, show, mask.to("cpu"))
        show.numbers(flex.create_mask(both, 2, None, 5, 7))
        show.numbers(flex.create_mask(lambda s, b, h, i, j: T.where(i > j, s, -float("inf")), None, 2, 5, 7))
        show(flex.create_block_mask(causal, 3, 2, 130, 70, BLOCK_SIZE=2))
        show(flex.create_block_mask(causal, 1, 1, 130, 70, BLOCK_SIZE=2).to_string(grid_size=8, limit=1))
        show(flex.create_block_mask(causal, 1, 1, 0, 0).shape, flex.AuxRequest(), flex.AuxOutput())

    same(program)


def look(T, show, mask):
    show(repr(mask), str(mask), mask.shape, mask.numel(), mask.sparsity(), mask.seq_lengths)
    for flatten in (True, False):
        entries = mask.as_tuple(flatten)[:-1]
        show([x for x in entries if not isinstance(x, T.Tensor)])
        show.numbers(*(x for x in entries if isinstance(x, T.Tensor)))
    show.numbers(mask.to_dense())


def test_autocast_casts_query_key_and_value():
    def program(T, show):
        flex = T.nn.attention.flex_attention
        q, slopes = T.randn(2, 4, 5, 8), T.randn(4, requires_grad=True)
        for dtype in (T.bfloat16, T.float16):
            with T.autocast("cpu", dtype=dtype):
                out, aux = flex.flex_attention(
                    q, q, q, lambda s, b, h, i, j: s + slopes[h] * j, return_aux=flex.AuxRequest(lse=True)
                )
            show(aux.lse.requires_grad, out.grad_fn.name())
            show.numbers(out, aux.lse, *T.autograd.grad(aux.lse.sum(), slopes))

    same(program, rtol=2e-3)
