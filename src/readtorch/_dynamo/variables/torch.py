"""Operators and other functions of the library. In PyTorch: `torch/_dynamo/variables/torch.py`."""

import inspect
import random

import readtorch
from readtorch._dynamo.exc import unimplemented
from readtorch._dynamo.guards import autocast_state
from readtorch.amp.autocast_mode import autocast
from readtorch.autograd import grad_mode
from readtorch.c10.local_dispatch_key_set import trace_under_way

from .constant import ConstantVariable
from .ctx_manager import AutocastModeVariable, GradModeVariable
from .dicts import ConstDictVariable
from .misc import UnknownVariable
from .tensor import SymNodeVariable
from .user_defined import UserDefinedObjectVariable


class TorchInGraphFunctionVariable(ConstantVariable):
    """A function that becomes a node of the graph."""

    def describe(self):
        return f"TorchInGraphFunctionVariable({getattr(self.value, '__name__', self.value)})"

    def call_bool(self, tx):
        return True

    def call_function(self, tx, args, kwargs):
        result = call_torch_function(tx, self, args, kwargs)
        return result if result is not None else tx.output.call_function(self.value, args, kwargs)

    def var_getattr(self, tx, name):
        return tx.fold(getattr, self.value, name)


def call_torch_function(tx, function, args, kwargs):
    """What the `__torch_function__` of an object among the arguments says; None if there is none, or if several classes have one."""
    given = [each.realize() for each in (*args, *kwargs.values())]
    classes = list({each.python_type() for each in given if has_torch_function(each)})
    native = getattr(readtorch._C._VariableFunctions, getattr(function.value, "__name__", ""), None)
    is_plain = native is function.value  # others pass on what they have made of their arguments
    if (
        len(classes) != 1
        or not is_plain
        or not isinstance(inspect.getattr_static(classes[0], "__torch_function__"), classmethod)
    ):
        return None
    method = tx.held(classes[0]).var_getattr(tx, "__torch_function__")
    operands = [function, tx.tuple_of([tx.held(classes[0])]), tx.tuple_of(list(args)), ConstDictVariable(dict(kwargs))]
    result = tx.call(method, operands, {}).realize()
    if isinstance(result, ConstantVariable) and result.value is NotImplemented:
        unimplemented("Unsupported __torch_function__ that returns NotImplemented")
    return result


def has_torch_function(variable):
    return isinstance(variable, UserDefinedObjectVariable) and hasattr(variable.python_type(), "__torch_function__")


def call_is_grad_enabled(tx):
    return tx.constant(tx.output.grad_mode)


def call_is_tensor(tx, value):
    value = value.realize()
    return tx.constant(isinstance(value.python_type(), type) and issubclass(value.python_type(), readtorch.Tensor))


def call_is_compiling(tx):
    return tx.constant(True)


def call_is_exporting(tx):
    return tx.constant(tx.output.is_export)


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
    """No: modes of functions are not captured, subclasses of Tensor have no variable, and other objects that have it break the graph."""
    items = [each.realize() for arg in args for each in (tx.iterate(arg) if hasattr(arg.realize(), "items") else [arg])]
    for item in items:
        if isinstance(item, UnknownVariable) or has_torch_function(item):
            item.unknown("__torch_function__")
    return tx.constant(False)


def call_is_scripting(tx):
    return tx.constant(False)


def call_get_default_dtype(tx):
    return tx.constant(readtorch.get_default_dtype())


def facts_of_a_dtype(cls):
    """`finfo` or `iinfo`: numbers."""

    def call(tx, *args):
        found = []
        tx.fold(lambda: found.append(cls(*map(tx.known, args))))
        return TypeInfoVariable(found[0])

    return call


class TypeInfoVariable(ConstantVariable):
    def reconstruct(self, codegen):
        return codegen.writer.hold(self.value)


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
    readtorch.finfo: facts_of_a_dtype(readtorch.finfo),
    readtorch.iinfo: facts_of_a_dtype(readtorch.iinfo),
    random.randint: number_of_chance(random.randint),
    random.uniform: number_of_chance(random.uniform),
    readtorch.is_grad_enabled: call_is_grad_enabled,
    readtorch.is_tensor: call_is_tensor,
    readtorch.compiler.is_compiling: call_is_compiling,
    readtorch.compiler.is_exporting: call_is_exporting,
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
