"""An interpreter: one transform that is under way, such as one `vmap` or one `grad`.

Note [ Interpreters ]
`vmap(grad(f))(x)` runs `f` once, under a stack of two interpreters. Each operator call goes to the topmost one, which does its
part of the work and sends operator calls of its own to the next; what leaves the lowest is an ordinary call. A tensor that an
interpreter works on is wrapped by it, and carries the interpreter's level: its height in the stack, beginning with 1.

    operator call → (front mode) top.process → … → (back mode) top.send_below → (front mode) next.process → … → kernel

In PyTorch: `aten/src/ATen/functorch/Interpreter.h`. Explained in the chapter "Forward mode, vmap and torch.func".
"""

import enum

from readtorch.c10.dispatch_key import FUNCTORCH_BACK_MODE, FUNCTORCH_FRONT_MODE
from readtorch.c10.local_dispatch_key_set import tls, update_mask

MODES = FUNCTORCH_FRONT_MODE | FUNCTORCH_BACK_MODE


class TransformType(enum.IntEnum):
    """The kinds of transforms."""

    Torch = 0
    Vmap = 1
    Grad = 2
    Jvp = 3
    Functionalize = 4
    __str__ = enum.Enum.__str__


class RandomnessType(enum.IntEnum):
    """What random operators do under vmap."""

    Error = 0
    Same = 1
    Different = 2


class Interpreter:
    """A transform on the stack. alive: whether it is still under way. inplace_requires_grad_allowed: whether `requires_grad_()` may
    be called, as the transforms themselves do."""

    __slots__ = ("level", "alive", "inplace_requires_grad_allowed")
    kind = None  # a TransformType
    legacy = False  # whether it is autograd's own vmap: see legacy_batching_registrations.py

    def __init__(self):
        self.level = None
        self.alive = True
        self.inplace_requires_grad_allowed = False

    def process(self, operator, keys, arguments):
        """What this transform makes of an operator call. keys: the call's set, without the front mode."""
        raise NotImplementedError

    def send_below(self, call, arguments):
        """`call(*arguments)` while this interpreter, the topmost one, is off the stack."""
        stack = tls.functorch
        stack.pop()
        if stack:
            try:
                return call(*arguments)
            finally:
                stack.append(self)
        included = tls.included
        tls.included = included & ~MODES
        update_mask()
        try:
            return call(*arguments)
        finally:
            stack.append(self)
            tls.included = included
            update_mask()
