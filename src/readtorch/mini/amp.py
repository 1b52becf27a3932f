"""Written in the chapter "Mixed precision": its cells are this file, put together by `tools/mini.py`."""

import numpy as np

from .autograd import derivative, exp, log, matmul, operator
from .dispatcher import AUTOGRAD, KEYS, Guard, add, fallbacks, fallthrough, mul, thread

AUTOCAST = 1 << 7  # above all others
KEYS.insert(0, AUTOCAST)
fallbacks[AUTOCAST] = fallthrough
HALF, FULL = np.dtype(np.float16), np.dtype(np.float32)


def caster(dtype):
    def convert(x):
        with np.errstate(over="ignore"):
            return x.astype(dtype)

    op = operator(f"to_{dtype}", convert)
    derivative(op, a=lambda grad, a: cast(grad, a.dtype))
    return op


to = {dtype: caster(dtype) for dtype in (HALF, FULL)}


def cast(t, dtype):
    return t if t.dtype == dtype else to[dtype](t)


cache = {}


def cached_cast(t, dtype):
    is_weight = t.requires_grad and t.grad_fn is None
    is_recorded = not thread.excluded & AUTOGRAD
    lowered = (t.dtype, dtype) == (FULL, HALF)
    if not (is_weight and is_recorded and lowered):
        return cast(t, dtype)
    if id(t) not in cache:
        cache[id(t)] = t, cast(t, dtype)
    return cache[id(t)][1]


def lower_precision(args):
    return HALF


def fp32(args):
    return FULL


def promote(args):
    return max(t.dtype for t in args)  # float16 < float32


def policy(op, dtype_for):
    @op.impl(AUTOCAST)
    def autocast_kernel(keys, *args):
        dtype = dtype_for(args)
        with Guard(exclude=AUTOCAST):
            return op(*[cached_cast(t, dtype) for t in args])


policy(matmul, lower_precision)
for op in exp, log:
    policy(op, fp32)
for op in add, mul:
    policy(op, promote)


class autocast(Guard):
    depth = 0

    def __init__(self):
        super().__init__(include=AUTOCAST)

    def __enter__(self):
        super().__enter__()
        autocast.depth += 1

    def __exit__(self, *error):
        super().__exit__(*error)
        autocast.depth -= 1
        if autocast.depth == 0:
            cache.clear()


class GradScaler:
    def __init__(self, scale=2.0**16, interval=2000):
        self.scale, self.interval, self.good = scale, interval, 0
        self.found_inf = self.unscaled = False

    def unscale_(self, parameters):
        for p in parameters:
            g = p.grad.read()
            self.found_inf |= not np.isfinite(g).all()
            p.grad.write(g * np.float32(1 / self.scale))
        self.unscaled = True

    def step(self, parameters, optimizer_step):
        if not self.unscaled:
            self.unscale_(parameters)
        if not self.found_inf:
            optimizer_step(parameters)

    def update(self):
        self.good += 1
        if self.found_inf:
            self.scale, self.good = self.scale * 0.5, 0
        elif self.good == self.interval:
            self.scale, self.good = self.scale * 2.0, 0
        self.found_inf = self.unscaled = False
