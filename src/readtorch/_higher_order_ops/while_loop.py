"""`while_loop`: a function that is called again and again while another says so, as one operator.

Called from Python, it has both functions captured by Dynamo, like `cond`. Backward goes through the loop from its end: what each turn
began with is kept, and the turn is computed once more.

In PyTorch: `torch/_higher_order_ops/while_loop.py`.
"""

import readtorch
from readtorch._ops import HigherOrderOperator
from readtorch._tensor import Tensor
from readtorch.autograd import Function, no_grad
from readtorch.utils._pytree import tree_flatten, tree_unflatten

from .utils import (
    _hop_compile_and_call,
    autocast_of_forward,
    gradients_of,
    is_fake,
    proxy_mode,
    validate_subgraph_args_types,
    wants_gradient,
)


class WhileLoopOp(HigherOrderOperator):
    """`carried = body_fn(*carried, *additional)` while `cond_fn(*carried, *additional)`: a tuple.

    carried_inputs, additional_inputs: tuples of tensors and ints. mutated_arg_indices: which of both the functions write to.
    """

    def __init__(self):
        super().__init__("while_loop")

    def __call__(self, cond_fn, body_fn, carried_inputs, additional_inputs, /, *, mutated_arg_indices=""):
        for name, given in (("carried_inputs", carried_inputs), ("additional_inputs", additional_inputs)):
            if not isinstance(given, (tuple, list)):
                raise RuntimeError(f"{name} must be a tuple or list, got {type(given)}")
        validate_subgraph_args_types(carried_inputs)
        validate_subgraph_args_types(additional_inputs)
        inputs = (*carried_inputs, *additional_inputs)
        if wants_gradient(inputs):
            return WhileLoopAutogradOp.apply(cond_fn, body_fn, len(carried_inputs), *inputs)
        mode = proxy_mode()
        if mode is not None:
            return while_loop_tracing(mode, cond_fn, body_fn, carried_inputs, additional_inputs)
        if any(map(is_fake, inputs)):
            return while_loop_fake_tensor_mode(body_fn, carried_inputs, additional_inputs)
        return while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs)


while_loop_op = WhileLoopOp()


def while_loop(cond_fn, body_fn, carried_inputs):
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`; returns the last. Under `compile` both become graphs of their own.

    carried_inputs: tensors and ints, in any nest of lists, tuples and dictionaries. body_fn returns the like, in a tuple; cond_fn a
    tensor of no dimensions with a bool, or a bool.

    RuntimeError and AssertionError for other arguments, `UncapturedHigherOrderOpError` where one of the functions cannot be captured
    whole, changes something outside, or returns what it was given.
    """
    if readtorch.compiler.is_dynamo_compiling():
        return _while_loop_op_wrapper(cond_fn, body_fn, *tree_flatten(carried_inputs))
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    flat_inputs, spec = tree_flatten(carried_inputs)
    validate_subgraph_args_types(flat_inputs)
    if any(map(is_fake, flat_inputs)) and proxy_mode() is not None:  # in PyTorch: Dynamo captures both
        return _while_loop_op_wrapper(cond_fn, body_fn, flat_inputs, spec)
    return _hop_compile_and_call(_while_loop_wrapper, (cond_fn, body_fn, carried_inputs))


def _while_loop_wrapper(cond_fn, body_fn, carried_inputs):
    """As it is written it calls the operator; Dynamo knows `while_loop` itself."""
    if readtorch.compiler.is_compiling():
        return while_loop(cond_fn, body_fn, carried_inputs)
    return _while_loop_op_wrapper(cond_fn, body_fn, *tree_flatten(carried_inputs))


def _while_loop_op_wrapper(cond_fn, body_fn, flat_inputs, spec):
    """The operator, for functions that take and return nests."""
    result_spec = spec

    def flat_cond_fn(*flat_args):
        return cond_fn(*tree_unflatten(flat_args, spec))

    def flat_body_fn(*flat_args):
        nonlocal result_spec
        results, result_spec = tree_flatten(body_fn(*tree_unflatten(flat_args, spec)))
        return tuple(results)

    results = while_loop_op(flat_cond_fn, flat_body_fn, tuple(flat_inputs), ())
    return tree_unflatten(results, result_spec)


def while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs, note=lambda carried: None):
    """The loop. note(carried): called before each turn."""
    if not goes_on(cond_fn(*carried_inputs, *additional_inputs)):
        return tuple(x.clone() if isinstance(x, Tensor) else x for x in carried_inputs)
    carried = carried_inputs
    while True:
        note(carried)
        carried = body_fn(*carried, *additional_inputs)
        check_turn(carried, carried_inputs)
        if not cond_fn(*carried, *additional_inputs):
            return carried


def goes_on(pred):
    is_truth = isinstance(pred, bool) or isinstance(pred, Tensor) and not pred.dim() and pred.dtype is readtorch.bool
    if not is_truth:
        raise RuntimeError(f"cond_fn must return a boolean scalar tensor or a boolean but got {pred}")
    return bool(pred)


def check_turn(out, carried_inputs):
    if not isinstance(out, tuple):
        raise AssertionError(f"body_fn should return a tuple but got {type(out)}")
    if len(out) != len(carried_inputs):
        raise AssertionError(
            "body_fn should return the same number of elements as carried_inputs, "
            f"got {len(out)} vs {len(carried_inputs)}"
        )


def while_loop_fake_tensor_mode(body_fn, carried_inputs, additional_inputs):
    """What one turn returns: all return the like."""
    return tuple(body_fn(*carried_inputs, *additional_inputs))


def while_loop_tracing(mode, cond_fn, body_fn, carried_inputs, additional_inputs):
    """The operator as a node of the graph that `make_fx` makes."""
    if any(isinstance(x, int) for x in carried_inputs):
        raise NotImplementedError(
            "make_fx of a while_loop that carries an int: readtorch has no symbol for it, carry a tensor"
        )
    count = len(carried_inputs)
    names, operands = ("while_loop_cond_graph", "while_loop_body_graph"), (*carried_inputs, *additional_inputs)
    return mode.operator_of_functions(
        while_loop_op, names, (cond_fn, body_fn), operands, packed=lambda operands: (operands[:count], operands[count:])
    )


class WhileLoopAutogradOp(Function):
    """Keeps what each turn began with."""

    @staticmethod
    def forward(ctx, cond_fn, body_fn, count, *inputs):
        ctx.body_fn, ctx.count, ctx.turns = body_fn, count, []
        ctx.autocast = autocast_of_forward()
        carried, additional = inputs[:count], inputs[count:]
        ctx.wanted = [isinstance(x, Tensor) and x.is_floating_point() for x in carried]
        ctx.numbers = [None if isinstance(x, Tensor) else x for x in additional]
        ctx.save_for_backward(*(x if isinstance(x, Tensor) else None for x in additional))
        if any(map(is_fake, inputs)):
            return while_loop_fake_tensor_mode(body_fn, carried, additional)
        return tuple(while_loop_dense(cond_fn, body_fn, carried, additional, ctx.turns.append))

    @staticmethod
    def backward(ctx, *grads):
        additional = [x if n is None else n for x, n in zip(ctx.saved_tensors, ctx.numbers)]
        totals = [readtorch.zeros_like(x) if isinstance(x, Tensor) and x.requires_grad else None for x in additional]
        with ctx.autocast.again():
            for carried in reversed(ctx.turns):
                carried = [x.detach().requires_grad_() if w else x for x, w in zip(carried, ctx.wanted)]
                found = gradients_of(ctx.body_fn, [*carried, *additional], grads)
                grads, more = found[: ctx.count], found[ctx.count :]
                with no_grad():
                    totals = [total if total is None else total + part for total, part in zip(totals, more)]
        return None, None, None, *grads, *totals
