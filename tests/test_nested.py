"""`torch.nested`, the jagged layout, beside PyTorch: values, gradients, shapes, errors; where PyTorch has no gradient, beside the entries."""

import copy
import inspect
import io
import re

import numpy as np
import pytest
import torch

import readtorch as rt

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

GENERATOR = np.random.default_rng(0)
ENTRIES = [GENERATOR.standard_normal((n, 4)) for n in (2, 3)]
OTHERS = [GENERATOR.standard_normal((n, 4)) for n in (2, 3)]
WEIGHT, BIAS, PER_ENTRY = (GENERATOR.standard_normal(shape) for shape in ((3, 4), (3,), (2, 1, 4)))


class Given:
    """What the programs below start from, in one of the two libraries."""

    def __init__(self, T):
        self.T, self.F, self.jagged = T, T.nn.functional, T.jagged
        self.a = T.nested.nested_tensor([T.tensor(e) for e in ENTRIES], layout=T.jagged, requires_grad=True)
        self.offsets, self.j = self.a.offsets(), self.a.size(1)
        self.v = T.cat([T.tensor(e) for e in OTHERS]).requires_grad_()
        self.b = T.nested.nested_tensor_from_jagged(self.v, self.offsets, min_seqlen=2, max_seqlen=3)
        self.c = T.nested.nested_tensor([T.tensor(e) for e in OTHERS], layout=T.jagged)
        self.w, self.bias, self.d = (T.tensor(x, requires_grad=True) for x in (WEIGHT, BIAS, PER_ENTRY))
        self.leaves = {"a": self.a, "v": self.v, "w": self.w, "bias": self.bias, "d": self.d}

    def heads(self, nt):
        return nt.unflatten(-1, (2, 2)).transpose(1, 2)

    def holes(self):
        return self.T.nested.nested_tensor_from_jagged(self.v, self.offsets, self.T.tensor([1, 3]))

    def run(self, program):
        return eval(program, {name: getattr(self, name) for name in dir(self) if not name.startswith("__")})


def seen(value):
    """A result as lists and numbers that can be compared: ragged sizes have no number, which both libraries count for themselves."""
    if getattr(value, "is_nested", False):
        known = value._maybe_min_seqlen, value._maybe_max_seqlen
        lengths = None if value.lengths() is None else value.lengths().tolist()
        sizes = text(tuple(value.shape)), text(value.stride()), value._ragged_idx, value.dim(), value.numel()
        return [
            "nested",
            *sizes,
            value.is_contiguous(),
            value.offsets().tolist(),
            lengths,
            *known,
            seen(value._values.detach()),
        ]
    if isinstance(value, (torch.Tensor, rt.Tensor)):
        return [str(value.dtype), value.requires_grad, np.asarray(value.detach())]
    if isinstance(value, (list, tuple)):
        return [seen(part) for part in value]
    return value if isinstance(value, (int, float, bool, type(None))) else text(value)


def text(value):
    return re.sub(r"\bj\d+", "j", str(value).replace("readtorch", "torch"))


def compare(ours, theirs):
    assert type(ours) is type(theirs), (ours, theirs)
    if isinstance(ours, np.ndarray):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)  # some pass through float32
    elif isinstance(ours, list):
        assert len(ours) == len(theirs)
        for pair in zip(ours, theirs):
            compare(*pair)
    else:
        assert ours == theirs


def outcome(T, program, gradients=True):
    given = Given(T)
    T.manual_seed(0)
    try:
        result = given.run(program)
    except Exception as error:
        return [type(error).__name__, text(error)]
    found = [seen(result)]
    if gradients and getattr(result, "requires_grad", False):
        (result.values() if result.is_nested else result).mul(1.5).sin().sum().backward()
        grads = {name: leaf.grad for name, leaf in given.leaves.items()}
        found += [[name, None if g is None else [g.is_nested, seen(values_of(g))]] for name, g in grads.items()]
    return found


def values_of(t):
    return t.values() if t.is_nested else t


def both(program, **options):
    theirs = outcome(torch, program, **options)
    compare(outcome(rt, program, **options), theirs)
    return theirs


SAME = """
    a * 2; 1 - a; a * b; -a; a ** 2; a / 2; 1 / a; a + T.arange(4.); a * d; d * a; a == b; (a > 0) & (b > 0); ~(a > 0)
    a.exp(); a.sigmoid(); a.abs().sqrt(); a.clamp(-1, 1); a.masked_fill(a > 0, 0.); F.relu(a); F.gelu(a); F.silu(a); F.elu(a); F.softplus(a)
    T.where(a > 0, a, b); T.where(a > 0, a, 0.); T.lerp(a, b, .5); a.isnan().any(); (a == a).all(); a.bool()
    a.transpose(1, 2); a.transpose(1, 2).transpose(-1, -2); a.permute(0, 2, 1); a.mT; a.view(2, -1, 2, 2); a.reshape(2, j, 2, 2)
    a.unflatten(-1, (2, 2)); heads(a); heads(a).transpose(1, 2).flatten(-2); a.unsqueeze(-1); a.unsqueeze(-1).squeeze(-1)
    a.unsqueeze(-1).expand(2, j, 4, 3); a.flatten(2); a.view_as(b)
    a[1]; a[-1]; a[0, 1]; a[0][1]; a.select(0, 1); a.unbind(); a.unbind()[1]; [x.shape for x in a]; len(a)
    a.chunk(2, -1)[1]; a.chunk(2)[1]; T.cat([a, b], -1); T.stack([a, b], -1); T.stack([a, b], 2)
    a.sum(); a.mean(); a.mean(-1); a.amax(1); a.amin(-1); a.amax((0, 1)); a.max(); a.max(-1).values; a.max(-1).indices; a.argmax(1)
    a.argmax(-1); (a > 0).any(1); (a > 0).all(-1); a.min(1).indices; a.detach().sum(1, keepdim=True); a.detach().mean(1)
    a.softmax(-1); F.softmax(a, -1); T.softmax(a, dim=-1, dtype=T.float32); F.linear(a, w, bias); T.nn.Linear(4, 3, dtype=T.float64)(a).shape
    F.layer_norm(a, (4,)); F.layer_norm(a, (4,), d[0, 0], d[1, 0]); F.rms_norm(a, (4,), d[0, 0]); F.dropout(a, .5); F.dropout(a, .5, False)
    a @ w.T; a @ T.ones(2, 4, 3, dtype=a.dtype); T.bmm(a, T.ones(2, 4, 3, dtype=a.dtype)); a.transpose(1, 2) @ b; w @ a.transpose(1, 2)
    T.ones(2, 3, 4, dtype=a.dtype) @ a.transpose(1, 2); a.unflatten(-1, (2, 2)) @ b.unflatten(-1, (2, 2))
    F.scaled_dot_product_attention(heads(a), heads(b), heads(a)); F.scaled_dot_product_attention(heads(a), heads(b), heads(b), scale=.3)
    F.scaled_dot_product_attention(heads(a), heads(b), heads(a)).transpose(1, 2).flatten(-2)
    F.scaled_dot_product_attention(a.unflatten(-1, (1, 2, 2)), a.unflatten(-1, (1, 2, 2)), b.unflatten(-1, (1, 2, 2)))
    F.embedding(T.nested.nested_tensor([[1, 2], [0]], layout=jagged), w)
    a.to_padded_tensor(0.); a.to_padded_tensor(-1., output_size=(2, 5, 4)); T.nested.to_padded_tensor(a, 2.); b.values()
    a.contiguous(); a.clone(); a.detach(); a.to(T.float32); a.half(); a.to("cpu"); T.zeros_like(a); T.full_like(a, 3.); T.rand_like(a)
    (a * 1).add_(b); (a * 1).mul_(2); (a * 1).zero_(); (a * 1).fill_(2); (a * 1).copy_(c); (a * 1).copy_(b)
    a.numel(); T.numel(a); a.nbytes; a.size(-1); a.size(1) == b.size(1); a.size(1) == c.size(1); a.shape == (a + 1).shape; a.layout
    hash(a.shape) == hash(b.shape); a.device; a.is_leaf; a.is_nested; c.requires_grad; a.float() is a; a.double() is a
    T.autograd.grad(a.square().sum(), a)[0]; T.autograd.grad((a * a).sum(), a, create_graph=True)[0]
    T.nested.nested_tensor_from_jagged(v, lengths=T.tensor([1, 4])) * 2; T.nested.nested_tensor_from_jagged(v.T, offsets, jagged_dim=2)
    T.nested.nested_tensor_from_jagged(v, offsets).to_padded_tensor(0.); T.nested.nested_tensor_from_jagged(v, offsets) + a
    T.nested.as_nested_tensor([v[:2], v[2:]], layout=jagged); T.nested.as_nested_tensor((v, v), layout=jagged, dtype=T.float32)
    T.nested.as_nested_tensor(a, layout=jagged); T.nested.as_nested_tensor(T.ones(2, 3, 4), layout=jagged, dtype=T.float64)
    T.nested.as_nested_tensor([T.ones(2, 3), T.ones(2, 2)], layout=jagged); T.nested.nested_tensor([[1, 2], [3]], layout=jagged)
    T.nested.nested_tensor([[1, 2], [3]], layout=jagged, dtype=T.float32, requires_grad=True) * 2
    T.nested.nested_tensor([T.ones(0, 4), T.ones(2, 4)], layout=jagged).sum(1)
    holes(); holes().unbind()[1]; holes().numel(); holes().sin()
    T.nested.narrow(T.arange(30.).view(3, 5, 2), 1, T.tensor([0, 1, 2]), T.tensor([2, 3, 1]), layout=jagged)
    T.nested.narrow(T.arange(30.).view(3, 5, 2), 1, 1, 3, layout=jagged); T.nested.narrow(T.arange(30.).view(3, 5, 2), 1, 0, 5, layout=jagged)
    T.nested.masked_select(T.arange(9.).view(3, 3), T.arange(9).view(3, 3) % 4 > 1); T.nested.masked_select(T.ones(3, 3), T.tensor([False]))
"""


@pytest.mark.parametrize("programs", SAME.strip().split("\n"), ids=lambda line: line.strip()[:30])
def test_values_gradients_and_structure(programs):
    for program in filter(None, map(str.strip, programs.split(";"))):
        assert not str(both(program)[0]).endswith("Error"), program


WRONG = """
    a + c; a * T.ones(3, 1, 4); a * T.ones(2, 2, 4); a + T.ones(5); a + T.ones(1, 1, 1, 4); a.transpose(0, 1); a.permute(1, 0, 2)
    a.permute(0, 1); a.permute(0, 1, 1); a.view(-1); a.view(2, 3, -1); a.flatten(); a.flatten(1); a.squeeze(1); a.expand(3, j, 4)
    a.transpose(1, 2).view(2, 2, 2, j); a.unsqueeze(0); a[1:]; a.narrow(1, 0, 1); a.unbind(1); a.chunk(3, 1); a.transpose(1, 2).chunk(2, 1)
    a.split(1, 1); T.cat([a, b], 0); T.cat([a, b], 1); T.stack([a, d]); T.stack([a, c], -1); T.stack([a, a.unsqueeze(-1)], -1)
    a.sum(0); a.sum((1, 2)); a.mean((0, 2)); a.sum(5); holes().sum(1); holes().to_padded_tensor(0); a.cumsum(1); a.sort(); a.std(); a.repeat(1, 1, 2)
    a.softmax(0); F.log_softmax(a, 1); F.log_softmax(a, 0); a.transpose(1, 2).softmax(2); holes().softmax(1)
    F.linear(a.transpose(1, 2), w); F.linear(holes(), w); F.layer_norm(a.sum(-1), (3,)); F.layer_norm(a, (2, j, 4)); F.rms_norm(a, (3, 4))
    a @ a; a @ T.ones(3); T.bmm(a, T.ones(4, 3)); T.addcmul(a, a, a); T.where(a > 0, a, T.ones(2, 1, 4))
    F.scaled_dot_product_attention(a, d, a); F.scaled_dot_product_attention(heads(a), heads(a), heads(a), attn_mask=d)
    F.scaled_dot_product_attention(a, a.float(), a); F.scaled_dot_product_attention(a.sum(-1), a, a)
    F.scaled_dot_product_attention(heads(a), a.unflatten(-1, (2, 2)), a); F.scaled_dot_product_attention(a, a, a)
    (a * 1).copy_(v); (a * 1).copy_(T.nested.nested_tensor([v[:1], v[1:]], layout=jagged)); a.backward(); a.tolist(); a.numpy()
    T.nested.nested_tensor_from_jagged(v); T.nested.nested_tensor_from_jagged(v, offsets, jagged_dim=0)
    T.nested.nested_tensor_from_jagged(v, offsets, T.tensor([1, 3, 3])); T.nested.nested_tensor_from_jagged(v, offsets[None])
    T.nested.as_nested_tensor(a); T.nested.as_nested_tensor(3); T.nested.as_nested_tensor(T.ones(2)); T.nested.as_nested_tensor([], layout=jagged)
    T.nested.as_nested_tensor([T.ones(2, 3), T.ones(3, 2)], layout=jagged); T.nested.as_nested_tensor([T.ones(2), T.ones(2, 2)], layout=jagged)
    T.nested.as_nested_tensor([T.ones(2), T.ones(2).double()], layout=jagged); T.nested.as_nested_tensor([T.tensor(1.)], layout=jagged)
    T.nested.nested_tensor([T.ones(2)], layout=T.sparse_coo); T.nested.nested_tensor(3, layout=jagged)
    T.nested.narrow(T.ones(3, 5), 2, 0, 1, layout=jagged); T.nested.narrow(T.ones(3, 5), 1, 0., 1, layout=jagged)
    T.nested.narrow(T.ones(3, 5), 1, 0, 1, layout=T.sparse_coo); T.nested.narrow(T.ones(3, 5), 1, 0, T.tensor([1, 2]), layout=jagged)
    T.nested.masked_select(T.ones(2, 2).to_sparse(), T.ones(2, 2) > 0); T.nested.masked_select(T.ones(2, 2), (T.ones(2, 2) > 0).to_sparse())
    j > 3; j <= 2; j * j; j + 1; int(j); range(j)
"""


@pytest.mark.parametrize("programs", WRONG.strip().split("\n"), ids=lambda line: line.strip()[:30])
def test_errors(programs):
    for program in filter(None, map(str.strip, programs.split(";"))):
        assert str(both(program)[0]).endswith("Error"), program


def test_a_ragged_size():
    for program in "j == j, j != j, j == 3, j > 1, j < 2, 2 <= j, j * 4, 4 * j, j * 4 == 4 * j, j * 4 > j, bool(j), isinstance(j, int)".split(
        ", "
    ):
        both(program)
    shapes = [str(rt.nested.nested_tensor([[1.0], [2.0, 3.0]], layout=rt.jagged).shape) for _ in range(2)]
    number = int(re.search(r"j(\d+)", shapes[0])[1])
    assert shapes == [f"torch.Size([2, j{number}])", f"torch.Size([2, j{number + 1}])"]


def test_printed():
    def program(T):
        given = Given(T)
        printed = [repr(t) for t in (given.a, given.a * 2, given.c, given.a.transpose(1, 2), given.holes())]
        return [re.sub(r" at 0x\w+|Backward\d?", "", text(line)) for line in printed]

    ours, theirs = program(rt), program(torch)
    assert ours == theirs


def test_signatures():
    assert rt.nested.__all__ == torch.nested.__all__
    for name in set(torch.nested.__all__) - {"to_padded_tensor"}:
        ours, theirs = (inspect.signature(getattr(T.nested, name)).parameters.values() for T in (rt, torch))
        assert [(p.name, p.kind, text(p.default)) for p in ours] == [(p.name, p.kind, text(p.default)) for p in theirs]


def test_the_strided_layout_is_refused():
    for make in (
        lambda **k: rt.nested.nested_tensor([rt.ones(2)], **k),
        lambda **k: rt.nested.as_nested_tensor([rt.ones(2)], **k),
    ):
        for options in ({}, {"layout": rt.strided}):
            with pytest.raises(
                NotImplementedError, match="no nested tensors of the strided layout.*pass layout=torch.jagged"
            ):
                make(**options)
    with pytest.raises(NotImplementedError, match="strided layout"):
        rt.nested.narrow(rt.ones(2, 3), 1, 0, 1)
    with pytest.raises(NotImplementedError, match="to_padded_tensor"):
        rt.nested.to_padded_tensor(rt.ones(2, 3), 0)


# What PyTorch computes and has no derivative for on the CPU, or a wrong one (softmax over the ragged dimension): for each entry, x.
BY_ENTRY = {
    "a.sum(-1)": "x.sum(-1)",
    "a.sum(1)": "x.sum(0)",
    "a.sum(1, keepdim=True)": "x.sum(0, keepdim=True)",
    "a.mean(1)": "x.mean(0)",
    "a.prod(1)": "x.prod(0)",
    "a.prod(-1)": "x.prod(-1)",
    "a.max(1)[0]": "x.max(0)[0]",
    "a.softmax(1)": "x.softmax(0)",
    "F.log_softmax(a, -1)": "F.log_softmax(x, -1)",
    "F.leaky_relu(a)": "F.leaky_relu(x)",
    "a.select(-1, 1)": "x.select(-1, 1)",
    "a[..., 1]": "x[..., 1]",
    "a.narrow(-1, 1, 2)": "x.narrow(-1, 1, 2)",
    "a.split([1, 3], -1)[1]": "x[:, 1:]",
    "T.maximum(a, a * a)": "T.maximum(x, x * x)",
    "a.transpose(1, 2).to_padded_tensor(0.)[:, :, :2]": "x.T[:, :2]",
}


@pytest.mark.parametrize("program", BY_ENTRY)
def test_gradients_beside_the_entries(program):
    theirs = outcome(torch, program, gradients=False)
    compare(outcome(rt, program, gradients=False), theirs)
    given, entries = Given(rt), [torch.tensor(e, requires_grad=True) for e in ENTRIES]
    (values_of(given.run(program)) * 1.5).sin().sum().backward()
    for x in entries:
        (eval(BY_ENTRY[program], {"T": torch, "F": torch.nn.functional, "x": x}) * 1.5).sin().sum().backward()
    np.testing.assert_allclose(
        np.asarray(given.a.grad.values()), np.asarray(torch.cat([x.grad for x in entries])), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("is_causal", [False, True])
def test_a_layer_of_attention(is_causal):
    """Over sequences of 3, 1 and 5 positions: as each by itself. in PyTorch: is_causal is refused on the CPU."""
    draw = np.random.default_rng(1)
    sequences = [draw.standard_normal((n, 8)) for n in (3, 1, 5)]
    weights = [draw.standard_normal(shape) for shape in ((24, 8), (24,), (8, 8), (8,))]

    def layer(T, x, parameters, dims):
        F = T.nn.functional
        wide, bias, out, norm = parameters
        normed = F.layer_norm(x, (8,), norm)
        q, k, v = (t.unflatten(-1, (2, 4)).transpose(*dims) for t in F.linear(normed, wide, bias).chunk(3, -1))
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)
        return x + F.linear(attended.transpose(*dims).flatten(-2), out).relu()

    ours = [rt.tensor(w, requires_grad=True) for w in weights]
    x = rt.nested.nested_tensor([rt.tensor(s) for s in sequences], layout=rt.jagged, requires_grad=True)
    result = layer(rt, x, ours, (1, 2))
    result.values().square().sum().backward()

    theirs = [torch.tensor(w, requires_grad=True) for w in weights]
    inputs = [torch.tensor(s, requires_grad=True) for s in sequences]
    results = [layer(torch, s, theirs, (0, 1)) for s in inputs]
    torch.cat(results).square().sum().backward()

    close = {"rtol": 1e-9, "atol": 1e-9}
    assert text(result.shape) == "torch.Size([3, j, 8])" and result.size(1) == x.size(1)
    np.testing.assert_allclose(np.asarray(result.values().detach()), np.asarray(torch.cat(results).detach()), **close)
    np.testing.assert_allclose(np.asarray(x.grad.values()), np.asarray(torch.cat([s.grad for s in inputs])), **close)
    for mine, expected in zip(ours, theirs):
        np.testing.assert_allclose(np.asarray(mine.grad), np.asarray(expected.grad), **close)


def test_holes_are_closed_and_keep_their_gradient():
    given = Given(rt)
    closed = given.holes().contiguous()
    assert closed.offsets().tolist() == [0, 1, 4] and closed.lengths() is None
    closed.values().sum().backward()
    assert given.v.grad.tolist() == [[1.0] * 4, [0.0] * 4, [1.0] * 4, [1.0] * 4, [1.0] * 4]
    overlapping = rt.nested.narrow(
        rt.arange(10.0).view(2, 5), 1, rt.tensor([0, 2]), rt.tensor([5, 3]), layout=rt.jagged
    )
    assert [x.tolist() for x in overlapping.unbind()] == [[0, 1, 2, 3, 4], [7, 8, 9]]


def test_slices_that_leave_the_batch_as_it_is():
    """in PyTorch: `:` for the batch is refused as if it took a part of it."""
    given = Given(rt)
    assert given.a[:, :, 1:3].values().tolist() == given.a.values()[:, 1:3].tolist()
    assert [x.tolist() for x in given.a[..., 1].unbind()] == [x[:, 1].tolist() for x in given.a.unbind()]


def test_copied_saved_and_loaded():
    given = Given(rt)
    for copied in (copy.deepcopy(given.a), _loaded(given.a)):
        assert type(copied) is type(given.a) and copied.requires_grad and copied.offsets().tolist() == [0, 2, 5]
        assert copied.values().tolist() == given.a.values().tolist()


def _loaded(t):
    file = io.BytesIO()
    rt.save(t, file)
    file.seek(0)
    return rt.load(file)
