"""One launch for many tensors: each is cut into chunks, and a block takes one.

    multi_tensor_apply(kernel, [params, grads], numbers, steps)

The kernel gets `ends` (where each tensor's chunks end, all chunks counted), a tuple of arrays for each list, the numbers, and
tuples with one number for each tensor; `chunk_of(ends)` says which tensor a block works on, and from which element on. A
launch takes as many tensors as its parameters have room for; what is left of a tuple is filled with its last array, to which
no block comes. Grid: a block for each chunk of 65,536 elements; block: 256 threads.

In PyTorch: `aten/src/ATen/native/cuda/MultiTensorApply.cuh`, where the arguments hold each block's tensor and chunk. Explained
in the chapter "torch.optim".
"""

from collections import defaultdict

import numpy as np
from numba import cuda

from readtorch.c10.cuda.launch import launch
from readtorch.c10.memory_format import contiguous_format
from readtorch.c10.scalar_type import SCALAR_TYPE_NAMES, float32

from .copy import clone_cuda, copy_elements

THREADS, CHUNK = 256, 65536
PARAMETER_BYTES, ARRAY_BYTES = 5120, 56  # of a launch's parameters, and of an array of one dimension among them


def at_once(lists):
    """How many tensors a launch takes, of so many lists. In PyTorch: `depth_to_max_tensors`."""
    return (PARAMETER_BYTES - 256) // (ARRAY_BYTES * lists + 16)


def multi_tensor_apply(kernel, lists, *arguments, each=()):
    """Launch `kernel(ends, *lists, *each, *arguments)`. lists: of contiguous arrays, in each place of one shape, in each list
    of one dtype. each: lists with a number for each tensor."""
    most = at_once(len(lists))
    for begin in range(0, len(lists[0]), most):
        groups = [[a.reshape(-1) for a in arrays[begin : begin + most]] for arrays in lists]
        ends, end = [], 0
        for array in groups[0]:
            end += -(-array.size // CHUNK)
            ends.append(end)
        if end:
            numbers = [values[begin : begin + most] for values in each]
            launch(kernel, end, THREADS, *[filled(group, most) for group in (ends, *groups, *numbers)], *arguments)


def filled(values, most):
    return (*values, *[values[-1]] * (most - len(values)))


def chunk_of(ends):
    """(tensor, first element) of this block. Runs in kernels."""
    block, tensor = cuda.blockIdx.x, np.int64(0)  # a plain 0 would be a type of its own to numba
    while block >= ends[tensor]:
        tensor += 1
    begin = ends[tensor - 1] if tensor else 0
    return tensor, (block - begin) * CHUNK


def gradient_at(grad, i, scaled, scale, maximize):
    """An element of a gradient, divided by a GradScaler's scale (and stored so). Runs in kernels."""
    g = grad[i]
    if scaled:
        g = type(g)(g / type(g)(scale[0]))
        grad[i] = g
    return -g if maximize else g


class InOrder:
    """Lists of tensors as contiguous arrays; what had to be laid out is written back when the step is
    done."""

    def __init__(self, *lists):
        self.originals = lists
        self.laid_out = [[self._laid_out(t) for t in tensors] for tensors in lists]

    @staticmethod
    def _laid_out(t):
        return t if t._array.flags.c_contiguous else clone_cuda(t, contiguous_format)

    def __enter__(self):
        return [[t._array for t in tensors] for tensors in self.laid_out]

    def __exit__(self, kind, *exception):
        if kind is not None:
            return
        for tensors, laid_out in zip(self.originals, self.laid_out):
            for t, copy in zip(tensors, laid_out):
                if t is not copy:
                    copy_elements(copy, t)


# ------------------------------------------------------------------------------------------------ fused optimizers


def multi_tensor_apply_for_fused_optimizer(apply, lists, state_steps, grad_scale, found_inf):
    """Call `apply(*lists of arrays, steps, scale, found)` for the tensors of each dtype. scale, found: arrays of a GradScaler's
    two numbers, or None. Nobody waits for the device: the kernels read counts and numbers there."""
    for t in (grad_scale, found_inf):
        if t is not None and t.dtype != float32:
            raise RuntimeError(f"expected scalar type Float but found {SCALAR_TYPE_NAMES[t.dtype]}")
    scale, found = (None if t is None else t._array.reshape(-1) for t in (grad_scale, found_inf))
    kinds = defaultdict(list)
    for i, param in enumerate(lists[0]):
        kinds[param._array.dtype].append(i)
    for places in kinds.values():
        chosen = [[tensors[i] for i in places] if tensors else [] for tensors in (*lists, state_steps)]
        with InOrder(*chosen) as arrays:
            apply(*arrays, scale, found)


def changed(*lists):
    for tensors in lists:
        for t in tensors:
            t._counter[0] += 1


def flags_of(scale, found, like):
    """(whether there is a scale, whether infinities were looked for), and both as arrays that a kernel can take."""
    return (scale is not None, found is not None), (like if scale is None else scale, like if found is None else found)
