"""How far functions of one number are from the exact value, in units in the last place: eager, fused, and PyTorch's.

A unit in the last place (ulp) is the distance between two neighboring numbers of the dtype at the exact value: an error of half a
ulp is what correct rounding leaves. float32 results are held against NumPy's in float64, float64 results against NumPy's in
the processor's long double where that has more digits.

    python -m benchmarks.precision
"""

import importlib

import numpy as np

from benchmarks import record

COUNT = 1 << 16
FUNCTIONS = {  # name: (the smallest and the largest argument, the exact function)
    "exp": (-80, 80, np.exp),
    "expm1": (-10, 10, np.expm1),
    "log": (1e-3, 1e3, np.log),
    "log1p": (-0.9, 100, np.log1p),
    "sin": (-100, 100, np.sin),
    "cos": (-100, 100, np.cos),
    "tanh": (-9, 9, np.tanh),
    "sigmoid": (-80, 80, lambda x: 1 / (1 + np.exp(-x))),
    "sqrt": (0, 1e4, np.sqrt),
}
WIDER = {"float32": np.float64, "float64": np.longdouble}
# The function with five products by 1 before it, so that `compile` makes a kernel of it: they change no bit.
CHAINS = {
    "exp": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).exp() * 1.0,
    "expm1": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).expm1() * 1.0,
    "log": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).log() * 1.0,
    "log1p": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).log1p() * 1.0,
    "sin": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).sin() * 1.0,
    "cos": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).cos() * 1.0,
    "tanh": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).tanh() * 1.0,
    "sigmoid": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).sigmoid() * 1.0,
    "sqrt": lambda x: (x * 1.0 * 1.0 * 1.0 * 1.0 * 1.0).sqrt() * 1.0,
}


def argument(name, dtype, count=COUNT):
    low, high, _ = FUNCTIONS[name]
    return np.random.default_rng(0).uniform(low, high, count).astype(dtype)


def largest_error(name, computed, x):
    """In ulp, over all elements."""
    exact = FUNCTIONS[name][2](x.astype(WIDER[x.dtype.name]))
    spacing = np.spacing(np.abs(exact).astype(x.dtype)).astype(exact.dtype)
    return float(np.max(np.abs(computed.astype(exact.dtype) - exact) / spacing))


def eager(library, name, x):
    T = importlib.import_module(library)
    return getattr(T, name)(T.from_numpy(x)).numpy()


def fused(name, x):
    import readtorch

    compiled = readtorch.compile(CHAINS[name], fullgraph=True)
    for _ in range(2):  # the second call runs the kernel
        result = compiled(readtorch.from_numpy(x))
    return result.numpy()


def measured():
    """Rows with the function, the dtype, and the error of each way."""
    for dtype in WIDER:
        if np.finfo(WIDER[dtype]).eps < np.finfo(dtype).eps:
            for name in FUNCTIONS:
                x = argument(name, dtype)
                ways = {
                    "eager": eager("readtorch", name, x),
                    "fused": fused(name, x),
                    "PyTorch": eager("torch", name, x),
                }
                yield {"function": name, "dtype": dtype} | {
                    way: round(largest_error(name, y, x), 2) for way, y in ways.items()
                }


if __name__ == "__main__":
    record.write("precision", list(measured()))
