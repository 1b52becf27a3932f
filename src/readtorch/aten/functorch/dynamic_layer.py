"""The stack of interpreters of a thread, and the two modes that bring operator calls to them.

While the stack is not empty the thread includes two keys. At the highest of all, the front mode, a call is given to the topmost
interpreter. The back mode, below autograd, is where an interpreter that lets autograd do its work sends the call on.

In PyTorch: `aten/src/ATen/functorch/DynamicLayer.cpp`; each entry of the stack is a `DynamicLayer` with an interpreter in it.
Explained in the chapter "Forward mode, vmap and torch.func".
"""

from readtorch.aten.operator_entry import set_fallback
from readtorch.c10.dispatch_key import FUNCTORCH_FRONT_MODE
from readtorch.c10.local_dispatch_key_set import tls, update_mask

from .batched_tensor_impl import WrappedImpl
from .interpreter import MODES


def dynamic_layer_stack():
    """The interpreters of this thread, the topmost last."""
    if tls.functorch is None:
        tls.functorch = []
    return tls.functorch


def push(interpreter):
    """Put an interpreter on the stack again."""
    stack = dynamic_layer_stack()
    stack.append(interpreter)
    _include_modes(stack)


def pop():
    """Take the topmost interpreter off the stack."""
    stack = dynamic_layer_stack()
    interpreter = stack.pop()
    _include_modes(stack)
    return interpreter


def _include_modes(stack):
    tls.included = tls.included | MODES if stack else tls.included & ~MODES
    update_mask()


def begin(interpreter):
    """Start a transform; returns its level. In PyTorch: `initAndPushDynamicLayer`."""
    WrappedImpl.exists = True
    interpreter.level = len(dynamic_layer_stack()) + 1
    push(interpreter)
    return interpreter.level


def end():
    """The topmost transform is over: what it wrapped and somebody kept is dead from now on.

    In PyTorch: `popDynamicLayerAndDeleteMetadata`.
    """
    interpreter = pop()
    interpreter.alive = False
    return interpreter


def top():
    """The topmost interpreter, or None. In PyTorch: `maybeCurrentDynamicLayer`."""
    return tls.functorch[-1] if tls.functorch else None


def at_level(level):
    """The interpreter of a level, which must be on the stack."""
    return tls.functorch[level - 1]


def make_front_kernel(operator, keys):
    """The front mode's kernel: the topmost interpreter takes the call."""
    below = keys & ~FUNCTORCH_FRONT_MODE

    def to_the_top(*arguments):
        return tls.functorch[-1].process(operator, below, arguments)

    return to_the_top


set_fallback(FUNCTORCH_FRONT_MODE, make_front_kernel, written=True)
