"""What a MaskedTensor does in each function and operator: the tables that `__torch_function__` and `__torch_dispatch__` ask.

In PyTorch: `torch/masked/maskedtensor/_ops_refs.py`.
"""

from functools import partial

import readtorch
from readtorch.autograd import Function
from readtorch.ops import aten

from . import binary, passthrough, reductions, unary
from .core import FUNCTIONS, OPERATORS, MaskedTensor, get_data, get_mask, is_masked_tensor, masks_match


def function(*names):
    """Decorator: stands for these functions, and for the methods of these names."""

    def register(implementation):
        for name in names:
            for owner in (readtorch, readtorch.Tensor):
                if hasattr(owner, name):
                    FUNCTIONS[getattr(owner, name)] = implementation
        return implementation

    return register


def operator(*names):
    """Decorator: stands for these operators; it is given the operator that was called, and the arguments.

    A name such as `absolute` is an operator of its own in PyTorch; here it calls `abs`, which is in the table.
    """

    def register(implementation):
        for packet in [getattr(aten, name) for name in names if hasattr(aten, name)]:
            OPERATORS[packet] = partial(implementation, packet)
        return implementation

    return register


for _name in reductions.NAMES:
    _reduction = reductions.make(_name)
    function(_name)(_reduction)
    OPERATORS[getattr(aten, _name)] = _reduction
operator(*passthrough.NAMES)(passthrough.apply)
operator(*unary.NAMES)(unary.apply)
operator(*unary.INPLACE_NAMES)(unary.apply_inplace)
operator(*binary.NAMES)(binary.apply)
operator(*binary.INPLACE_NAMES)(binary.apply_inplace)


def _check_length(what, args, kwargs, expected, takes_kwargs=True):
    if len(args) != expected:
        raise ValueError(f"{what}: len(args) must be {expected} but got {len(args)}")
    if kwargs and not takes_kwargs:
        raise ValueError(f"{what}: len(kwargs) must be 0 but got {len(kwargs)}")


# ------------------------------------------------------------------------------------------------------------ functions


class _MaskedWhere(Function):
    """Of two MaskedTensors, each element with its mask. A gradient counts on the side that the element came from."""

    @staticmethod
    def forward(ctx, condition, x, y):
        ctx.save_for_backward(condition)
        return aten.where(condition, x, y)

    @staticmethod
    def backward(ctx, grad_output):
        (condition,) = ctx.saved_tensors
        out = MaskedTensor(grad_output.get_data(), readtorch.zeros_like(grad_output.get_mask()))
        return None, aten.where(condition, grad_output, out), aten.where(condition, out, grad_output)


@function("where")
def _where_function(*args, **kwargs):
    _check_length("__torch_function__, torch.where", args, kwargs, 3, takes_kwargs=False)
    return _MaskedWhere.apply(*args)


class _MaskedContiguous(Function):
    @staticmethod
    def forward(ctx, input):
        if not is_masked_tensor(input):
            raise ValueError("MaskedContiguous forward: input must be a MaskedTensor.")
        if input.is_contiguous():
            return input
        return MaskedTensor(get_data(input).contiguous(), get_mask(input).contiguous())

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


@function("contiguous")
def _contiguous_function(input, memory_format=None):
    return _MaskedContiguous.apply(input)


@function("is_contiguous")
def _is_contiguous(input, *args, **kwargs):
    return get_data(input).is_contiguous(*args, **kwargs)  # the wrapper itself has the strides of a contiguous tensor


@function("to_dense")
def _to_dense(input, *args, **kwargs):
    return input


@function("to_sparse", "to_sparse_csr")
def _to_sparse(input, *args, **kwargs):
    raise NotImplementedError("a MaskedTensor of sparse data: the layouts COO and CSR are left out")


# ------------------------------------------------------------------------------------------------------------ operators


@operator("detach", "clone")
def _on_data(op, self, **kwargs):
    return MaskedTensor(op(get_data(self)), get_mask(self))


@operator("_to_copy")
def _to_copy(op, self, **kwargs):
    data = op(get_data(self), **kwargs)
    return MaskedTensor(data, op(get_mask(self), **{**kwargs, "dtype": readtorch.bool}))


@operator("_local_scalar_dense")
def _local_scalar_dense(op, self):
    if not get_mask(self):
        raise ValueError(f"__torch_dispatch__, {op}: expected a mask tensor")
    return op(get_data(self))


@operator("ones_like")
def _ones_like(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 1)
    return MaskedTensor(op(get_data(args[0]), **kwargs), get_mask(args[0]))


@operator("new_empty_strided")
def _new_empty_strided(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 3)
    data = get_data(args[0])
    for i, name in ((1, "size"), (2, "stride")):
        if tuple(args[i]) != tuple(getattr(data, name)()):
            raise ValueError(f"__torch_dispatch__, {op}: args[{i}] expected to be the same as data.{name}()")
    return MaskedTensor(op(data, *args[1:], **kwargs), get_mask(args[0]))


@operator("_softmax")
def _softmax(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 3, takes_kwargs=False)
    mask = get_mask(args[0])
    return MaskedTensor(aten._masked_softmax(get_data(args[0]), ~mask, args[1], 2), mask)


@operator("_softmax_backward_data")
def _softmax_backward_data(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 4)
    grad, output, dim, _ = args
    if not (is_masked_tensor(grad) and is_masked_tensor(output)):
        raise ValueError(f"__torch_dispatch__, {op}: grad and output must both be MaskedTensors")
    if not masks_match(grad, output):
        raise ValueError(f"__torch_dispatch__, {op}: expected the masks of grad and output to match")
    data, mask = get_data(grad), get_mask(grad)
    return MaskedTensor(aten._masked_softmax_backward(data, get_data(output), ~mask, dim % data.ndim), mask)


@operator("copy_")
def _copy_(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 2)
    op(get_data(args[0]), get_data(args[1]))
    return args[0]


@operator("where")
def _where(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 3, takes_kwargs=False)
    condition, x, y = args
    if not readtorch.is_tensor(condition):
        raise ValueError(f"__torch_dispatch__, {op}: expected args[0] to be a tensor")
    x, y = (v if is_masked_tensor(v) else MaskedTensor(v, readtorch.ones_like(v, dtype=readtorch.bool)) for v in (x, y))
    return MaskedTensor(op(condition, get_data(x), get_data(y)), op(condition, get_mask(x), get_mask(y)))


@operator("is_same_size")
def _is_same_size(op, *args, **kwargs):
    _check_length(f"__torch_dispatch__, {op}", args, kwargs, 2)
    return get_data(args[0]).shape == get_data(args[1]).shape
