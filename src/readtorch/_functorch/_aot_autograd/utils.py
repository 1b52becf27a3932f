"""How compiled graphs are called. In PyTorch: `torch/_functorch/_aot_autograd/utils.py`."""

import contextlib

import readtorch
from readtorch.aten.autocast_mode import KEYS
from readtorch.c10.local_dispatch_key_set import tls

CASTS = KEYS["cpu"] | KEYS["cuda"]  # keys that are excluded while there is no autocast


def make_boxed_func(f):
    """A function of one list, which calls `f` with what is in it."""

    def g(args):
        return f(*args)

    g._boxed_call = True
    return g


def boxed(f):
    """What a compiler returned, as a function of a list that returns a list, and runs without autocast: that is in the graph.

    Such a function may empty the list that it is given, so that what it no longer needs is freed while it runs.
    """
    f = f if getattr(f, "_boxed_call", False) else make_boxed_func(f)

    def call(args):
        if tls.excluded & CASTS == CASTS:
            outs = f(args)
        else:
            with without_autocast():
                outs = f(args)
        return list(outs) if isinstance(outs, tuple | list) else [outs]

    return call


@contextlib.contextmanager
def without_autocast():
    with contextlib.ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if readtorch.is_autocast_enabled(device):
                stack.enter_context(readtorch.autocast(device, enabled=False))
        yield
