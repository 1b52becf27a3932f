"""The same loop as a CUDA kernel: a grid-stride loop around the same assignments.

The scalar functions are those of `aten/native/math.py` as they stand, so the text runs on a GPU
(numba compiles it) and on the kernel simulator.

In PyTorch: `torch/csrc/jit/tensorexpr/cuda_codegen.cpp`; torch.compile writes Triton instead.
"""

import functools
import math

import numpy as np

from readtorch.aten.codegen import compile_function
from readtorch.aten.native import math as functions
from readtorch.c10.cuda.launch import blocks_of, launch

from .loop_nest import CODES, Unfusable

THREADS = 256


def cuda_source(nest, singles):
    """One element for each thread and iteration. singles: numbers of the inputs that have one element for all."""
    if any(output.reduction for output in nest.outputs):
        raise Unfusable("reductions are not fused on CUDA")
    outputs = [f"out{k}" for k in range(len(nest.outputs))]
    arguments = ", ".join([x.name for x in nest.inputs] + outputs)
    lines = [f"def fused({arguments}):", f"    for i in range(cuda.grid(1), {outputs[0]}.size, cuda.gridsize(1)):"]
    for i, x in enumerate(nest.inputs):
        if x.is_tensor:
            lines.append(f"        v{i} = {x.name}[{0 if i in singles else 'i'}]")
    lines += [f"        {a.target} = {a.text}  # {a.node.kind()}" for a in nest.assignments]
    lines += [f"        {name}[i] = {output.name}" for name, output in zip(outputs, nest.outputs)]
    return "\n".join(lines) + "\n"


@functools.cache
def cuda_kernel(source):
    """The kernel as `launch` takes it."""
    from numba import cuda

    names = {code: dtype.type for dtype, code in CODES.items()}
    names |= {"cuda": cuda, "inf": math.inf, "nan": math.nan}
    names |= {name: f for name, f in vars(functions).items() if callable(f)}
    return compile_function("fused", source, names)


def run_on_cuda(nest, arrays):
    """Launch it on arrays (or device arrays) of one shape, or of one element. Returns the outputs' arrays."""
    from readtorch.c10.cuda.launch import scratch

    singles = {i for i, a in enumerate(arrays) if isinstance(a, np.ndarray) and a.size == 1 and nest.shape != a.shape}
    shape, like = nest.shape, next(a for a in arrays if hasattr(a, "shape"))
    size = math.prod(shape)
    dtypes = {code: dtype for dtype, code in CODES.items()}
    outs = [scratch(like, (size,), dtypes[o.code]) for o in nest.outputs]
    flat = [a if not hasattr(a, "shape") else a.reshape(-1) for i, a in enumerate(arrays)]
    if size:
        kernel = cuda_kernel(cuda_source(nest, singles))
        launch(kernel, blocks_of(size, THREADS), THREADS, *flat, *outs)
    return [out.reshape(shape) for out in outs]
