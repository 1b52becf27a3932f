"""Interpreters as Python sees them: for operators whose transforms are written in Python, such as a custom `autograd.Function`.

In PyTorch: `torch/_functorch/pyfunctorch.py`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import contextlib

from readtorch._C import _functorch
from readtorch._C._functorch import RandomnessType, TransformType
from readtorch._tensor import Tensor
from readtorch.autograd.forward_ad import _set_fwd_grad_enabled
from readtorch.autograd.grad_mode import no_grad
from readtorch.utils._pytree import tree_map_only


class FuncTorchInterpreter:
    """An interpreter of the stack."""

    pointer = None  # the class of handles that know this kind of interpreters

    def __init__(self, cdata):
        assert cdata.key() == self.kind, f"expected {self.kind}, got {cdata.key()}"
        self._cptr = self.pointer(cdata)

    def key(self):
        return self._cptr.key()

    def level(self):
        return self._cptr.level()

    def lower(self):
        """`with interpreter.lower():` operator calls go to the next interpreter."""
        return temporarily_pop_interpreter_stack()

    def process(self, op, args, kwargs):
        """What this transform makes of a call of an operator that is written in Python."""
        return op.functorch_table[self.key()](self, *args, **kwargs)

    def get_state(self):
        return (self.key().name, self.level())

    def check_state(self, state):
        return state == self.get_state()

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_cptr"}


class VmapInterpreter(FuncTorchInterpreter):
    kind, pointer = TransformType.Vmap, _functorch.CVmapInterpreterPtr

    def batch_size(self):
        return self._cptr.batchSize()

    def randomness(self):
        return RandomnessType(self._cptr.randomness()).name.lower()

    def get_state(self):
        return (*super().get_state(), self.randomness())


class _Differentiating(FuncTorchInterpreter):
    def lift(self, args, kwargs):
        """The arguments with their tensors as this level sees them."""
        return tree_map_only(Tensor, self._cptr.lift, (args, kwargs))

    def process(self, op, args, kwargs):
        return super().process(op, *self.lift(args, kwargs))


class GradInterpreter(_Differentiating):
    kind, pointer = TransformType.Grad, _functorch.CGradInterpreterPtr

    def prev_grad_mode(self):
        return self._cptr.prevGradMode()

    @contextlib.contextmanager
    def lower(self):
        with contextlib.nullcontext() if self.prev_grad_mode() else no_grad(), super().lower():
            yield

    def get_state(self):
        return (*super().get_state(), self.prev_grad_mode())


class JvpInterpreter(_Differentiating):
    kind, pointer = TransformType.Jvp, _functorch.CJvpInterpreterPtr

    def prev_fwd_grad_mode(self):
        return self._cptr.prevFwdGradMode()

    @contextlib.contextmanager
    def lower(self):
        off = contextlib.nullcontext() if self.prev_fwd_grad_mode() else _set_fwd_grad_enabled(False)
        with off, super().lower():
            yield

    def get_state(self):
        return (*super().get_state(), self.prev_fwd_grad_mode())


_CLASSES = {c.kind: c for c in (VmapInterpreter, GradInterpreter, JvpInterpreter)}


def coerce_cinterpreter(cinterpreter):
    """The interpreter of a handle. RuntimeError for a kind that Python has none for."""
    if cinterpreter.key() not in _CLASSES:
        raise RuntimeError(f"NYI: PyDispatcher has not implemented support for {cinterpreter.key()}")
    return _CLASSES[cinterpreter.key()](cinterpreter)


def retrieve_current_functorch_interpreter():
    """The topmost interpreter, which there must be."""
    interpreter = _functorch.peek_interpreter_stack()
    assert interpreter is not None, "interpreter must not be None"
    return coerce_cinterpreter(interpreter)


def retrieve_all_functorch_interpreters():
    """All interpreters, the topmost last."""
    return [coerce_cinterpreter(i) for i in _functorch.get_interpreter_stack() or ()]


def compare_functorch_state(states):
    """Whether the interpreters on the stack are in these states."""
    interpreters = retrieve_all_functorch_interpreters()
    return len(interpreters) == len(states) and all(i.check_state(s) for i, s in zip(interpreters, states))


@contextlib.contextmanager
def temporarily_pop_interpreter_stack():
    """The topmost interpreter is off the stack."""
    layer = _functorch.pop_dynamic_layer_stack()
    try:
        yield
    finally:
        _functorch.push_dynamic_layer_stack(layer)


@contextlib.contextmanager
def temporarily_clear_interpreter_stack():
    """All interpreters are off the stack; yields them, the topmost first."""
    layers = []
    try:
        while _functorch.peek_interpreter_stack() is not None:
            layers.append(_functorch.pop_dynamic_layer_stack())
        yield list(layers)
    finally:
        for layer in reversed(layers):
            _functorch.push_dynamic_layer_stack(layer)


@contextlib.contextmanager
def temporarily_restore_interpreter_stack(stack):
    """The interpreters that another stack had, the topmost first, are on this one."""
    for layer in reversed(stack or ()):
        _functorch.push_dynamic_layer_stack(layer)
    try:
        yield
    finally:
        for _ in stack or ():
            _functorch.pop_dynamic_layer_stack()


def dispatch_functorch(op, args, kwargs):
    """A call of an operator that is written in Python, under a transform: the topmost interpreter takes it."""
    interpreter = retrieve_current_functorch_interpreter()
    args, kwargs = tree_map_only(Tensor, _functorch.unwrap_if_dead, (args, kwargs))
    return interpreter.process(op, args, kwargs)
