"""`torch.masked`: reductions that leave elements out, and MaskedTensor, beside PyTorch: values, gradients and errors."""

import inspect
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import readtorch as rt
from readtorch.masked.maskedtensor import binary, unary
from tests import strategies
from tests.reference import both

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

REDUCTIONS = "sum prod mean amax amin argmax argmin median var std norm logsumexp".split()
NORMALIZATIONS = "softmax log_softmax softmin cumsum cumprod normalize".split()
ONE_DIM = {"argmax", "argmin", "median", *NORMALIZATIONS}


# ------------------------------------------------------------------------------------------------------------ functions


@st.composite
def masked_inputs(draw, dtypes="fid"):
    """An input, a mask that can be broadcast to its shape, and a dim."""
    x = draw(strategies.tensors(strategies.shapes(1, 3, 1, 4), strategies.dtypes(dtypes), requires_grad=True))
    sides = x.shape[draw(st.integers(0, x.dim() - 1)) :]
    sides = [draw(st.sampled_from((1, side))) for side in sides]
    return x, torch.rand(sides) < draw(st.sampled_from((0.0, 0.3, 0.7, 1.0))), draw(st.integers(-x.dim(), x.dim() - 1))


@pytest.mark.parametrize("name", [*REDUCTIONS, *NORMALIZATIONS])
def test_every_function(name):
    @settings(max_examples=15, deadline=None)
    @given(masked_inputs(), st.booleans(), st.booleans())
    def run(given, keepdim, all_dims):
        x, mask, dim = given
        given = (2.0,) if name in ("norm", "normalize") else ()
        options = {} if name in NORMALIZATIONS else {"keepdim": keepdim}
        dim = None if all_dims and name not in ONE_DIM else dim
        close = {"rtol": 2e-2, "atol": 2e-2} if x.dtype in (torch.float16, torch.bfloat16) else {}
        both(lambda T, x, m: getattr(T.masked, name)(x, *given, dim, mask=m, **options), x, mask, **close)

    run()


@pytest.mark.parametrize("name", [*REDUCTIONS, *NORMALIZATIONS, "logaddexp"])
def test_signatures(name):
    theirs, ours = (inspect.signature(getattr(T.masked, name)).parameters.values() for T in (torch, rt))
    assert [(p.name, p.kind, p.default) for p in ours] == [(p.name, p.kind, p.default) for p in theirs]


@pytest.mark.parametrize("name", ["sum", "mean", "var", "norm", "amax", "prod"])
def test_several_dims_dtypes_and_no_mask(name):
    given = (3,) if name == "norm" else ()
    x, mask = torch.rand(2, 3, 4).requires_grad_(), torch.rand(3, 4) > 0.5
    for dim in ((0, 2), (-1, 0), (), None, 1):
        both(lambda T, x, m, dim=dim: getattr(T.masked, name)(x, *given, dim, mask=m, dtype=T.float64), x, mask)
        both(lambda T, x, dim=dim: getattr(T.masked, name)(x, *given, dim, keepdim=True), x)


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "argmin", "median", "var"])
def test_integers_and_bools(name):
    for dtype in (torch.int8, torch.uint8, torch.bool, torch.int64):
        x = torch.randint(0, 2, (3, 4)).to(dtype)
        both(lambda T, x, m: getattr(T.masked, name)(x, 1, mask=m), x, torch.rand(3, 4) > 0.2)


def test_orders_of_norm_and_corrections_of_var():
    x, mask = torch.rand(3, 4).requires_grad_(), torch.rand(3, 4) > 0.4
    for order in (0, 1, 2, 3.5, float("inf"), -float("inf")):
        both(lambda T, x, m, o=order: T.masked.norm(x, o, 1, mask=m), x, mask)
    for options in ({"unbiased": False}, {"correction": 0}, {"correction": 3}, {"unbiased": True, "correction": 1}):
        both(lambda T, x, m, o=options: T.masked.std(x, 1, mask=m, **o), x, mask)


def test_logaddexp():
    x, y = torch.randn(2, 3).requires_grad_(), torch.randn(2, 3).requires_grad_()
    both(
        lambda T, x, y, m, n: T.masked.logaddexp(x, y, input_mask=m, other_mask=n),
        x,
        y,
        torch.rand(3) > 0.5,
        torch.rand(2, 3) > 0.5,
    )


REFUSED = [
    lambda T: T.masked.sum(T.ones(2, 3), (0, 0)),
    lambda T: T.masked.sum(T.ones(2, 3), 2),
    lambda T: T.masked.amax(T.ones(2, 3), 0, mask=T.ones(1, 2, 3)),
    lambda T: T.masked.amax(T.ones(2, 3), 0, mask=T.ones(2)),
    lambda T: T.masked.amax(T.ones(2, 3).bool(), 0, mask=T.ones(3)),
    lambda T: T.masked.mean(T.ones(2, 3, dtype=T.int64), 0),
    lambda T: T.masked.mean(T.ones(2, 3), 0, dtype=T.int32),
    lambda T: T.masked.median(T.ones(2, 3, dtype=T.int64), 0, mask=T.zeros(3)),
    lambda T: T.masked.var(T.ones(2, 3), 0, True, correction=1),
    lambda T: T.masked.softmax(T.ones(2).to_sparse(), 0),
    lambda T: T.masked.norm(T.ones(2, dtype=T.int64), -float("inf"), 0, mask=T.ones(2)),
    lambda T: T.masked._input_mask(T.ones(2)),
    lambda T: T.masked._output_mask(3, T.ones(2)),
    lambda T: T.masked._reduction_identity("nothing", T.ones(2)),
    lambda T: T.masked.masked_tensor([1.0], T.ones(1)),
    lambda T: T.masked.masked_tensor(T.ones(1), [True]),
    lambda T: T.masked.masked_tensor(T.ones(1), T.ones(1)),
    lambda T: T.masked.masked_tensor(T.ones(1), T.ones(1, 1).bool()),
    lambda T: T.masked.masked_tensor(T.ones(2), T.ones(1).bool()),
    lambda T: T.masked.masked_tensor(T.ones(1, dtype=T.complex64), T.ones(1).bool()),
    lambda T: T.masked.masked_tensor(T.ones(1), T.ones(1).bool().to_sparse()),
    lambda T: masked(T, [1.0, 2.0], [1, 0]) + masked(T, [1.0, 2.0], [1, 1]),
    lambda T: T.add(masked(T, [1.0, 2.0], [1, 0]), 1, alpha=2),
    lambda T: masked(T, [1.0, 2.0], [1, 0]).round(decimals=1),
]


@pytest.mark.parametrize("program", REFUSED, ids=[inspect.getsource(f).strip()[10:-1] for f in REFUSED])
def test_errors(program):
    both(program)


def test_the_mask_of_the_result():
    mask = torch.rand(2, 1, 4) > 0.5
    for name in ("sum", "norm", "softmax"):
        given = (2.0, 1) if name == "norm" else (1,)
        both(lambda T, m: T.masked._output_mask(getattr(T.masked, name), T.ones(2, 3, 4), *given, mask=m), mask)
    both(lambda T, m: T.masked._output_mask(T.masked.amax, T.ones(2, 3, 4), (0, 2), keepdim=True, mask=m), mask)


def test_sparse_input_is_refused():
    with pytest.raises(NotImplementedError, match="masked sum of a sparse tensor"):
        rt.masked.sum(rt.ones(2).to_sparse(), mask=rt.ones(2))


# --------------------------------------------------------------------------------------------------------- MaskedTensor


def masked(T, data, mask, **options):
    return T.masked.masked_tensor(T.tensor(data), T.tensor(mask, dtype=T.bool), **options)


def parts(value):
    """Data and masks of what a program gives."""
    if isinstance(value, (list, tuple)):
        return [parts(v) for v in value]
    if type(value).__name__ != "MaskedTensor":
        return value
    return value.get_data().detach(), value.get_mask()


DATA = torch.tensor([[0.5, -0.25, 0.75, 1.0], [0.125, 0.3, -0.6, 0.9], [0.7, 0.2, 0.4, -0.1]])
MASK = torch.tensor([[1, 0, 1, 1], [0, 0, 0, 0], [1, 1, 0, 1]]).bool()


def on_masked(program, data=DATA, mask=MASK, gradient=True):
    """Results, and the gradient of a MaskedTensor that requires one."""

    def run(T, data, mask):
        x = T.masked.masked_tensor(data, mask, requires_grad=gradient)
        result = program(T, x)
        if not gradient:
            return parts(result)
        result.sum().backward()
        return parts(result), parts(x.grad)

    both(run, data, mask)


@pytest.mark.parametrize("name", unary.NAMES)
def test_unary(name):
    given = {"pow": (2,), "clamp": (0.0, 0.5), "clip": (0.0, 0.5)}.get(name, ())
    whole = name == "bitwise_not"
    data = (DATA * 10).int() if whole else DATA + 1.5 if name == "acosh" or name == "arccosh" else DATA
    on_masked(lambda T, x: getattr(T, name)(x, *given), data, gradient=False)
    on_masked(lambda T, x: getattr(x, name)(*given), data, gradient=False)
    if name + "_" in unary.INPLACE_NAMES:
        on_masked(lambda T, x: getattr(x, name + "_")(*given), data, gradient=False)


@pytest.mark.parametrize(
    "name", "abs acos asin atan cos cosh erf exp expm1 log log1p neg reciprocal rsqrt sin sqrt square tan pow".split()
)
def test_gradients_of_unary(name):
    given = (3,) if name == "pow" else ()
    on_masked(lambda T, x: getattr(T, name)(x, *given), DATA.abs())


@pytest.mark.parametrize(
    "program", [lambda x: x.sigmoid(), lambda x: x.tanh(), lambda x: x.ceil(), lambda x: x.unsqueeze(0)]
)
def test_gradients_that_neither_has(program):
    for T in (torch, rt):
        x = masked(T, [0.5, 0.25], [1, 0], requires_grad=True)
        with pytest.raises(TypeError, match="all __torch_dispatch__ handlers returned NotImplemented"):
            program(x).sum().backward()


@pytest.mark.parametrize("name", binary.NAMES)
def test_binary(name):
    whole = name.startswith("bitwise")
    data = (DATA * 10).abs().int() if whole else DATA
    on_masked(lambda T, x: getattr(T, name)(x, x), data, gradient=False)
    on_masked(lambda T, x: getattr(T, name)(x, T.ones(4, dtype=x.dtype) * 2), data, gradient=False)
    if hasattr(torch.Tensor, name + "_") and name + "_" in binary.INPLACE_NAMES:
        on_masked(lambda T, x: getattr(x, name + "_")(T.ones(3, 4, dtype=x.dtype)), data, gradient=False)


def test_infix_operators_and_numbers():
    on_masked(lambda T, x: x * 2 + x / 3 - 1)
    on_masked(lambda T, x: 2 * x + 1)
    on_masked(lambda T, x: x * x)
    on_masked(lambda T, x: x**2 - x)
    on_masked(lambda T, x: -x)
    on_masked(lambda T, x: [x < 0.3, x > 0.3, x == 0.5, x < x], gradient=False)


@pytest.mark.parametrize("name", ["sum", "mean", "amin", "amax", "argmin", "argmax", "prod", "std", "var"])
def test_reductions(name):
    differentiable = not name.startswith("arg")
    on_masked(lambda T, x: getattr(T, name)(x), gradient=False)
    if differentiable:
        on_masked(lambda T, x: getattr(T, name)(x), gradient=name not in ("std", "var"))
    for dim in (0, 1, -1):
        on_masked(lambda T, x, dim=dim: getattr(x, name)(dim, keepdim=True), gradient=False)
        on_masked(
            lambda T, x, dim=dim: getattr(T, name)(x, dim), gradient=differentiable and name not in ("std", "var")
        )


def test_all():
    on_masked(lambda T, x: [x.all(), x.all(1), T.all(x, 0, keepdim=True)], DATA > 0, gradient=False)


MOVES = [
    lambda T, x: x[0],
    lambda T, x: x[1:, ::2],
    lambda T, x: x.t(),
    lambda T, x: x.transpose(0, 1),
    lambda T, x: x.view(4, 3),
    lambda T, x: x.reshape(-1),
    lambda T, x: x.expand(2, 3, 4),
    lambda T, x: T.cat([x, x]),
    lambda T, x: x.contiguous(),
    lambda T, x: x.clone(),
    lambda T, x: x.to(T.float64),
    lambda T, x: x.softmax(1),
    lambda T, x: T.where(T.ones(3, 4) > 0, x, x * 2),
    lambda T, x: T.masked.as_masked_tensor(x.get_data() * 2, x.get_mask()),
]


@pytest.mark.parametrize("program", MOVES, ids=[inspect.getsource(f).strip()[15:-1] for f in MOVES])
def test_what_moves_elements(program):
    on_masked(program, gradient=False)
    on_masked(program)


def test_further_operators():
    on_masked(
        lambda T, x: [
            T.stack([x, x]),
            x.split(2, 1),
            T.ones_like(x),
            x.detach(),
            x.unsqueeze(0),
            x.to_dense(),
            x[x.get_mask()],
        ],
        gradient=False,
    )
    both(lambda T: [masked(T, 3.5, True).item(), masked(T, [1.0], [1]).is_sparse, T.masked.is_masked_tensor(T.ones(1))])
    both(lambda T: masked(T, 3.5, False).item())


def test_gradients_flow_through_data():
    def run(T, x, mask):
        y = T.masked.as_masked_tensor(x * 2, mask)
        y.sum().backward()
        return parts(x.grad)

    both(run, DATA.clone().requires_grad_(), MASK)
    on_masked(lambda T, x: T.masked.as_masked_tensor(x.get_data().exp(), x.get_mask()))
    both(lambda T, x, m: T.masked.masked_tensor(x, m).to_tensor(7.0), DATA, MASK)


@pytest.mark.parametrize(
    "data", [DATA, DATA[0], DATA[0, 0], (DATA * 100).int(), (DATA * 100).int()[1, 1], DATA > 0, DATA.view(3, 2, 2)]
)
def test_repr(data):
    def run(T, data, mask):
        return repr(T.masked.masked_tensor(data, mask))

    mask = MASK.view(data.shape) if data.numel() == 12 else MASK[0] if data.dim() else MASK[1, 1]
    both(run, data, mask)


def test_warnings():
    def said(T, run):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                run(T)
            except (RuntimeError, TypeError):
                pass
        return [str(w.message) for w in caught]

    for run in (
        lambda T: masked(T, [1.0], [1]),
        lambda T: T.masked.MaskedTensor(T.ones(1, requires_grad=True), T.ones(1).bool()),
        lambda T: masked(T, [1.0], [1]).logical_not(),
    ):
        assert said(rt, run) == said(torch, run)


def test_sparse_layouts_are_refused():
    x = masked(rt, [1.0], [1])
    for refused in (x.to_sparse, x.to_sparse_csr):
        with pytest.raises(NotImplementedError, match="a MaskedTensor of sparse data"):
            refused()
    with pytest.raises(TypeError, match="data layout of torch.sparse_coo is not supported"):
        rt.masked.masked_tensor(rt.ones(1).to_sparse(), rt.ones(1).bool().to_sparse())
