"""What is compiled without a GPU: name -> (launcher, arguments); the kernels that it launches are compiled.

The arrays are small: only their types and layouts count."""
import numpy as np

from readtorch.aten.native.cuda import functions, loops
from tests.cuda.launches import aligned, floats

f32 = np.float32
ALPHA = (f32(1),)


def pointwise_cases():
    x, m, out = aligned(floats(8)), floats(2, 3, 4), aligned(floats(8))
    for name, function in vars(functions).items():
        if callable(function) and signature(function)[-1:] == ("numbers",):
            inputs = len(signature(function)) - 1
            yield f"pointwise {name}", loops.pointwise, (function, [x] * inputs, out, (f32(1), f32(2),
                                                                                       f32(3)))
    for inputs, function in ((1, functions.exp), (2, functions.add), (3, functions.addcmul)):
        yield f"strided {inputs}", loops.pointwise, (function, [m.transpose(2, 0, 1)] * inputs, floats(4, 2,
                                                                                                       3),
                                                     ALPHA)
        yield f"double {inputs}", loops.pointwise, (function, [np.ones(8)] * inputs, np.ones(8), (1.0,))


def signature(function):
    code = getattr(function, "__code__", None)
    return code.co_varnames[:code.co_argcount] if code else ()


FAMILIES = [pointwise_cases]
IN_FLOAT64 = ("pointwise sin", "pointwise cos")  # CUDA's own functions bring large arguments down so
NO_SPILLS = ("softmax", "norm", "matmul")


def cases():
    return {name: (launcher, arguments) for family in FAMILIES for name, launcher, arguments in family()}
