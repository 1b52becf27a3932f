"""Operators and other functions of the library. In PyTorch: `torch/_dynamo/variables/torch.py`."""

import random

import readtorch
from readtorch._dynamo.guards import autocast_state
from readtorch.amp.autocast_mode import autocast
from readtorch.autograd import grad_mode
from readtorch.c10.local_dispatch_key_set import trace_under_way

from .constant import ConstantVariable
from .ctx_manager import AutocastModeVariable, GradModeVariable
from .misc import UnknownVariable
from .tensor import SymNodeVariable


class TorchInGraphFunctionVariable(ConstantVariable):
    """A function that becomes a node of the graph."""

    def describe(self):
        return f"TorchInGraphFunctionVariable({getattr(self.value, '__name__', self.value)})"

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        return tx.output.call_function(self.value, args, kwargs)

    def var_getattr(self, tx, name):
        return tx.fold(getattr, self.value, name)


def call_is_grad_enabled(tx):
    return tx.constant(tx.output.grad_mode)


def call_is_tensor(tx, value):
    value = value.realize()
    return tx.constant(isinstance(value.python_type(), type) and issubclass(value.python_type(), readtorch.Tensor))


def call_is_compiling(tx):
    return tx.constant(True)


def call_trace_under_way(tx):
    """Nothing is captured while a trace is recorded."""
    return tx.constant(None)


def call_is_autocast_enabled(tx, *args):
    """The thread's state is guarded."""
    with tx.output.in_autocast_regions():
        return tx.fold_call(readtorch.is_autocast_enabled, args, {})


def call_autocast(tx, *args, **kwargs):
    """What the thread's state decides is guarded."""
    with tx.output.in_autocast_regions():
        made = autocast(*map(tx.known, args), **{name: tx.known(value) for name, value in kwargs.items()})
    tx.output.guard("AUTOCAST", None, autocast_state())
    return AutocastModeVariable((made.device, made.fast_dtype, made._enabled, made._cache_enabled))


def call_has_torch_function(tx, *args):
    """No: modes of functions are not captured, and subclasses of Tensor have no variable."""
    items = [each.realize() for arg in args for each in (tx.iterate(arg) if hasattr(arg.realize(), "items") else [arg])]
    for item in items:
        if isinstance(item, UnknownVariable):
            item.unknown("__torch_function__")
    return tx.constant(False)


def call_is_scripting(tx):
    return tx.constant(False)


def call_get_default_dtype(tx):
    return tx.constant(readtorch.get_default_dtype())


def number_of_chance(function):
    """A number of the module `random`: drawn when the graph runs, and not before."""

    def call_random(tx, *args):
        numbers = [arg.realize().as_python_constant() for arg in args]
        state = random.getstate()
        hint = tx.fold(function, *numbers).value
        random.setstate(state)
        node = tx.output.graph.call_function(function, tuple(numbers))
        tx.output.op_count += 1
        return SymNodeVariable(tx.output, None, hint, node)

    return call_random


FUNCTIONS = {
    autocast: call_autocast,
    random.randint: number_of_chance(random.randint),
    random.uniform: number_of_chance(random.uniform),
    readtorch.is_grad_enabled: call_is_grad_enabled,
    readtorch.is_tensor: call_is_tensor,
    readtorch.compiler.is_compiling: call_is_compiling,
    readtorch.jit.is_scripting: call_is_scripting,
    readtorch.jit.is_tracing: call_is_scripting,
    readtorch.is_autocast_enabled: call_is_autocast_enabled,
    readtorch._C._has_torch_function: call_has_torch_function,
    trace_under_way: call_trace_under_way,
    readtorch.get_default_dtype: call_get_default_dtype,
}


def call_no_grad(tx, cls, args):
    if args:
        return tx.call(tx.held(GRAD_DECORATORS[cls]), args, {})
    return GradModeVariable(cls, cls.mode)


def call_set_grad_enabled(tx, mode):
    """It sets the mode at once; `with` sets it back."""
    made = GradModeVariable(readtorch.set_grad_enabled, tx.truth(mode))
    made.previous = tx.output.grad_mode
    tx.output.set_grad_mode(made.mode)
    return made


GRAD_DECORATORS = {grad_mode.no_grad: grad_mode.no_grad, grad_mode.enable_grad: grad_mode.enable_grad}
