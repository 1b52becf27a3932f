"""What a thread that works for another takes over from it: modes, guards, hooks on what is saved.

In PyTorch: `aten/src/ATen/ThreadLocalState.h`. Explained in the chapter "Autograd".
"""

from readtorch.c10.autograd_state import autograd_state
from readtorch.c10.local_dispatch_key_set import tls, update_mask
from readtorch.c10.torch_dispatch_mode_tls import mode_tls

# Pairs of functions: one gives a part of the calling thread's state, the other makes it the calling thread's own.
carried = []


class ThreadLocalState:
    """The state of the thread that makes it, but for its grad mode; `restore` makes it that of the calling thread."""

    __slots__ = ("values",)

    def __init__(self):
        self.values = [get() for get, _ in carried]

    def restore(self):
        for (_, set), value in zip(carried, self.values):
            set(value)


def carry(owner, *names):
    """Let threads take over these attributes of a thread-local object."""

    def get():
        return [copied(getattr(owner, name)) for name in names]

    def set(values):
        for name, value in zip(names, values):
            setattr(owner, name, copied(value))

    carried.append((get, set))


def copied(value):
    """Of a stack of modes or hooks a stack of the same ones: each thread pushes and pops its own."""
    return list(value) if type(value) is list else value


carry(tls, "included", "excluded", "inference_mode", "torch_function", "observers", "around", "function_modes")
carry(tls, "forward_grad_mode", "functorch")
carry(mode_tls, "modes")
carry(autograd_state, "multithreading_enabled", "view_replay_enabled", "grad_layout_enforcement_enabled")
carried.append((lambda: None, lambda nothing: update_mask()))
