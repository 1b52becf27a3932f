"""Functions that the optimizers of the library call and that are known without being interpreted.

In PyTorch: `torch/_dynamo/variables/optimizer.py`.
"""

import operator

import readtorch
from readtorch._dynamo.exc import unimplemented
from readtorch.autograd import profiler
from readtorch.optim import adam, asgd, optimizer, radam

from .functions import UserFunctionVariable
from .lists import TupleVariable
from .tensor import SymNodeVariable, TensorVariable


def call_event_if_observed(tx, *args):
    """Nobody looks: a profiler would have changed the thread's mask, which is guarded."""
    return tx.held(profiler._NOBODY_LOOKS)


def call_show_optimizer(tx, *args):
    return tx.constant(None)


def call_has_sparse(tx, grads):
    for grad in tx.iterate(grads):
        if not isinstance(grad.realize(), TensorVariable):  # of sparse tensors nothing is known
            grad.realize().unknown("a question for its layout")
    return tx.constant(False)


def call_names_of_settings(tx, function, names):
    keys = tuple(key.realize().as_python_constant() for key in tx.iterate(names))
    return tx.constant(optimizer._names_of_settings(function.realize().as_python_constant(), keys))


def call_kernel_serves(tx, params, numbers, *others):
    """Whether a compiled kernel does the step: where all is as the kernel wants it, as guards on tensors say. Else Python asks."""
    if tx.output.grad_mode or any(isinstance(number.realize(), TensorVariable) for number in tx.iterate(numbers)):
        return tx.constant(False)
    lists = [[x.realize() for x in tx.iterate(each)] for each in (params, *others)]
    if not all(serves(row) for row in zip(*lists, strict=True)):
        unimplemented("Unsupported question for a compiled kernel", "the step is left to Python")
    return tx.constant(True)


def serves(row):
    """For a parameter, its gradient and its state."""
    if not all(isinstance(x, TensorVariable) for x in row):
        return False
    first, *rest = (x.facts() for x in row)
    is_plain = first.device.type == "cpu" and first.dtype in (readtorch.float32, readtorch.float64)
    return is_plain and all(
        x.dtype is first.dtype and x.shape == first.shape and x.device == first.device for x in rest
    )


def call_check_for_fused(tx, p):
    facts = p.realize().facts() if isinstance(p.realize(), TensorVariable) else None
    if facts is None or facts.device.type != "cpu" or not facts.is_floating_point():
        unimplemented("Unsupported fused step", "the step is left to Python")
    return tx.constant(None)


def call_fused_adam(tx, *args, decoupled_weight_decay, **settings):
    """Two nodes: the counts grow, and the operator that the eager step calls."""
    *lists, scale, found = args
    if not (tx.is_none(scale) and tx.is_none(found)):
        unimplemented("Unsupported step that unscales gradients", "the step is left to Python")
    function = readtorch._fused_adamw_ if tx.truth(decoupled_weight_decay) else readtorch._fused_adam_
    if tx.truth(lists[0]):
        tx.output.call_function(readtorch._foreach_add_, [lists[-1], tx.constant(1)], {})
        tx.output.call_function(function, lists, settings)
    return tx.constant(None)


def call_get_value(tx, x):
    """The number in a tensor of the state: it is read when the graph runs. (PyTorch goes on with the tensor, and rounds to its dtype.)"""
    x = x.realize()
    return x.call_item(tx) if isinstance(x, TensorVariable) else x


def call_check_capturable(tx, *args, **kwargs):
    """As in PyTorch, a step that is compiled may be capturable on any device."""
    return tx.constant(None)


def as_one_node(function):
    """A function in which Python decides by a number of the state: the graph calls it, for only then the number is known."""

    def call(tx, *args):
        known = not any(is_known_later(arg) for arg in args)
        return (
            UserFunctionVariable(function).call_function(tx, args, {})
            if known
            else tx.output.call_function(function, args, {})
        )

    return call


def numbers_of_one_node(function, count):
    """The same for a function of numbers that returns `count` of them; None: it returns one."""

    def call(tx, *args):
        if not any(is_known_later(arg) for arg in args):
            return UserFunctionVariable(function).call_function(tx, args, {})
        operands = [arg.realize() for arg in args]
        graph = tx.output.graph
        inputs = [x.as_graph_input(tx.output)[0] if isinstance(x, SymNodeVariable) else x.value for x in operands]
        node = graph.call_function(function, tuple(inputs))
        tx.output.op_count += 1
        if count is None:
            return SymNodeVariable(tx.output, None, 1.0, node)
        parts = [graph.call_function(operator.getitem, (node, i)) for i in range(count)]
        return TupleVariable([SymNodeVariable(tx.output, None, 1.0, part) for part in parts])

    return call


def is_known_later(variable):
    variable = variable.realize()
    return isinstance(variable, SymNodeVariable) and variable.is_known_later


FUNCTIONS = {
    asgd._average_: as_one_node(asgd._average_),
    asgd._weight_of_step: numbers_of_one_node(asgd._weight_of_step, None),
    radam._add_rectified_: as_one_node(radam._add_rectified_),
    radam._step_sizes: numbers_of_one_node(radam._step_sizes, 2),
    profiler.event_if_observed: call_event_if_observed,
    profiler.show_optimizer: call_show_optimizer,
    optimizer._device_dtype_check_for_fused: call_check_for_fused,
    optimizer._has_sparse: call_has_sparse,
    adam._fused_adam: call_fused_adam,
    optimizer._check_capturable: call_check_capturable,
    optimizer._get_value: call_get_value,
    optimizer._kernel_serves: call_kernel_serves,
    optimizer._names_of_settings: call_names_of_settings,
}
