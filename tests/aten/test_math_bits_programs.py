"""Random programs of complex operators, conjugate and negative views, in-place writes and `out=`: after each line every tensor
has the elements, flags, strides, version and node that it has in PyTorch."""

import os
import random
import re
import warnings

import numpy as np
import pytest
import torch

import readtorch

PROGRAMS = int(os.environ.get("READTORCH_MATH_BITS_PROGRAMS", 2000))
PARTS = 20

VIEWS = (
    "{x}.conj()", "{x}.conj()", "{x}._neg_view()", "T.view_as_real({x})", "{x}.imag", "{x}.real", "T._conj({x})", "{x}.T",
    "{x}[0]", "{x}[..., 1:]", "{x}.reshape(-1)", "{x}.view(-1)", "{x}.unsqueeze(0)", "{x}.expand(2, *{x}.shape)", "{x}.detach()",
    "{x}.data", "T.view_as_complex({x})", "{x}.mH", "{x}.H", "{x}.adjoint()", "{x}.diagonal()", "{x}.squeeze()", "{x}.flatten()",
    "{x}.contiguous()", "{x}.movedim(0, -1)", "{x}.narrow(-1, 0, 1)", "{x}.chunk(2)[0]", "{x}.split(1)[-1]", "{x}.unbind()[0]",
    "{x}.view_as({x})", "{x}.as_strided((2,), (1,))", "{x}.swapaxes(0, -1)", "{x}.unflatten(-1, (-1, 1))", "T.atleast_2d({x})",
    "{x}.to({x}.dtype)", "+{x}", "T.broadcast_to({x}, (2, *{x}.shape))", "{x}.unfold(-1, 1, 1)", "{x}.permute(*range({x}.dim()))",
)  # fmt: skip
MADE = (
    "{x}.resolve_conj()", "{x}.resolve_neg()", "{x}.clone()", "{x} + {y}", "{x} * {y}", "{x} - {y}", "{x} / (2 + {y}.abs())",
    "-{x}", "{x}.abs()", "{x}.sum()", "{x}.sum(-1)", "{x} @ {y}", "{x}.mm({y})", "{x}.conj_physical()", "T.conj_physical({x})",
    "T._conj_physical({x})", "T.cat([{x}, {y}])", "T.stack([{x}, {x}])", "{x}.exp()", "{x}.sin()", "T.where({x} == {y}, {x}, {y})",
    "{x}.to(T.complex128)", "{x}.double()", "T.empty_like({x}).fill_(2)", "T.zeros_like({x})", "T.full_like({x}, 2)",
    "{x}.new_zeros(2)", "T.vdot({x}.flatten(), {y}.flatten())", "T.dot({x}.flatten(), {y}.flatten())", "T.bmm({x}[None], {y}[None])",
    "T.addmm({x}, {x}, {y})", "T.baddbmm({x}[None], {x}[None], {y}[None])", "{x}.matmul({y})", "{x}.tril()", "{x}.flip(0)",
    "{x}.repeat(2, 1)", "{x}.mean()", "{x}.prod()", "{x}.sgn()", "{x}.pow(2)", "{x}[[0]]", "{x}[{x}.abs() > 1.1]", "{x}.angle()",
    "{x}.index_select(0, T.tensor([0]))", "T.einsum('...i->...', {x})", "T.outer({x}.flatten(), {y}.flatten())", "T.polar({x}.abs(), {y}.abs())",
    "{x}.diff()", "T.linalg.vector_norm({x})", "T.complex({x}.abs(), {y}.abs())", "{x}.repeat_interleave(2)",
    "T.view_as_real({x}.resolve_conj()).sum(-1)", "T.linalg.solve_triangular({x} + 3 * T.eye(2), {x}, upper=True)", "{x}.square()",
)  # fmt: skip
WRITES = (
    "{x}.add_({y})", "{x}.mul_(1.5)", "{x}.mul_({y})", "{x}.copy_({y})", "{x}.zero_()", "{x}.fill_(2)", "{x}.neg_()",
    "{x}.conj_physical_()", "{x}[0] = {y}[0].clone()", "{x}[..., 0] = 1.5", "{x}.imag.add_(1)", "{x}.real = {y}.real.clone()", "{x}.imag = {y}.imag.clone()",
    "{x}.sub_({y}.clone(), alpha=2)", "{x}.t_()", "{x}.squeeze_()", "{x}.unsqueeze_(0)", "{x}.sqrt_()", "{x}.square_()", "{x}.tril_()",
    "{x}.addmm_({x}.clone(), {y}.clone())", "{x}.index_fill_(0, T.tensor([0]), 2)", "{x}.masked_fill_({x}.abs() > 1.1, 3)", "{x}.conj().add_({y})",
    "{x}.conj().imag.mul_(2)", "T.add({x}, {y}, out={z})", "T.mul({x}, {y}, out={z})", "T.mm({x}, {y}, out={z})", "T.neg({x}, out={z})",
    "T.cat([{x}, {y}], out={z})", "{x}.resize_(1)",
    "{x}.clamp_(0, 1)", "{x}.add_({x}.conj())", "{x}.copy_({x}.conj())", "{x}.exp_()",
    "{x}.data = {x}.conj()", "{x}.index_put_((T.tensor([0]),), {y}[0])", "T.view_as_real({x}).mul_(2)", "{x}.swapaxes_(0, 1)",
)  # fmt: skip


GEOMETRY_IN_PLACE = re.compile(r"(t|squeeze|swapaxes)_\(")
OUTPUTS = "opq"  # what is handed to `out=`, and to nothing else


class Side:
    """The variables of a program in one of the libraries."""

    def __init__(self, T, numbers, requires_grad):
        self.T = T
        self.leaves = [T.tensor(n.tolist(), dtype=T.complex64) for n in numbers]
        self.variables = {"a": self.leaves[0], "b": self.leaves[1], "r": T.tensor(numbers[0].real.tolist())}
        o, p, q = (T.zeros(2, 2, dtype=T.complex64) for _ in range(3))
        self.variables |= {"o": o.conj(), "p": p._neg_view(), "q": q}
        if requires_grad:
            self.leaves[0].requires_grad_()
            self.variables["a"] = self.leaves[0] * 1

    def run(self, line):
        """What went wrong: the error's type and text, or None."""
        try:
            exec(line, {"T": self.T}, self.variables)
        except Exception as error:
            return type(error).__name__, str(error)

    def states(self):
        return {name: state(t) for name, t in self.variables.items() if name != "_"}


def state(t):
    node = t.grad_fn
    return {
        "dtype": str(t.dtype).rpartition(".")[2],
        "shape": tuple(t.shape),
        "strides": [step for n, step in zip(t.shape, t.stride()) if n > 1] if t.numel() else None,
        "offset": t.storage_offset(),
        "conj": t.is_conj(),
        "neg": t.is_neg(),
        "version": t._version,
        "is view": t._is_view(),
        "node": None if node is None else "a view" if node.name() in MADE_AGAIN else node.name(),
    }


# What the node of a view may be that was made again after a write: in PyTorch the view keeps the functions that made it.
MADE_AGAIN = (
    "AsStridedBackward0",
    "ConjBackward0",
    "NegViewBackward0",
    "ViewAsRealBackward0",
    "ViewAsComplexBackward0",
)


def elements(t):
    return np.array(t.detach().resolve_conj().resolve_neg().tolist())


def next_line(chance, names):
    """A line, and the name that it binds."""
    x, y = (chance.choice([name for name in names if name not in OUTPUTS]) for _ in range(2))
    z = chance.choice(OUTPUTS)
    kind = chance.random()
    name = chance.choice("cdefgh")
    pattern = chance.choice(VIEWS if kind < 0.45 else MADE if kind < 0.7 else WRITES)
    line = pattern.format(x=x, y=y, z=z)
    return f"{name} = {line}" if kind < 0.7 else line


def same(ours, theirs):
    if ours.shape != theirs.shape:
        return False
    with np.errstate(all="ignore"):
        return np.allclose(ours, theirs, rtol=2e-4, atol=1e-4, equal_nan=True)


def check(seed):
    chance = random.Random(seed)
    numbers = [
        np.array([[complex(chance.randint(-3, 3), chance.randint(-3, 3)) for _ in range(2)] for _ in range(2)])
        for _ in range(2)
    ]
    requires_grad = chance.random() < 0.5
    ours, theirs = Side(readtorch, numbers, requires_grad), Side(torch, numbers, requires_grad)
    lines = [f"a, b = {numbers[0].tolist()}, {numbers[1].tolist()}  requires_grad={requires_grad}"]
    for _ in range(chance.randint(3, 9)):
        line = next_line(chance, sorted(theirs.variables))
        if requires_grad and GEOMETRY_IN_PLACE.search(line):
            continue  # in PyTorch the view's node changes, but not its base's
        lines.append(line)
        text = f"seed {seed}\n" + "\n".join(lines)
        expected, found = theirs.run(line), ours.run(line)
        assert (found is None) == (expected is None), f"{text}\n{found} instead of {expected}"
        if expected is not None:
            lines.pop()
            if "=" in line.partition("(")[0]:
                continue
            return  # what was to be written to may have another size by now, or not
        try:
            before = theirs.states()
        except RuntimeError:
            return  # a view whose history PyTorch cannot tell any more
        after = ours.states()
        assert after == before, f"{text}\n{differences(after, before)}"
        for name, t in theirs.variables.items():
            a, b = elements(ours.variables[name]), elements(t)
            if not np.isfinite(b).all():
                return  # what follows from it is not determined
            assert same(a, b), f"{text}\n{name}: {a} instead of {b}"
    if requires_grad:
        compare_gradients(ours, theirs, "\n".join(lines))


def differences(ours, theirs):
    return [
        f"{name}.{what}: {ours[name][what]} instead of {theirs[name][what]}"
        for name in theirs
        for what in theirs[name]
        if ours[name][what] != theirs[name][what]
    ]


def compare_gradients(ours, theirs, text):
    """The gradient of all that requires one, in the order of names."""
    errors, grads = [], []
    for side in (ours, theirs):
        wanted = [
            t
            for _, t in sorted(side.variables.items())
            if t.requires_grad and (t.is_complex() or t.is_floating_point())
        ]
        try:
            total = sum(side.T.view_as_real(t.resolve_conj()).sum() if t.is_complex() else t.sum() for t in wanted)
            if wanted:
                total.backward()
            errors.append(None)
        except RuntimeError as error:
            errors.append(str(error).partition("Hint")[0])
        grads.append(side.leaves[0].grad)
    assert (errors[0] is None) == (errors[1] is None), f"{text}\n{errors[0]} instead of {errors[1]}"
    if errors[1] is None and grads[1] is not None:
        b = elements(grads[1])
        if np.isfinite(b).all():
            assert same(elements(grads[0]), b), f"{text}\ngradient {elements(grads[0])} instead of {b}"
            assert grads[0].is_conj() == grads[1].is_conj(), f"{text}\nthe gradient's bit"


@pytest.mark.parametrize("part", range(PARTS))
def test_programs(part):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for seed in range(part, PROGRAMS, PARTS):
            check(seed)
