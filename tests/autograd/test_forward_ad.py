"""Forward mode: duals, levels, tangents through views and in-place writes, `jvp` of custom functions, rules of the operators."""

import random

import pytest

import readtorch as rt
import readtorch.autograd.forward_ad
from readtorch.aten.dispatcher import NOT_IMPLEMENTED
from readtorch.aten.operator_entry import registry
from readtorch.csrc.autograd.gen_autograd_functions import Formulas
from readtorch.csrc.autograd.gen_variable_type import make_forward_kernel
from readtorch.csrc.autograd.load_derivatives import forward_derivatives
from tests.conformance import catalog, forward
from tests.programs import same
from tests.reference import Outcome

# ------------------------------------------------------------------------------------------------ duals and levels


def test_making_and_unpacking():
    def program(T, show):
        fw = T.autograd.forward_ad
        x, v = T.tensor([1.0, 2.0, 3.0], requires_grad=True), T.tensor([0.5, -1.0, 4.0])
        with fw.dual_level():
            d = fw.make_dual(x, v)
            show(d.grad_fn.name(), d.is_leaf, d._base is x, d)
            primal, tangent = fw.unpack_dual(d)
            show(primal.grad_fn.name(), primal._base is x, tangent is v)
            show(fw.unpack_dual(T.ones(3)), fw.unpack_dual(d.detach()), fw.unpack_dual(d.data), T._unpack_dual(d, 0))
            kept = d.clone().requires_grad_()
            show(fw.unpack_dual(kept), fw.unpack_dual(d.to(T.float64)), fw.unpack_dual(T.zeros_like(d)))
            with fw._set_fwd_grad_enabled(False):
                show(fw.unpack_dual(d), T._C._is_fwd_grad_enabled())
            with T.no_grad():
                show(fw.unpack_dual(d * 2))
            with T.inference_mode():
                show(fw.unpack_dual(d).tangent, fw.unpack_dual(d * 2).tangent)
            detached = d.clone().detach_()
            show(fw.unpack_dual(detached))
        show(fw.unpack_dual(d, level=0), fw.unpack_dual(d), d)

    same(program)


def test_layout_of_a_tangent():
    def program(T, show):
        fw = T.autograd.forward_ad
        x = T.ones(2, 3)
        with fw.dual_level():
            for v in (
                T.ones(2, 3),
                T.ones(3, 2).t(),
                T.ones(4, 3)[1:3],
                T.ones(1, 3).expand(2, 3),
                T.ones(2, 3).double(),
            ):
                tangent = fw.unpack_dual(fw.make_dual(x, v)).tangent
                show(tangent is v, tangent.stride(), tangent.storage_offset(), tangent.dtype)
            wide = T.ones(4, 3)[1:3]
            tangent = fw.unpack_dual(fw.make_dual(wide, T.ones(2, 3))).tangent
            show(tangent.stride(), tangent.storage_offset(), tangent.untyped_storage().nbytes())

    same(program)


def test_what_is_refused():
    def program(T, show):
        fw = T.autograd.forward_ad
        x, v = T.ones(3), T.ones(3)
        show.error(lambda: fw.make_dual(x, v))
        show.error(lambda: fw.make_dual(T.ones(2, dtype=T.int64), v, level=0))
        show.error(lambda: fw.make_dual(x, T.ones(3, dtype=T.int64), level=0))
        show.error(lambda: fw.make_dual(x, v, level=0))
        show.error(lambda: fw.exit_dual_level())
        show.error(lambda: fw.exit_dual_level(level=3))
        show.error(lambda: T._C._exit_dual_level(0))
        with fw.dual_level():
            d = fw.make_dual(x, v)
            show.error(lambda: fw.enter_dual_level())
            show.error(lambda: fw.make_dual(d, v))
            show.error(lambda: fw.make_dual(x, d))
            show.error(lambda: fw.make_dual(x, T.ones(4)))
            show.error(lambda: T._make_dual(x, v, 1))
            show.error(lambda: T._unpack_dual(d, 1))
            show.error(lambda: d.detach_())
            show.error(lambda: d.clone().resize_(5))
            show.error(lambda: T.sin(d, out=T.empty(3)))
            show.error(lambda: T.mean(d, 0, out=T.empty(())))
            show.error(lambda: T.special.zeta(d, d))
            show.error(lambda: T.igamma(d, d))
            show.error(lambda: T.geqrf(T.stack([d, d])))
            show.error(lambda: T.sin(x, out=T.empty(3)))

    same(program)


def test_levels():
    def program(T, show):
        fw = T.autograd.forward_ad
        x = T.ones(2)
        for _ in range(2):
            show(fw.enter_dual_level())
            d = fw.make_dual(x, x)
            show(fw.unpack_dual(d).tangent)
            fw.exit_dual_level()
            show(fw.unpack_dual(d, level=0).tangent)
        with fw.dual_level():
            show(fw.unpack_dual(d).tangent, fw.unpack_dual(d * 2).tangent)

        @fw.dual_level()
        def derivative(function, at):
            return fw.unpack_dual(function(fw.make_dual(at, T.ones_like(at)))).tangent

        show(derivative(T.sin, x), derivative(T.exp, x))

    same(program)


# ------------------------------------------------------------------------------------------ views and in-place writes


def test_views_and_writes():
    def program(T, show):
        fw = T.autograd.forward_ad
        of = lambda *tensors: show(*[fw.unpack_dual(t) for t in tensors])  # noqa: E731
        x, v = T.tensor([1.0, 2.0, 3.0]), T.tensor([0.5, -1.0, 4.0])
        with fw.dual_level():
            d = lambda: fw.make_dual(x.clone(), v.clone())  # noqa: E731
            foo = T.zeros(3)
            foo.copy_(d())
            of(foo)
            foo = T.zeros(2, 3)
            row, other, last = foo[0], foo[1], foo[:, 2]
            row.copy_(d())  # from a view to its base and to other views
            of(foo, row, other, last, foo.view(3, 2))
            last.mul_(2)
            of(foo, row)
            base = T.zeros(3)
            tail = base[1:]
            with T.no_grad():
                base.add_(d())  # from a base to its view
                of(tail, tail * 1)
            dual = d()
            tail = dual[1:]
            tail.zero_()
            of(dual, tail)
            pieces = d().unbind()
            of(*pieces)
            turned = T.zeros(3, dtype=T.complex64)
            conjugate = turned.conj()
            conjugate.copy_(d() * 1j)
            of(turned, conjugate)
            of(T.zeros(2, 3).copy_(d()), T.ones(2, 3, dtype=T.int64).copy_(d()))
            square = fw.make_dual(T.arange(6.0).view(2, 3), T.ones(2, 3)).clone()
            square.t_()
            of(square)

    same(program)


class RandomProgram:
    """Writes, views and functions on a handful of tensors, some of them duals: the same on both sides."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def __call__(self, T, show):
        self.random.seed(self.random_state)
        fw = T.autograd.forward_ad
        with fw.dual_level():
            self.tensors = [self.start(T, fw, i) for i in range(4)]
            for _ in range(14):
                found = Outcome(self.step, T, fw)
                show(type(found.error).__name__)
            for t in self.tensors:
                primal, tangent = fw.unpack_dual(t)
                show.numbers(primal, tangent)
                show(t.stride(), t.grad_fn and t.grad_fn.name(), tangent is not None and tangent.stride())

    random_state = 0

    def start(self, T, fw, i):
        t = T.arange(6, dtype=T.float64).view(2, 3) / 5 + i
        if self.random.random() < 0.3:
            t.requires_grad_()
        if self.random.random() < 0.5:
            t = fw.make_dual(t, T.arange(6, dtype=T.float64).view(2, 3).cos() * (i + 1))
        return t * 1 if self.random.random() < 0.5 else t

    def step(self, T, fw):
        choice, tensors = self.random.random(), self.tensors
        a, b = self.random.choice(tensors), self.random.choice(tensors)
        number = self.random.randrange(5)
        if choice < 0.35:
            views = (
                lambda: a[self.random.randrange(2)],
                lambda: a.t(),
                lambda: a[..., 1:],
                lambda: a.reshape(-1).view(-1),
                lambda: a.detach() if number == 1 else a.unsqueeze(0).squeeze(0),
            )
            tensors.append(views[number]())
        elif choice < 0.75:
            with T.set_grad_enabled(self.random.random() < 0.5):
                writes = (
                    lambda: a.copy_(b),
                    lambda: a.mul_(b),
                    lambda: a.sin_(),
                    lambda: a.zero_() if self.random.random() < 0.5 else a.fill_(b.sum()),
                    lambda: a.add_(b),
                )
                writes[number]()
        else:
            functions = (
                lambda: a * b,
                lambda: a.exp() / 100,
                lambda: T.stack([a.sum(), b.mean()]),
                lambda: T.where(a > 1, a, b),
                lambda: fw.make_dual(fw.unpack_dual(a).primal, T.ones_like(a)),
            )
            tensors.append(functions[number]())


@pytest.mark.parametrize("start", range(0, 120, 20))
def test_random_programs(start):
    for seed in range(start, start + 20):
        program = RandomProgram(seed)
        program.random_state = seed
        same(program)


# -------------------------------------------------------------------------------------------- together with backward


def test_forward_over_backward_and_back():
    def program(T, show):
        fw = T.autograd.forward_ad
        x = T.tensor([0.3, 0.7], dtype=T.float64, requires_grad=True)
        v = T.tensor([1.0, -2.0], dtype=T.float64, requires_grad=True)
        with fw.dual_level():
            d = fw.make_dual(x, v)
            # Not exp and its like: over reverse, PyTorch writes to what their tangents have saved, and refuses the third derivative.
            for function in (T.exp, T.tanh, lambda t: t * t.sin(), lambda t: t.clone().sigmoid_()):
                y = function(d)
                (gradient,) = T.autograd.grad((y * y).sum(), x, create_graph=True)
                primal, tangent = fw.unpack_dual(gradient)
                show.numbers(primal, tangent)
                show(tangent.requires_grad, fw.unpack_dual(y).tangent.grad_fn.name())
                for third in T.autograd.grad(tangent.sum(), (x, v)):
                    show.numbers(third)

    same(program)


# --------------------------------------------------------------------------------------------------- custom functions


def functions_of(T, show):
    """Functions with a `jvp`, by name. The attribute `how` says what a careless one does."""
    Function = T.autograd.Function

    class Mul(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_forward(a, b)
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, grad):
            a, b = ctx.saved_tensors
            return grad * b, grad * a

        @staticmethod
        def jvp(ctx, of_a, of_b):
            show(of_a, of_b, T._C._is_fwd_grad_enabled(), T.is_grad_enabled())
            a, b = ctx.saved_tensors
            return of_a * b + a * of_b

    class Separate(Mul):
        @staticmethod
        def forward(a, b):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)
            ctx.save_for_backward(*inputs)

    class Several(Function):
        @staticmethod
        def forward(ctx, a, number):
            ctx.number, positive = number, a > 1
            ctx.mark_non_differentiable(positive)
            ctx.set_materialize_grads(False)
            return a * number, positive, 5

        @staticmethod
        def jvp(ctx, of_a, of_number):
            show(of_a, of_number)
            return of_a * ctx.number, None, None

    class Careless(Function):
        @staticmethod
        def forward(ctx, a):
            return a > 1 if Careless.how == "integers" else a * 2

        @staticmethod
        def jvp(ctx, of_a):
            return {"two": (of_a, of_a), "number": 3, "integers": of_a}[Careless.how]

    class WithoutJvp(Function):
        @staticmethod
        def forward(ctx, a):
            return a * 2

    class View(Function):
        @staticmethod
        def forward(ctx, a):
            return a if View.as_is else a.view(3, 1)

        @staticmethod
        def jvp(ctx, of_a):
            seen = of_a.view_as(of_a) if View.as_is else of_a.view(3, 1)
            return {"good": seen, "a copy": seen.clone(), "another": T.ones(3, 1).view(3, 1), "as it is": of_a}[
                View.how
            ]

    class Inplace(Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.mark_dirty(a.mul_(b))
            return a

        @staticmethod
        def jvp(ctx, of_a, of_b):
            return {"good": of_a.mul_(2), "a copy": of_a * 2, "another": of_b}[Inplace.how]

    return Mul, Separate, Several, Careless, WithoutJvp, View, Inplace


def test_jvp_of_custom_functions():
    def program(T, show):
        Mul, Separate, Several, Careless, WithoutJvp, View, Inplace = functions_of(T, show)
        fw = T.autograd.forward_ad
        x, v = T.tensor([1.0, 2.0, 3.0]), T.tensor([0.5, -1.0, 4.0])
        of = lambda *tensors: show(*[fw.unpack_dual(t) for t in tensors])  # noqa: E731
        with fw.dual_level():
            d = lambda: fw.make_dual(x.clone(), v.clone())  # noqa: E731
            of(Mul.apply(d(), x), Mul.apply(x, d()), Mul.apply(d(), d()), Mul.apply(x, x), Separate.apply(d(), d()))
            first, positive, five = Several.apply(d(), 3.0)
            of(first, positive)
            show.error(lambda: WithoutJvp.apply(d()))
            for Careless.how in ("two", "number", "integers"):
                show.error(lambda: Careless.apply(d()))
            for View.as_is in (False, True):
                for View.how in ("good", "a copy", "another", "as it is"):
                    show.error(lambda: of(View.apply(d())))
            View.as_is, View.how = False, "good"
            z = d()
            seen = View.apply(z)
            seen.mul_(2)
            of(seen, z)
            for Inplace.how in ("good", "a copy", "another"):
                show.error(lambda: of(Inplace.apply(d() * 1, d())))
            q = fw.make_dual(x.clone().requires_grad_(), v)
            (gradient,) = T.autograd.grad(Mul.apply(q, q).sum(), q, create_graph=True)
            of(gradient)

    same(program)


def test_functions_without_duals_pay_nothing():
    """Outside a level no call comes to the kernels for tangents, not even of views."""
    x = rt.ones(2, 3, requires_grad=True)
    before = [dict(operator.table) for operator in (registry["aten::mul.Tensor"], registry["aten::select.int"])]
    assert (x[0] * x[1]).sum().item() == 3
    after = [operator.table for operator in (registry["aten::mul.Tensor"], registry["aten::select.int"])]
    new = [kernel for old, table in zip(before, after) for keys, kernel in table.items() if keys not in old]
    assert not [kernel for kernel in new if kernel.__name__.endswith("_forward")]


# ------------------------------------------------------------------------------------------------ rules of the operators

# PyTorch has no forward formula for these either, and says so when it meets a dual.
WITHOUT_FORWARD = set(
    """
    _standard_gamma rrelu_with_noise_ asinh_ acosh_ atanh_ special_zeta special_zeta.self_scalar special_zeta.other_scalar igamma igammac geqrf ormqr
    conv_tbc _cdist_forward _cdist_backward _euclidean_dist _pdist_forward _pdist_backward _sparse_coo_tensor_with_dims_and_tensors values _coalesce
    rrelu_with_noise_functional embedding_renorm fake_quantize_per_channel_affine_cachemask
    fake_quantize_per_tensor_affine_cachemask _fake_quantize_per_tensor_affine_cachemask_tensor_qparams
    _sparse_softmax _sparse_log_softmax sparse_sampled_addmm _to_sparse_csr _to_sparse_csc _to_sparse_bsr _to_sparse_bsc
    _to_dense _to_sparse.sparse_dim _to_sparse sparse_mask _sparse_sparse_matmul _sparse_addmm _sparse_sum.dim embedding_renorm_ _embedding_bag
    _embedding_bag_backward grid_sampler_2d grid_sampler_2d_backward grid_sampler_3d grid_sampler_3d_backward huber_loss_backward
    soft_margin_loss_backward _ctc_loss _ctc_loss.Tensor multi_margin_loss multilabel_margin_loss_forward mkldnn_rnn_layer _rnn_layer
    _pack_padded_sequence segment_reduce index_reduce scatter.reduce scatter.value_reduce _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_flash_attention _masked_softmax _unique2 unique_dim unique_consecutive _weight_norm_interface
    """.split()
)

# What makes duals and takes them apart is written by hand.
BY_HAND = {"_fw_primal", "_make_dual"}


def differentiable():
    """Name -> Formulas of every operator with a derivative, without its in-place and out= forms."""
    return {
        name.removeprefix("aten::"): Formulas(operator)
        for name, operator in registry.items()
        if not operator.variant_of and operator.derivative not in (None, NOT_IMPLEMENTED)
    }


def test_every_differentiable_operator_has_a_rule_or_is_refused():
    without = {name for name, formulas in differentiable().items() if not forward_derivatives(formulas)}
    assert without == WITHOUT_FORWARD | BY_HAND


def test_formulas_ask_for_what_there_is():
    """A kernel can be written for each, plain and in place."""
    for name in differentiable():
        operator = registry[f"aten::{name}"]
        for form in (operator, operator.inplace):
            if form is not None:
                assert make_forward_kernel(form, lambda *arguments: None) is not None


def test_outputs_of_cholesky_inverse():
    """Compared with the difference quotient: PyTorch's tangents are off by a hundred-thousandth here."""
    factor = rt.tensor([[1.0, 0.0], [0.5, 2.0]], dtype=rt.float64)
    change = rt.tensor([[0.3, 0.0], [-0.2, 0.1]], dtype=rt.float64)
    with rt.autograd.forward_ad.dual_level():
        dual = rt.autograd.forward_ad.make_dual(factor, change)
        tangent = rt.autograd.forward_ad.unpack_dual(rt.cholesky_inverse(dual)).tangent
    quotient = (rt.cholesky_inverse(factor + 1e-6 * change) - rt.cholesky_inverse(factor - 1e-6 * change)) / 2e-6
    assert rt.allclose(tangent, quotient, rtol=1e-7)


@pytest.mark.parametrize("name", catalog.passing_names())
def test_tangents_of_op_db(name):
    """Of one sample of each dtype. `python -m tests.conformance.forward` compares all."""
    found, _ = forward.findings_of(name, limit=1)
    assert not found, "\n".join(f"{f.form} {f.sample}: {f.reason}" for f in found[:5])
