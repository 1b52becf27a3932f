"""`cond`: a choice between two functions by the element of a tensor, as one operator.

Called from Python, `cond` has both functions captured by Dynamo and calls the operator with the graphs: so what may stand
in them is the same as under `compile`. Of the two only one is computed, there and on the way back. In backward it is computed a
second time: nothing is saved of it but the operands.

In PyTorch: `torch/_higher_order_ops/cond.py`.
"""

import readtorch
from readtorch._ops import HigherOrderOperator
from readtorch._tensor import Tensor
from readtorch.autograd import Function
from readtorch.utils._pytree import tree_any, tree_flatten, tree_unflatten

from .utils import (
    _hop_compile_and_call,
    autocast_of_forward,
    check_tensor_meta_match,
    gradients_of,
    is_fake,
    proxy_mode,
    validate_subgraph_args_types,
    wants_gradient,
)


class CondOp(HigherOrderOperator):
    """`true_fn(*operands)` if `pred`, else `false_fn(*operands)`. operands: tensors and ints."""

    def __init__(self):
        super().__init__("cond")

    def __call__(self, pred, true_fn, false_fn, operands):
        validate_subgraph_args_types(operands)
        if wants_gradient((pred, *operands)):
            return CondAutogradOp.apply(pred, true_fn, false_fn, *operands)
        mode = proxy_mode()
        if mode is not None:
            names = "true_graph", "false_graph"
            return mode.operator_of_functions(self, names, (true_fn, false_fn), tuple(operands), (pred,))
        if is_fake(pred):
            return cond_fake_tensor_mode(true_fn, false_fn, operands)
        return true_fn(*operands) if pred else false_fn(*operands)


cond_op = CondOp()


def cond(pred, true_fn, false_fn, operands=()):
    """`true_fn(*operands)` if `pred`, else `false_fn(*operands)`; under `compile` both become graphs of their own.

    pred: a number, or a tensor with one element. operands: tensors, in any nest of lists, tuples and dictionaries. Both functions
    return tensors (and ints) in the same nest, alike in dtype and number of dimensions.

    RuntimeError for other arguments, `UncapturedHigherOrderOpError` where one of the functions cannot be captured whole, changes
    something outside, or returns what it was given.
    """
    if readtorch.compiler.is_dynamo_compiling():
        return cond_op(pred, true_fn, false_fn, operands)
    if isinstance(pred, (bool, int, float)):
        return true_fn(*operands) if pred else false_fn(*operands)
    _validate_input(pred, true_fn, false_fn, operands)
    from readtorch._dynamo.exc import DifferentSizes

    if is_fake(pred) and proxy_mode() is not None:  # in PyTorch: Dynamo captures both
        return cond_op_of_nests(pred, true_fn, false_fn, operands)
    try:
        return _hop_compile_and_call(_cond_op_wrapper, (pred, true_fn, false_fn, operands))
    except DifferentSizes:  # in PyTorch: sizes that differ become symbols
        return cond_op_of_nests(pred, true_fn, false_fn, operands)


def _validate_input(pred, true_fn, false_fn, operands):
    if not isinstance(pred, Tensor):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)) or tree_any(lambda t: not isinstance(t, Tensor), operands):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only "
            f"consists of tensor leaves, but got {operands}."
        )


def _cond_op_wrapper(pred, true_fn, false_fn, operands):
    """As it is written, which it runs where nothing is captured, it takes nests; Dynamo knows the operator itself."""
    operator = cond_op if readtorch.compiler.is_compiling() else cond_op_of_nests
    return operator(pred, true_fn, false_fn, operands)


def cond_op_of_nests(pred, true_fn, false_fn, operands):
    """The operator without graphs, where operands and results may be nests."""
    leaves, spec = tree_flatten(operands)
    result_spec = None

    def flat(fn):
        def call(*leaves):
            nonlocal result_spec
            results, result_spec = tree_flatten(fn(*tree_unflatten(leaves, spec)))
            return tuple(results)

        return call

    return tree_unflatten(cond_op(pred, flat(true_fn), flat(false_fn), leaves), result_spec)


class CondAutogradOp(Function):
    """Where one operand has a gradient all results have one, whichever function is taken."""

    @staticmethod
    def forward(ctx, pred, true_fn, false_fn, *operands):
        ctx.pred, ctx.true_fn, ctx.false_fn = pred, true_fn, false_fn
        ctx.autocast = autocast_of_forward()
        ctx.numbers = [None if isinstance(x, Tensor) else x for x in operands]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in operands))
        return cond_op(pred, true_fn, false_fn, operands)

    @staticmethod
    def backward(ctx, *grads):
        operands = [x if n is None else n for x, n in zip(ctx.saved_tensors, ctx.numbers)]
        with ctx.autocast.again():
            return None, None, None, *gradients_of(ctx.true_fn if ctx.pred else ctx.false_fn, operands, grads)


# ------------------------------------------------------------------------------------------------- on fake tensors


def cond_fake_tensor_mode(true_fn, false_fn, operands):
    """What either function returns, if both return the like. RuntimeError if not."""
    true_outs, true_spec = tree_flatten(true_fn(*operands))
    false_outs, false_spec = tree_flatten(false_fn(*operands))
    if true_spec != false_spec:
        raise RuntimeError(
            "Unmatched output spec from torch.cond branches: "
            f"true branch tree_spec {true_spec} vs false branch tree_spec {false_spec}."
        )
    return tree_unflatten([_merge_output(a, b) for a, b in zip(true_outs, false_outs)], true_spec)


ALIKE = ("dtype", "device", "layout", "dim", "is_quantized", "is_conj", "is_sparse", "storage_offset")


def _merge_output(a, b):
    """One for both. In PyTorch numbers and sizes that differ become symbols; here the first stands for both."""
    if a is None or b is None:
        if a is not b:
            raise AssertionError(f"expected both a and b to be None, got a={a}, b={b}")
        return None
    if type(a) is int and type(b) is int:
        return a
    if not (is_fake(a) and is_fake(b)):
        raise AssertionError(f"expected both a and b to be FakeTensor, got a={type(a)}, b={type(b)}")
    check_tensor_meta_match(a, b, ALIKE, "When merging two branches' output in torch.cond, ")
    return readtorch.empty_strided(a.shape, a.stride(), dtype=a.dtype, device=a.device)


cond.__module__ = "readtorch"
