"""Conjugate, negative and zero tensors as PyTorch has them: flags, memory, words, files, graphs, traces."""

import copy
import io
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import readtorch
from readtorch.aten.dispatcher import registry
from tests.conformance import math_bits
from tests.reference import both, own_copy, tensors, to_readtorch

BOTH = (torch, readtorch)
COMPLEX = (torch.complex64, torch.complex128)


def z(T, requires_grad=False):
    return T.tensor([[1 + 2j, 3 - 1j], [0.5j, -2]], requires_grad=requires_grad)


def seen(T, value, version=False):
    """What can be asked of a tensor, as plain values."""
    if not isinstance(value, T.Tensor):
        return value
    return {
        "values": value.detach().resolve_conj().resolve_neg().tolist(),
        "bits": (value.is_conj(), value.is_neg(), value._is_zerotensor()),
        "geometry": (tuple(value.shape), value.stride(), value.storage_offset(), str(value.dtype).rpartition(".")[2]),
        "view": value._is_view(),
        "version": value._version if version else None,
        "node": value.grad_fn and value.grad_fn.name(),
    }


def run(T, function):
    try:
        return seen(T, function(T))
    except Exception as error:
        return type(error).__name__, str(error)


def same(function):
    theirs, ours = rounded(run(torch, function)), rounded(run(readtorch, function))
    assert ours == theirs, f"{ours}\ninstead of\n{theirs}"


def rounded(value):
    """The numbers in any nesting, to five digits."""
    if isinstance(value, (list, tuple)):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {name: rounded(v) for name, v in value.items()}
    if isinstance(value, complex):
        return complex(rounded(value.real), rounded(value.imag))
    return float(f"{value:.5g}") if isinstance(value, float) else value


VIEWS = {
    "conj": lambda T, x: x.conj(),
    "conj of conj": lambda T, x: x.conj().conj(),
    "_conj": lambda T, x: T._conj(x),
    "_neg_view": lambda T, x: T._neg_view(x),
    "imag": lambda T, x: x.conj().imag,
    "real": lambda T, x: x.conj().real,
    "imag of a negative": lambda T, x: x._neg_view().conj().imag,
    "H": lambda T, x: x.H,
    "mH": lambda T, x: x.mH,
    "adjoint": lambda T, x: x.adjoint(),
    "view_as_real of a negative": lambda T, x: T.view_as_real(x._neg_view()),
    "view_as_complex of a negative": lambda T, x: T.view_as_complex(T.view_as_real(x)._neg_view()),
    "reshape": lambda T, x: x.conj().reshape(-1),
    "contiguous": lambda T, x: x.conj().contiguous(),
    "contiguous of a transpose": lambda T, x: x.conj().t().contiguous(),
    "index": lambda T, x: x.conj()[0, 1:],
    "detach": lambda T, x: x.conj().detach(),
    "data": lambda T, x: x.conj().data,
    "resolve_conj": lambda T, x: x.conj().resolve_conj(),
    "resolve_neg": lambda T, x: x.conj().imag.resolve_neg(),
    "clone": lambda T, x: x.conj().clone(),
    "conj_physical": lambda T, x: x.conj().conj_physical(),
    "_conj_physical": lambda T, x: T._conj_physical(x.conj()),
    "conj_physical of a plain tensor": lambda T, x: T.conj_physical(x),
    "to another dtype": lambda T, x: x.conj().to(T.complex128),
    "to its own dtype": lambda T, x: x.conj().to(T.complex64),
    "empty_like": lambda T, x: T.empty_like(x.conj()).fill_(1),
    "mm": lambda T, x: x.conj().mm(x),
    "mm of adjoints": lambda T, x: x.mH @ x.mH,
    "vdot": lambda T, x: T.vdot(x[0].conj(), x[1].conj()),
    "dot of a conjugate": lambda T, x: T.dot(x[0], x[1].conj()),
    "dot of conjugates": lambda T, x: T.dot(x[0].conj(), x[1].conj()),
    "vdot of one": lambda T, x: T.vdot(x[0], x[1].conj()),
    "vdot of the other": lambda T, x: T.vdot(x[0].conj(), x[1]),
    "einsum": lambda T, x: T.einsum("ij,kj->ik", x.conj(), x),
    "sum": lambda T, x: x.conj().sum(),
    "unary minus": lambda T, x: -x.conj(),
    "unary plus": lambda T, x: +x.conj(),
    "of a real tensor": lambda T, x: x.real.conj(),
    "_unsafe_view": lambda T, x: T.ops.aten._unsafe_view(x.conj(), (4,)),
    "expand": lambda T, x: x.conj().expand(2, 2, 2),
    "as_strided": lambda T, x: x.conj().as_strided((2,), (2,), 1),
    "atleast_3d": lambda T, x: T.atleast_3d(x.conj()),
    "svd": lambda T, x: T.linalg.svd(x.conj())[1],
}


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", VIEWS)
def test_what_carries_the_bits(name, requires_grad):
    same(lambda T: VIEWS[name](T, z(T, requires_grad)))


@pytest.mark.parametrize("name", VIEWS)
def test_under_inference_mode(name):
    def flags(T):
        with T.inference_mode():
            t = VIEWS[name](T, T.mul(z(T), 1))  # an operator's result, which is marked
            return t.is_conj(), t.is_neg(), t.is_inference(), t.tolist()

    same(flags)


@pytest.mark.parametrize(
    "name", ("conj", "imag", "real", "H", "resolve_conj", "clone", "mm", "conj_physical", "einsum")
)
def test_gradients(name):
    def gradients(T):
        x = z(T, requires_grad=True)
        t = VIEWS[name](T, x)
        (T.view_as_real(t.resolve_conj()) if t.is_complex() else t).square().sum().backward()
        return x.grad

    same(gradients)


@pytest.mark.parametrize("name", ("conj", "imag", "real", "H", "resolve_conj", "mm", "_neg_view", "conj_physical"))
def test_gradcheck(name):
    """Gradients that are conjugate views, and inputs that are."""
    for T in BOTH:
        x = z(T).to(T.complex128)
        for leaf in (x.clone(), x.conj().detach(), T._neg_view(x).detach()):
            assert T.autograd.gradcheck(lambda t: VIEWS[name](T, t), (leaf.requires_grad_(),))


def test_traced_numbers():
    """A number that becomes a constant of a trace is what the tensor says."""

    def graph(T):
        return T.jit.trace(lambda x: x * int(T.tensor(3)._neg_view()), T.ones(2))(T.ones(2)).tolist()

    same(graph)


def test_a_stolen_gradient_keeps_its_bit():
    def gradient(T):
        x = z(T, requires_grad=True)
        for _ in range(2):
            (x.conj() * (2 + 1j)).backward(T.ones(2, 2, dtype=T.complex64))
        return x.grad

    same(gradient)


WRITES = {
    "add_": lambda T, x, c: c.add_(1j),
    "copy_": lambda T, x, c: c.copy_(z(T) + 1),
    "copy_ of itself": lambda T, x, c: c.copy_(x),
    "into a plain tensor": lambda T, x, c: x.copy_(c),
    "real into complex": lambda T, x, c: c.copy_(T.ones(2, 2)),
    "complex into real": lambda T, x, c: c.imag.copy_(z(T).conj()),
    "zero_": lambda T, x, c: c.zero_(),
    "fill_": lambda T, x, c: c.fill_(1j),
    "neg_": lambda T, x, c: c.neg_(),
    "neg_ of a negative": lambda T, x, c: x._neg_view().neg_(),
    "conj_physical_": lambda T, x, c: c.conj_physical_(),
    "with itself": lambda T, x, c: c.add_(x),
    "imag": lambda T, x, c: c.imag.mul_(3),
    "setitem": lambda T, x, c: c.__setitem__((0, slice(None)), 1j),
    "attribute": lambda T, x, c: setattr(c, "imag", T.ones(2, 2)),
    "addmm_": lambda T, x, c: c.addmm_(z(T), z(T).conj()),
    "out": lambda T, x, c: T.add(z(T), 1, out=c),
    "out of another size": lambda T, x, c: T.add(z(T), 1, out=x[:0].clone().conj()),
    "out, reading itself": lambda T, x, c: T.add(c, 1, out=c),
    "mm out": lambda T, x, c: T.mm(z(T), z(T).conj(), out=c),
    "eig out": lambda T, x, c: T.linalg.eigvals(z(T), out=T.empty(2, dtype=T.complex64).conj()).abs().sort()[0],
    "resize_": lambda T, x, c: c.resize_(2),
    "set_": lambda T, x, c: c.set_(z(T)),
    "squeeze_": lambda T, x, c: c.squeeze_(),
    "t_": lambda T, x, c: c.t_(),
    "apply_": lambda T, x, c: T.ones(2)._neg_view().apply_(lambda number: number + 1),
    "uniform_": lambda T, x, c: c.real.uniform_(1, 1),
    "requires_grad_": lambda T, x, c: c.requires_grad_(),
}


@pytest.mark.parametrize("name", WRITES)
def test_writes_go_through(name):
    def write(T):
        x = z(T)
        c = x.conj()
        result = WRITES[name](T, x, c)
        return [seen(T, t, version=True) for t in (x, c, result)]

    same(write)


STALE = {
    "conj": lambda T, a: a.conj(),
    "imag": lambda T, a: a.conj().imag,
    "real part": lambda T, a: T.view_as_real(a),
    "part of conj": lambda T, a: a.conj()[0],
    "conj of a part": lambda T, a: a[0].conj(),
    "H": lambda T, a: a.H,
    "complex of real": lambda T, a: T.view_as_complex(T.view_as_real(a))[:, 1],
}


@pytest.mark.parametrize("write_to_view", [False, True])
@pytest.mark.parametrize("name", STALE)
def test_views_follow_writes(name, write_to_view):
    """Note [ Views of other numbers ]: the view's history is made again after a write to its base, and the other way round."""

    def follow(T):
        x = z(T, requires_grad=True)
        a = x * (1 + 1j)
        v = STALE[name](T, a)
        (v if write_to_view else a).mul_(3)
        total = (v if v.is_complex() else v * (1 + 1j)).sum() + (a * (2 - 1j)).sum()
        total.abs().square().backward()
        return x.grad, v.grad_fn.name(), a.grad_fn.name(), v._version

    def plain(T):
        grad, *rest = follow(T)
        return [[round(c.real, 2), round(c.imag, 2)] for row in grad.tolist() for c in row], rest

    same(plain)


def test_a_real_base_of_complex_views():
    def follow(T):
        x = T.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], requires_grad=True)
        a = x * 2
        v = T.view_as_complex(a.view(3, 2))[1:].conj()
        v.mul_(2j)
        (a * T.arange(6)).sum().backward()
        return [x.grad.tolist(), a.tolist(), v.tolist()]

    same(follow)


WORDS = {
    "numpy of a conjugate": lambda T: z(T).conj().numpy(),
    "numpy of a negative": lambda T: z(T).conj().imag.numpy(),
    "array": lambda T: z(T).conj().__array__(),
    "forced": lambda T: z(T).conj().numpy(force=True).tolist(),
    "view_as_real": lambda T: T.view_as_real(z(T).conj()),
    "view of another dtype": lambda T: z(T).conj().view(T.float32),
    "view of the same dtype": lambda T: z(T).conj().view(T.complex64),
    "view of a negative": lambda T: z(T).conj().imag.view(T.int32),
    "dlpack": lambda T: z(T).conj().__dlpack__(),
    "a negative bool": lambda T: T.ones(2, dtype=T.bool)._neg_view().tolist(),
    "a negative byte": lambda T: T.ones(2, dtype=T.uint8)._neg_view().tolist(),
    "imag of a real tensor": lambda T: T.ones(2).imag,
    "is_conj of a number": lambda T: T.is_conj(1),
    "is_neg of a number": lambda T: T.is_neg(1),
    "item": lambda T: z(T)[0, 0].conj().item(),
    "item of a negative": lambda T: z(T)[0, 0].conj().imag.item(),
    "bool": lambda T: bool(z(T)[0, 0].conj().imag),
    "index": lambda T: [1, 2, 3][T.ones((), dtype=T.int64)._neg_view()],
    "as an index": lambda T: T.arange(4)[T.ones((), dtype=T.int64)._neg_view()],
    "as indices": lambda T: T.arange(4)[T.ones(1, dtype=T.int64)._neg_view()],
    "repr": lambda T: str(z(T).conj()),
    "repr of a negative": lambda T: str(z(T).conj().imag),
    "torch.tensor": lambda T: T.tensor(z(T).conj().tolist()),
    "as_tensor": lambda T: T.as_tensor(z(T).conj()),
    "one_hot": lambda T: T.nn.functional.one_hot(-T.arange(3)._neg_view()),
    "quantile": lambda T: T.arange(4.0).quantile((T.tensor([-0.5]))._neg_view()),
    "two outputs": lambda T: T.frexp(T.ones(2), out=(T.empty(2)._neg_view(), T.empty(2, dtype=T.int32)._neg_view())),
}


@pytest.mark.parametrize("name", WORDS)
@pytest.mark.filterwarnings("ignore")
def test_readers_and_refusals(name):
    same(WORDS[name])


def test_plain_conj_of_a_real_tensor_is_refused():
    for T in BOTH:
        with pytest.raises(RuntimeError, match="isComplexType"):
            T._conj(T.ones(2))


def test_real_and_plain_tensors_come_back_as_they_are():
    for T in BOTH:
        x, r = z(T), T.ones(2)
        assert x.resolve_conj() is x and x.resolve_neg() is x and r.conj() is r and r.resolve_conj() is r


def test_angle_of_one_number():
    same(lambda T: z(T)[0, 0].conj().angle())


def test_a_copy_of_itself():
    same(lambda T: T.ones(1)._neg_view().expand(3).copy_(T.ones(1)).shape)

    def copied(T):
        t = T.ones(1)._neg_view().expand(3)
        return t.copy_(t)

    same(copied)


def test_memory_is_shared():
    for T in BOTH:
        x = z(T)
        c = x.conj()
        assert c.data_ptr() == x.data_ptr() and c.imag.data_ptr() == x.data_ptr() + 4
        x[0, 0] = 5j
        assert c[0, 0].item() == -5j and c.imag[0, 0].item() == -5


# ------------------------------------------------------------------------------------------------- files and copies


def saved(T):
    x = z(T)
    return [x, x.conj(), x._neg_view().conj(), T.view_as_real(x)[..., 1]._neg_view().clone()]


@pytest.mark.parametrize("writer", BOTH)
@pytest.mark.parametrize("reader", BOTH)
def test_files_keep_the_bits(writer, reader):
    file = io.BytesIO()
    writer.save(saved(writer), file)
    file.seek(0)
    loaded, expected = reader.load(file), saved(reader)
    assert [seen(reader, t)["values"] for t in loaded] == [seen(reader, t)["values"] for t in expected]
    assert [(t.is_conj(), t.is_neg()) for t in loaded] == [(False, False), (True, False), (True, True), (False, False)]
    assert loaded[1].data_ptr() == loaded[0].data_ptr() == loaded[2].data_ptr()


@pytest.mark.parametrize("duplicate", (copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))))
def test_copies(duplicate):
    same(lambda T: duplicate(z(T).conj()))
    same(lambda T: duplicate(z(T).conj().imag))
    same(lambda T: duplicate(T.nn.Parameter(z(T).conj())).is_conj())


def test_metadata_of_a_file():
    function, arguments = z(readtorch).conj().__reduce_ex__(2)
    theirs, expected = z(torch).conj().__reduce_ex__(2)
    assert function.__name__ == theirs.__name__ and arguments[1:] == expected[1:]
    assert arguments[-1] == {"conj": True}


# --------------------------------------------------------------------------------------------- meta, traces, devices


def test_meta():
    for T in BOTH:
        x = T.empty(2, 3, dtype=T.complex64, device="meta")
        assert x.conj().is_conj() and x.conj().is_meta and not (x.conj() + 1).is_conj()
        assert x.conj().imag.is_neg() and not x.H.mm(x.H.t()[:2]).is_conj()
        assert x.conj().add_(1).is_conj() and not x.conj().clone().is_conj()


def test_traces():
    def graph(T):
        return str(T.jit.trace(lambda x: (x.conj() * 2).imag, z(T)).graph).replace(__file__, "").count("aten::_conj")

    same(graph)


def test_traced_functions_run():
    for T in BOTH:
        traced = T.jit.trace(lambda x, y: (x.conj() * y).real, (z(T), z(T)))
        assert T.equal(traced(z(T).conj(), z(T)), (z(T) * z(T)).real)


def scripted(x: torch.Tensor):
    return x.conj().imag * 2 + x.conj().resolve_conj().real


def test_scripts_and_compiled_functions():
    expected = scripted(z(torch)).tolist()
    assert torch.jit.script(scripted)(z(torch)).tolist() == expected
    for compiled in (readtorch.compile(scripted),):
        assert compiled(z(readtorch)).tolist() == expected
        assert compiled(z(readtorch).conj().clone().conj()).tolist() == expected  # guards tell the bit
        assert compiled(z(readtorch).conj()).tolist() == scripted(z(torch).conj()).tolist()


def test_fused_code_is_given_plain_numbers():
    @readtorch.jit.script
    def f(x, y):
        return (x * y + y).exp() * x

    x, y = readtorch.tensor([1.0, 2.0]), readtorch.tensor([0.5, -1.0])
    expected = f(x, y)
    for _ in range(4):
        assert readtorch.allclose(f(x.neg()._neg_view(), y), expected)


@pytest.mark.parametrize("kernels", [False, True])
def test_simulated_device(kernels):
    readtorch.cuda.simulate(kernels=kernels)
    try:
        x = z(readtorch).to("cuda")
        c = x.conj()
        assert c.is_conj() and c.is_cuda and (c + 1).is_cuda
        assert (c + 1).cpu().tolist() == (z(readtorch).conj() + 1).tolist()
        assert c.cpu().resolve_conj().tolist() == z(readtorch).conj().tolist() == c.tolist()
        c.add_(1j)
        assert x.cpu().tolist() == (z(readtorch) - 1j).tolist()
        assert c.imag.clone().tolist() == c.cpu().imag.tolist() and c[0, 0].item() == c.tolist()[0][0]
        assert (c @ x).cpu().tolist() == (c.cpu() @ x.cpu()).tolist()
        assert (
            readtorch.zeros(2, 2, dtype=readtorch.complex64).copy_(c).tolist()
            == c.copy_(c.clone()).tolist()
            == c.tolist()
        )
        zeros = zero(readtorch, device="cuda")
        assert zeros.is_cuda and (zeros * zeros)._is_zerotensor() and (zeros + 1).tolist() == [[1.0] * 3] * 2
    finally:
        readtorch.cuda.simulate(0)


# ----------------------------------------------------------------------------------------------------- zero tensors


def zero(T, *size, **options):
    return T._efficientzerotensor(size or (2, 3), **options)


ZEROS = {
    "itself": lambda T, e: e,
    "T": lambda T, e: e.T,
    "reshape": lambda T, e: e.reshape(6),
    "view": lambda T, e: e.view(6),
    "index": lambda T, e: e[0],
    "expand": lambda T, e: e.expand(2, 2, 3),
    "detach": lambda T, e: e.detach(),
    "_neg_view": lambda T, e: e._neg_view(),
    "as_strided": lambda T, e: e.as_strided((2,), (1,)),
    "clone": lambda T, e: e.clone(),
    "clone of a transpose": lambda T, e: e.T.clone(),
    "sum": lambda T, e: e.sum(0),
    "neg": lambda T, e: -e,
    "mm": lambda T, e: e.T.mm(e),
    "cat": lambda T, e: T.cat([e, e]),
    "add": lambda T, e: e + T.ones(2, 3),
    "add with a factor": lambda T, e: e.add(T.ones(2, 3), alpha=2),
    "add to more": lambda T, e: T.ones(4, 2, 3) + e,
    "add of another dtype": lambda T, e: e + T.ones(2, 3, dtype=T.float64),
    "two of them": lambda T, e: e + e,
    "add a number": lambda T, e: e + 1,
    "sub": lambda T, e: e - T.ones(2, 3),
    "rsub": lambda T, e: T.ones(2, 3) - e,
    "mul": lambda T, e: e * T.ones(3),
    "mul by more": lambda T, e: T.ones(4, 2, 3) * e,
    "mul of another dtype": lambda T, e: e * T.ones(2, 3, dtype=T.float64),
    "mul by a number": lambda T, e: e * 2,
    "div": lambda T, e: e / T.ones(3),
    "div by zero": lambda T, e: T.ones(3) / e,
    "div by itself": lambda T, e: (e / e).isnan(),
    "cross": lambda T, e: T.linalg.cross(e, T.ones(2, 3)),
    "dot": lambda T, e: T.dot(e[0], T.ones(3)),
    "vdot": lambda T, e: T.vdot(T.ones(3), e[0]),
    "zeros_like": lambda T, e: T.zeros_like(e),
    "full_like": lambda T, e: T.full_like(e, 2),
    "to another dtype": lambda T, e: e.double(),
    "integers": lambda T, e: zero(T, 2, 3, dtype=T.int64) + e,
    "where": lambda T, e: T.where(e > 0, e, e),
    "conj of complex": lambda T, e: zero(T, 2, dtype=T.complex64).conj(),
    "copied": lambda T, e: T.ones(2, 3).copy_(e),
    "item": lambda T, e: e[0, 0].item(),
    "repr": lambda T, e: str(e),
    "in place": lambda T, e: e.add_(1),
    "out": lambda T, e: T.add(T.ones(2, 3), 1, out=e),
    "copy_": lambda T, e: e.copy_(T.ones(2, 3)),
    "numpy": lambda T, e: e.numpy(),
    "tolist": lambda T, e: e.tolist(),
    "data_ptr": lambda T, e: e.data_ptr(),
    "nbytes": lambda T, e: e.untyped_storage().nbytes(),
    "pickled": lambda T, e: e.__reduce_ex__(2),
    "requires_grad_": lambda T, e: e.requires_grad_(),
    "of no tensor": lambda T, e: T._is_zerotensor(1),
}


@pytest.mark.parametrize("name", ZEROS)
def test_zero_tensors(name):
    def look(T):
        result = ZEROS[name](T, zero(T))
        if not isinstance(result, T.Tensor):
            return result
        return (
            result._is_zerotensor(),
            tuple(result.shape),
            result.stride(),
            str(result.dtype).rpartition(".")[2],
            (result.is_conj(), result.is_neg()),
            result.clone().resolve_neg().tolist(),
        )

    same(look)


# ------------------------------------------------------------------------------------------ what holds of everything


@given(
    tensors(dtype=st.sampled_from(COMPLEX), requires_grad=True), st.lists(st.sampled_from(["conj", "neg"]), max_size=3)
)
def test_chains_of_bits(x, bits):
    def chain(T, x):
        t = x
        for bit in bits:
            t = t.conj() if bit == "conj" else T._neg_view(t)
        return t, t.imag, t.real, t * 2, t.sum()

    both(chain, x)
    t = x
    for bit in bits:
        t = t.conj() if bit == "conj" else torch._neg_view(t)
    ours = to_readtorch(own_copy(t))
    assert (ours.is_conj(), ours.is_neg()) == (t.is_conj(), t.is_neg())


@given(tensors(dtype=st.sampled_from(COMPLEX)), st.sampled_from(["add_", "mul_", "copy_", "sub_"]), st.booleans())
def test_writes_through_chains(x, name, negative):
    def write(T, x):
        view = T._neg_view(x.conj()) if negative else x.conj()
        if 0 in view.stride() and view.numel():
            return None
        getattr(view, name)(x.clone() + 1)
        return view, x

    both(write, x)


@pytest.mark.parametrize("bit", math_bits.DTYPES)
@pytest.mark.parametrize("name", math_bits.CHOSEN)
def test_operators_do_not_notice(name, bit):
    """op_db's samples through a bit: the same results, gradients, writes and errors."""
    assert math_bits.findings_of(name, bit, limit=2) == []


def kinds(dump):
    """What stands at the three keys in a dump of a table."""
    found = {}
    for line in dump.splitlines():
        key, _, entry = line.partition(": ")
        if key in ("Conjugate", "Negative", "ZeroTensor"):
            found[key] = "fallthrough" if "fallthrough" in entry else entry.rpartition("[")[2]
    return found


def test_the_table_of_every_operator():
    """Which operators fall through, have a kernel or the fallback."""
    wrong, names = [], set(torch._C._dispatch_get_all_op_names())
    for name in [n for n in registry if n in names]:
        theirs, ours = kinds(torch._C._dispatch_dump_table(name)), kinds(registry[name].dump_table())
        wrong += [(name, ours, theirs)] if ours != theirs else []
    assert wrong == []


def test_a_kernel_that_ignores_the_bit_is_found(monkeypatch):
    from readtorch.aten.dispatcher import writers
    from readtorch.c10.dispatch_key import MATH_BITS

    mm = registry["aten::mm"]
    monkeypatch.setitem(writers, MATH_BITS, lambda operator, kernel: kernel)
    mm.clear_tables()
    try:
        assert math_bits.findings_of("mm", "conj", limit=2)
    finally:
        mm.clear_tables()
