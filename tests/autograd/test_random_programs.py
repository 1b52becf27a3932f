"""Random programs of views, in-place writes, hooks and modes: every tensor's place in the graph, and every gradient, as in PyTorch."""

import random

import pytest
import torch

import readtorch
from tests.programs import Show

FUNCTIONS = {
    "exp": lambda T, a, b: (a / 8).exp(),
    "sigmoid": lambda T, a, b: a.sigmoid(),
    "mul": lambda T, a, b: a * b,
    "add": lambda T, a, b: a + b,
    "square": lambda T, a, b: a * a,
    "sub": lambda T, a, b: T.sub(a, b, alpha=3),
    "where": lambda T, a, b: T.where(a > b, a, b),
    "sum": lambda T, a, b: a.sum(0),
    "cat": lambda T, a, b: T.cat([a, a]),
    "stack": lambda T, a, b: T.stack([a, a], -1),
    "clone": lambda T, a, b: a.clone(),
    "detach": lambda T, a, b: a.detach(),
    "data": lambda T, a, b: a.data,
    "relu": lambda T, a, b: a.relu(),
    "pow": lambda T, a, b: a.pow(2),
    "mean": lambda T, a, b: a.mean(-1, keepdim=True),
    "matmul": lambda T, a, b: a.reshape(-1) @ a.reshape(-1),
    "max": lambda T, a, b: a.max(0)[0],
    "cumsum": lambda T, a, b: a.cumsum(0),
}
VIEWS = {
    "first": lambda T, a, b: a[0],
    "rest": lambda T, a, b: a[1:],
    "every_other": lambda T, a, b: a[..., ::2],
    "t": lambda T, a, b: a.t(),
    "flat": lambda T, a, b: a.view(-1),
    "unsqueeze": lambda T, a, b: a.unsqueeze(0),
    "expand": lambda T, a, b: a.expand(2, *a.shape),
    "unbind": lambda T, a, b: a.unbind(0)[-1],
    "split": lambda T, a, b: a.split(1)[-1],
    "chunk": lambda T, a, b: a.chunk(2, -1)[0],
    "narrow": lambda T, a, b: a.narrow(0, 1, 1),
    "diagonal": lambda T, a, b: a.diagonal(),
    "squeeze": lambda T, a, b: a.squeeze(0),
    "view_as": lambda T, a, b: a.view_as(a),
    "alias": lambda T, a, b: a[:],
    "permute": lambda T, a, b: a.movedim(0, -1),
    "strided": lambda T, a, b: a.as_strided((2,), (1,)),
}
WRITES = {
    "mul_": lambda T, a, b: a.mul_(b),
    "add_": lambda T, a, b: a.add_(1),
    "exp_": lambda T, a, b: a.div_(8).exp_(),
    "zero_": lambda T, a, b: a.zero_(),
    "copy_": lambda T, a, b: a.copy_(b),
    "first =": lambda T, a, b: a.__setitem__(0, b.sum()),
    "rest *=": lambda T, a, b: a[1:].mul_(2),
    "sigmoid_": lambda T, a, b: a.sigmoid_(),
    "relu_": lambda T, a, b: a.relu_(),
    "detach_": lambda T, a, b: a.detach_(),
    "fill_": lambda T, a, b: a.fill_(0.5),
    "row +=": lambda T, a, b: a[0].add_(b.mean()),
    "masked": lambda T, a, b: a.masked_fill_(a > 1, 0.25),
    "mask =": lambda T, a, b: a.__setitem__(a > 0.5, 0.75),
    "addcmul_": lambda T, a, b: a.addcmul_(b, b),
    "swap": lambda T, a, b: a.transpose_(0, -1),
    "squeeze_": lambda T, a, b: a.unsqueeze_(0).squeeze_(0),
}
OTHERS = {
    "retain": lambda T, a, b: a.retain_grad(),
    "hook": lambda T, a, b: a.register_hook(lambda g: g * 2) and None,
    "require": lambda T, a, b: a.requires_grad_() if not a._is_view() else None,
    "not required": lambda T, a, b: a.requires_grad_(False) if a.grad_fn else None,
    "look": lambda T, a, b: a.grad_fn and None,
    "backward": lambda T, a, b: a.sum().backward(retain_graph=True),
    "grad": lambda T, a, b: T.autograd.grad(a.sum(), b, retain_graph=True, allow_unused=True)[0],
}
KINDS = (FUNCTIONS, VIEWS, WRITES, OTHERS)


def custom(T, name):
    """A function of one's own: out of place, in place, of several outputs, of what has no gradient, of an input itself."""

    class Custom(T.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a.clone() if "dirty" in name else a, b)
            ctx.set_materialize_grads("lazily" not in name)
            if "dirty" in name:
                ctx.mark_dirty(a)
                return (a.mul_(2), b.exp()) if "pair" in name else a.mul_(2)
            if name == "still":
                signs = a.sign()
                ctx.mark_non_differentiable(signs)
                return a * 2, signs
            return a if name == "input" else (a * 2, b.exp())

        @staticmethod
        def backward(ctx, *grads):
            a, b = ctx.saved_tensors
            first = grads[0]
            if first is not None:
                first = first * 2
            second = grads[1] if len(grads) > 1 and name != "still" else None
            return first, None if second is None else second * b.exp()

    return Custom.apply


def not_leaf(a):
    return a.clone() if a.is_leaf and a.requires_grad else a


def one_of(result):
    return result[0] if isinstance(result, tuple) else result


CUSTOM = {
    f"custom {name}": lambda T, a, b, name=name: one_of(custom(T, name)(not_leaf(a) if "dirty" in name else a, b))
    for name in ("pair", "pair lazily", "dirty", "dirty lazily", "dirty pair", "still", "input")
} | {
    "custom second": lambda T, a, b: custom(T, "pair lazily")(a, b)[1],
    "custom signs": lambda T, a, b: custom(T, "still")(a, b)[1],
    "custom second, dirty": lambda T, a, b: custom(T, "dirty pair")(not_leaf(a), b)[1],
}
ALL_KINDS = (*KINDS, CUSTOM)
MODES = (
    ("", "", "no_grad"),
    ("",),
    ("", "", "no_grad"),
    ("",),
    ("",),
)  # what views made without a graph become is another matter


def drawn(seed, kinds=KINDS):
    """[(mode, family, name, number of a tensor, number of another)]"""
    chance, steps = random.Random(seed), []
    for _ in range(chance.randint(4, 12)):
        family = chance.choices(range(len(kinds)), (4, 4, 4, 2, 5)[: len(kinds)])[0]
        steps.append(
            (
                chance.choice(MODES[family]),
                family,
                chance.choice(sorted(kinds[family])),
                chance.randrange(50),
                chance.randrange(50),
            )
        )
    return steps


def described(t, tensors):
    base = t._base
    kin = None if base is None else next((i for i, other in enumerate(tensors) if other is base), "unnamed")
    return (
        tuple(t.shape),
        t.stride(),
        t.storage_offset(),
        t.requires_grad,
        t.is_leaf,
        t.is_inference(),
        None if t.is_inference() else t._version,
        t._is_view(),
        kin,
        t.output_nr,
        t.retains_grad,
        written(t.grad_fn),
    )


def written(node, depth=4):
    """The names of a node and of those behind it."""
    if node is None or not depth:
        return node and node.name()
    return node.name(), [(number, written(following, depth - 1)) for following, number in node.next_functions]


def program(seed, kinds=KINDS):
    def run(T, show):
        def numbers(*tensors):
            show([t if t is None else [round(x, 6) for x in t.detach().reshape(-1).tolist()] for t in tensors])

        tensors = [
            T.tensor([[1.0, 2.0], [0.5, -1.0]], dtype=T.float64, requires_grad=True),
            T.tensor([0.75, 1.5], dtype=T.float64, requires_grad=True),
            T.tensor([[0.25, 2.0], [3.0, -0.5]], dtype=T.float64),
        ]
        for mode, family, name, i, j in drawn(seed, kinds):
            a, b = tensors[i % len(tensors)], tensors[j % len(tensors)]
            try:
                with getattr(T, mode or "enable_grad")():
                    made = kinds[family][name](T, a, b)
            except Exception as error:
                show(mode, name, type(error).__name__, str(error).partition("\n")[0])
                continue
            if made is not None and not any(made is t for t in tensors):
                tensors.append(made)
            show(mode, name, i % len(tensors), *[described(t, tensors) for t in (made, a) if t is not None])
        for t in tensors:
            show(described(t, tensors))
        numbers(*tensors)
        for t in tensors:
            if t.requires_grad:
                show.error(lambda t=t: (t * 2).sum().backward(retain_graph=True))
        numbers(*[t.grad for t in tensors if t.is_leaf or t.retains_grad])
        for t in [t for t in tensors if t.requires_grad] * 2:  # the second time most graphs are gone
            show.error(lambda t=t: (t * 2).sum().backward())

    return run


# What readtorch does otherwise: gradients that were added before an error came, views of detached bases that get a graph later, overlapping
# operands, strides of `where`, and one message.
OTHERWISE = {77, 83, 93, 110, 130, 134, 145, 150, 203, 247, 252, 286}


# Of programs with functions of one's own, besides: what comes first of two errors and which gradients were added before, refusals of
# several outputs where a view is written to, an input that is handed back without a graph.
OTHERWISE_CUSTOM = set(
    map(
        int,
        "0 8 40 44 51 67 71 73 83 90 94 102 110 120 122 125 134 138 153 164 180 181 191 203 216 220 223 234 "
        "247 251 265 278 292".split(),
    )
)


@pytest.mark.parametrize("part", range(12))
def test_random_programs(part):
    compare(set(range(25 * part, 25 * part + 25)) - OTHERWISE, KINDS)


@pytest.mark.parametrize("part", range(12))
def test_random_programs_with_custom_functions(part):
    compare(set(range(25 * part, 25 * part + 25)) - OTHERWISE_CUSTOM, ALL_KINDS)


def compare(seeds, kinds):
    compared = 0
    for seed in seeds:
        expected = outcome(seed, torch, kinds)
        # PyTorch refuses to name the node of a view that became stale where it may not; readtorch refuses only to write it
        if not any("its base or another view of its base" in line for line in expected):
            assert outcome(seed, readtorch, kinds) == expected, seed
            compared += 1
    assert compared > 10


def outcome(seed, T, kinds=KINDS):
    show = Show()
    try:
        program(seed, kinds)(T, show)
    except RuntimeError as error:
        show(error)
    return show.lines
