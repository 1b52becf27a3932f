"""The part of a CPU kernel that stands in two forms: plain, in NumPy, on the operator's page, and as compiled loops in `cpu/`.

    @dispatch_stub("max_pool_kernel", from_size=1024)        pooling/max.py
    def find_maxima(planes, windows, best, places): ...

    @register_dispatch(find_maxima)                          cpu/max_pool_kernel.py
    def find_maxima_by_loops(planes, windows, best, places): ...

The page calls `find_maxima` and knows no more of loops than the name of their file, which is loaded when they are first
wanted: the compiler takes a third of a second to load, and small tensors never need it.

In PyTorch: DEFINE_DISPATCH and REGISTER_DISPATCH in `aten/src/ATen/native/DispatchStub.h`; a stub there chooses among
instruction sets.
"""

import functools
from importlib import import_module

from .tensor_iterator import F4, F8


class DispatchStub:
    """Calls the loops for float32 and float64 arrays of `from_size` elements or more, else `plain`. The first argument decides."""

    def __init__(self, plain, file, from_size):
        functools.update_wrapper(self, plain)
        self.plain, self.file, self.from_size = plain, file, from_size
        self.loops = None

    def __call__(self, x, *rest):
        if x.size < self.from_size or x.dtype not in (F4, F8):
            return self.plain(x, *rest)
        if self.loops is None:
            import_module(f"readtorch.aten.native.cpu.{self.file}")
        return self.loops(x, *rest)


def dispatch_stub(file, from_size):
    """Decorator for the plain form. file: the module of `cpu/` that registers the loops."""
    return lambda plain: DispatchStub(plain, file, from_size)


def register_dispatch(stub):
    """Decorator for the form of a stub with compiled loops. What these do not know, they give back to `stub.plain`."""

    def register(loops):
        stub.loops = loops
        return loops

    return register
