"""Where the numbers of a result lie: element by element, operators lay theirs out as the operands' lie, whatever the dtype."""

import gc
import itertools
import math
import weakref

import numpy as np
import pytest
import torch

import readtorch as rt
from tests.conformance import catalog
from tests.programs import same
from tests.reference import same_strides, tensors_on, to_readtorch

DTYPES = [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64]
WITH_MORE_ARGUMENTS = {"mvlgamma", "polygamma", "special.polygamma", "nn.functional.prelu", "nn.functional.threshold"}


def operands(dtype):
    """Permuted, channels last, with gaps, expanded."""
    x = torch.rand(2, 3, 4, 2) * 0.8 + 0.1
    x = x.to(dtype) if dtype.is_floating_point or dtype.is_complex else (x * 4 + 1).to(dtype)
    yield "permuted", x.permute(3, 1, 0, 2).contiguous().permute(2, 1, 3, 0)
    yield "channels last", x.contiguous(memory_format=torch.channels_last)
    yield "with gaps", x.permute(3, 0, 1, 2)[:, ::2]
    yield "expanded", x[:1].expand(3, 3, 4, 2).transpose(1, 3)


def elementwise(kind):
    """Names of the reference's operators of one number, or of two, that readtorch has; infix forms aside."""
    return [
        name
        for name in catalog.passing_names()
        if type(catalog.variants()[name][0]).__name__ == kind
        and not name.startswith("__")
        and name not in WITH_MORE_ARGUMENTS
    ]


def tensors_of(result):
    return result if isinstance(result, tuple) else (result,)


def check(name, *arguments):
    info = catalog.variants()[name][0]
    try:
        theirs = info.op(*arguments)
    except (RuntimeError, NotImplementedError, TypeError):
        return False
    ours = rt
    for part in name.split("."):
        ours = getattr(ours, part)
    for mine, reference in zip(tensors_of(ours(*to_readtorch(arguments))), tensors_of(theirs), strict=True):
        assert same_strides(mine, reference), (name, mine.dtype, mine.stride(), reference.stride())
    return True


@pytest.mark.parametrize("name", elementwise("UnaryUfuncInfo"))
def test_one_operand(name):
    checked = [
        check(name, x) for dtype in DTYPES for kind, x in operands(dtype) if not (name == "conj" and dtype.is_complex)
    ]  # a view there: "The dispatcher"
    assert any(checked)


@pytest.mark.parametrize("name", [name for name in elementwise("BinaryUfuncInfo") if "polynomial" not in name])
def test_two_operands(name):
    """The second lies like the first, or has fewer dimensions, or none. (If both have an order of their own, NumPy goes by
    the order of the dimensions, PyTorch by the first operand.)
    """
    for dtype in DTYPES:
        if name in ("complex", "polar") and dtype == torch.float16:  # complex32, which NumPy has not
            continue
        for _, x in operands(dtype):
            for other in (x.clone(), x[0], torch.tensor(1).to(dtype), torch.tensor(1.5)):
                check(name, x, other)


REDUCTIONS = [  # of one dimension, or of several; scans and sorts have results of the operand's size
    lambda x, d: x.sum(d),
    lambda x, d: x.mean(d),
    lambda x, d: x.std(d, keepdim=True),
    lambda x, d: x.var(d),
    lambda x, d: x.amax(d),
    lambda x, d: x.logsumexp(d),
    lambda x, d: x.norm(2, d),
    lambda x, d: x.nansum(d),
    lambda x, d: x.prod(d[0]),
    lambda x, d: x.all(d[0]),
    lambda x, d: x.any(d[0], keepdim=True),
    lambda x, d: x.argmax(d[0]),
    lambda x, d: x.aminmax(dim=d[0]),
    lambda x, d: x.median(d[0]),
    lambda x, d: x.mode(d[0]),
    lambda x, d: x.count_nonzero(d),
    lambda x, d: x.cumsum(d[0]),
    lambda x, d: x.cumprod(d[0]),
    lambda x, d: x.cummax(d[0]),
    lambda x, d: x.logcumsumexp(d[0]),
    lambda x, d: x.sort(d[0]),
    lambda x, d: x.softmax(d[0]),
]


@pytest.mark.parametrize("function", REDUCTIONS)
def test_along_dimensions(function):
    for order in itertools.permutations(range(4)):
        x = torch.rand(2, 3, 4, 5).permute(order)
        for dims in ((0,), (1,), (2,), (0, 2), (1, 2, 3)):
            theirs, ours = function(x, dims), function(to_readtorch(x), dims)
            for mine, reference in zip(tensors_of(ours), tensors_of(theirs), strict=True):
                assert same_strides(mine, reference), (order, dims, mine.stride(), reference.stride())


@pytest.mark.parametrize("name", "sum mean amax prod any all nansum aminmax logsumexp".split())
def test_strides_of_dimensions_that_are_kept(name):
    """Those of size 1, too, over which no element lies."""
    for order in itertools.permutations(range(3)):
        x = torch.rand(3, 4, 1).permute(order)
        for dim in range(3):
            theirs, ours = (tensors_of(getattr(t, name)(dim=dim, keepdim=True)) for t in (x, to_readtorch(x)))
            assert [t.stride() for t in ours] == [t.stride() for t in theirs], (order, dim)


FORMATS = ("contiguous_format", "channels_last", "channels_last_3d", "preserve_format")


def test_each_format_of_each_layout():
    """Whether a tensor has a format, and where it is put in one: dense, permuted, sliced, expanded, of size 1 and empty."""

    def steps(t):
        """Strides, where they matter."""
        return [step for step, size in zip(t.stride(), t.shape) if size != 1] if t.numel() else None

    def program(T, show):
        for shape in (
            (),
            (2,),
            (2, 3),
            (2, 3, 4),
            (2, 3, 4, 5),
            (2, 1, 4, 5),
            (1, 3, 1, 1),
            (2, 3, 2, 4, 5),
            (2, 1, 2, 1, 3),
            (1, 1, 1, 1, 1),
        ):
            x = T.arange(math.prod(shape) * 1.0).reshape(shape)
            several = [x, x.mT, x.expand(2, *shape)] if len(shape) > 1 else [x]
            several += (
                [
                    x.transpose(1, -1),
                    x.movedim(1, -1),
                    x.movedim(-1, 1),
                    x.transpose(0, 1),
                    x[:1],
                    x[:, :1],
                    x[..., ::2],
                ]
                if len(shape) > 2
                else []
            )
            for t in several:
                for name in FORMATS:
                    form = getattr(T, name)
                    show.error(lambda: show(name, tuple(t.shape), t.is_contiguous(memory_format=form)))
                    calls = [
                        lambda: t.to(memory_format=form),
                        lambda: t.clone(memory_format=form),
                        lambda: T.empty_like(t, memory_format=form),
                        lambda: t.double().to(T.float32, memory_format=form),
                    ]
                    if name != "preserve_format":
                        calls += [
                            lambda: t.contiguous(memory_format=form),
                            lambda: T.empty(t.shape, memory_format=form),
                        ]
                    for call in calls:
                        show.error(lambda: show(steps(call())))
                show(t.is_contiguous(), steps(t + 1), steps(t + t.sum()), steps(t.sign()))

    same(program)


def test_a_storage_keeps_the_memory_that_it_is_made_of():
    array = (
        np.zeros((2, 3, 4)).transpose(0, 2, 1).copy(order="K")
    )  # it owns its elements, in neither C's nor Fortran's order
    assert array.base is None and not array.flags.forc
    storage, there = rt.from_numpy(array).untyped_storage(), weakref.ref(array)
    del array
    gc.collect()
    assert there() is not None and storage.nbytes() == 24 * 8


# ------------------------------------------------------------------------------- along a dimension, on every device

ALONG = {
    "sum": lambda T, x: T.sum(x, 1),
    "mean of several": lambda T, x: T.mean(x, (0, 2), keepdim=True),
    "prod": lambda T, x: T.prod(x, 0),
    "logsumexp": lambda T, x: T.logsumexp(x, 1),
    "all": lambda T, x: T.all(x, 1),
    "count_nonzero": lambda T, x: T.count_nonzero(x, 2),
    "max": lambda T, x: T.max(x, 1),
    "amin": lambda T, x: T.amin(x, (1, 3)),
    "aminmax": lambda T, x: T.aminmax(x, dim=1),
    "argmin": lambda T, x: T.argmin(x, 2, keepdim=True),
    "var_mean": lambda T, x: T.var_mean(x, 1),
    "cumsum": lambda T, x: T.cumsum(x, 1),
    "cummax": lambda T, x: T.cummax(x, 2),
    "logcumsumexp": lambda T, x: T.logcumsumexp(x, 1),
    "sort": lambda T, x: T.sort(x, 1),
    "topk": lambda T, x: T.topk(x, 2, 2),
    "kthvalue": lambda T, x: T.kthvalue(x, 2, 2),
    "median": lambda T, x: T.median(x, 2),
    "mode": lambda T, x: T.mode(x, 1, keepdim=True),
    "softmax": lambda T, x: T.softmax(x, 1),
    "softmax, its gradient": lambda T, x: T._softmax_backward_data(x, x, 1, x.dtype),
    "log_softmax, its gradient": lambda T, x: T._log_softmax_backward_data(x, x, 1, x.dtype),
    "flip": lambda T, x: T.flip(x, (0, 2)),
    "roll": lambda T, x: T.roll(x, 1, 1),
    "roll of all": lambda T, x: T.roll(x, 5),
    "rot90": lambda T, x: T.rot90(x, 1, (1, 2)),
    "rot90 twice": lambda T, x: T.rot90(x, 2, (1, 2)),
    "rot90 four times": lambda T, x: T.rot90(x, 4, (1, 2)),
    "repeat": lambda T, x: x.repeat(2, 1, 1, 3, 1),
    "tril": lambda T, x: T.tril(x),
    "searchsorted": lambda T, x: T.searchsorted(x, x, out_int32=True),
    "bucketize": lambda T, x: T.bucketize(x, x[0, 0, 0]),
}


@pytest.fixture(params=["cpu", "meta", "cuda"])
def place(request):
    if request.param == "cuda":
        rt.cuda.simulate(1, "64MiB")
    yield request.param
    if request.param == "cuda":
        gc.collect()
        rt.cuda.simulate(0)


@pytest.mark.parametrize("name", ALONG)
def test_strides_along_a_dimension(name, place):
    for layout, x in operands(torch.float32):
        with tensors_on(place):
            ours = ALONG[name](rt, to_readtorch(x))
        for mine, reference in zip(tensors_of(ours), tensors_of(ALONG[name](torch, x)), strict=True):
            assert str(mine.device).startswith(place)
            assert mine.shape == reference.shape and str(mine.dtype) == str(reference.dtype), layout
            assert same_strides(mine, reference), (layout, mine.stride(), reference.stride())


NORMALIZED_AND_COMPARED = {
    "mse_loss": lambda T, x, t: T.nn.functional.mse_loss(x, t),
    "smooth_l1_loss": lambda T, x, t: T.nn.functional.smooth_l1_loss(x, t, beta=0.1),
    "huber_loss": lambda T, x, t: T.nn.functional.huber_loss(x, t, reduction="none"),
    "soft_margin_loss": lambda T, x, t: T.nn.functional.soft_margin_loss(x, t, reduction="none"),
    "binary_cross_entropy": lambda T, x, t: T.nn.functional.binary_cross_entropy(x, t, reduction="none"),
    "with logits": lambda T, x, t: T.nn.functional.binary_cross_entropy_with_logits(x, t, reduction="none"),
    "batch_norm": lambda T, x, t: T.nn.functional.batch_norm(x, None, None, training=True),
    "instance_norm": lambda T, x, t: T.nn.functional.instance_norm(x),
    "layer_norm": lambda T, x, t: T.nn.functional.layer_norm(x, x.shape[-1:]),
    "rms_norm": lambda T, x, t: T.nn.functional.rms_norm(x, x.shape[-1:]),
    "rms_norm, no graph": lambda T, x, t: T.nn.functional.rms_norm(t, x.shape[-1:]) + 0 * x,
    "group_norm": lambda T, x, t: T.nn.functional.group_norm(x, 1),
    "renorm": lambda T, x, t: x.renorm(2, 1, 0.5),
    "weight_norm": lambda T, x, t: T._weight_norm(x, t[:, :1, :1, :1], 0),
    "attention": lambda T, x, t: T.nn.functional.scaled_dot_product_attention(x, x, x),
    "masked_softmax": lambda T, x, t: T._masked_softmax(x, t > 0.5, 3, 2),
}


@pytest.mark.parametrize("name", NORMALIZED_AND_COMPARED)
def test_normalizations_and_losses(name):
    """Their results and their gradients, each laid out by a rule of its own."""
    for layout, operand in operands(torch.float32):
        found = []
        for T, values in ((torch, operand.clone()), (rt, to_readtorch(operand.clone()))):
            x = values.detach().requires_grad_()
            y = NORMALIZED_AND_COMPARED[name](T, x, values)
            found.append((y, *T.autograd.grad(y.sum(), x)))
        for theirs, ours in zip(*found, strict=True):
            assert same_strides(ours, theirs), (layout, ours.stride(), theirs.stride())
