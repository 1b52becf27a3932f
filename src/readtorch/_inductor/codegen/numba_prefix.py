"""What generated kernels import to be compiled with.

Note [ Arrays that share no memory ]
A loop that stores to one array and loads from another can be done for several elements at once only if the two do not overlap. LLVM
compares their addresses before the loop, but for a few pairs only, and a fused kernel has a dozen arrays. It never stores to memory
that it reads under another name: the scheduler sees to it (what writes to its argument is an operator). So arguments are marked
`noalias`, as numba itself does for its array expressions in parallel; and loops ask to be vectorized, which lets LLVM compare more
pairs of the arrays that the kernel makes for itself.

In PyTorch: `torch/csrc/inductor/cpp_prefix.h` (with `__restrict__` on pointers and `#pragma GCC ivdep` where it is written).
"""

import functools

from numba import njit
from numba.core.compiler import Compiler

from readtorch.aten.cpu.compile import COMMON, REORDER
from readtorch.aten.cpu.vec.interleave import SEVERAL_VECTORS, last_line


class NoAliasCompiler(Compiler):
    """See Note [ Arrays that share no memory ]."""

    def __init__(self, *args):
        super().__init__(*args)
        self.state.flags.noalias = True


fused_kernel = functools.partial(njit, pipeline_class=NoAliasCompiler, fastmath=REORDER, **COMMON)


@njit(inline="always")
def in_range(index, size):
    """An index that was computed. Raises RuntimeError if there is no such element."""
    if index < 0 or index >= size:
        raise RuntimeError("index out of bounds")
    return index


VECTORIZE = ("vectorize.enable", 1, 1)
vectorize, interleave = last_line(VECTORIZE), last_line(VECTORIZE, SEVERAL_VECTORS)
