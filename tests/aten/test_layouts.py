"""Where the numbers of a result lie: element by element, operators lay theirs out as the operands' lie, whatever the dtype."""
import itertools

import pytest
import torch

import readtorch as rt
from tests.conformance import catalog
from tests.reference import same_strides, to_readtorch

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
    return [name for name in catalog.passing_names()
            if type(catalog.variants()[name][0]).__name__ == kind and not name.startswith("__") and name not in WITH_MORE_ARGUMENTS]


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
    checked = [check(name, x) for dtype in DTYPES for kind, x in operands(dtype)
               if not (name == "conj" and dtype.is_complex)]  # a view there: "The dispatcher"
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
    lambda x, d: x.sum(d), lambda x, d: x.mean(d), lambda x, d: x.std(d, keepdim=True), lambda x, d: x.var(d), lambda x, d: x.amax(d),
    lambda x, d: x.logsumexp(d), lambda x, d: x.norm(2, d), lambda x, d: x.nansum(d), lambda x, d: x.prod(d[0]), lambda x, d: x.all(d[0]),
    lambda x, d: x.any(d[0], keepdim=True), lambda x, d: x.argmax(d[0]), lambda x, d: x.aminmax(dim=d[0]), lambda x, d: x.median(d[0]),
    lambda x, d: x.mode(d[0]), lambda x, d: x.count_nonzero(d), lambda x, d: x.cumsum(d[0]), lambda x, d: x.cumprod(d[0]),
    lambda x, d: x.cummax(d[0]), lambda x, d: x.logcumsumexp(d[0]), lambda x, d: x.sort(d[0]), lambda x, d: x.softmax(d[0]),
]


@pytest.mark.parametrize("function", REDUCTIONS)
def test_along_dimensions(function):
    for order in itertools.permutations(range(4)):
        x = torch.rand(2, 3, 4, 5).permute(order)
        for dims in ((0,), (1,), (2,), (0, 2), (1, 2, 3)):
            theirs, ours = function(x, dims), function(to_readtorch(x), dims)
            for mine, reference in zip(tensors_of(ours), tensors_of(theirs), strict=True):
                assert same_strides(mine, reference), (order, dims, mine.stride(), reference.stride())
