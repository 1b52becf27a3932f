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

from llvmlite import ir
from llvmlite.ir.values import MDValue
from numba import njit, types
from numba.core.compiler import Compiler
from numba.extending import intrinsic

from readtorch.aten.cpu.compile import COMMON, REORDER
from readtorch.aten.cpu.vec.interleave import VECTORS


class NoAliasCompiler(Compiler):
    """See Note [ Arrays that share no memory ]."""

    def __init__(self, *args):
        super().__init__(*args)
        self.state.flags.noalias = True


fused_kernel = functools.partial(njit, pipeline_class=NoAliasCompiler, fastmath=REORDER, **COMMON)


def remark(module, count):
    """The metadata of a loop: vectorize it, and if `count` is given, so many vectors at a time."""
    wishes = [("llvm.loop.vectorize.enable", ir.Constant(ir.IntType(1), 1))]
    if count:
        wishes.append(("llvm.loop.interleave.count", ir.Constant(ir.IntType(32), count)))
    entries = [module.add_metadata([ir.MetaDataString(module, name), value]) for name, value in wishes]
    whole = MDValue(module, entries, str(len(module.metadata)))
    whole.operands = (whole, *entries)
    return whole


def last_line(count):
    """An intrinsic for the end of a loop: it leaves its remark on the branch that closes the loop."""

    @intrinsic
    def leave_remark(typing_context):
        def emit(context, builder, signature, arguments):
            write_branch = builder.branch

            def branch(target):
                builder.branch = write_branch
                closing = write_branch(target)
                closing.set_metadata("llvm.loop", remark(builder.module, count))
                return closing

            builder.branch = branch
            return context.get_dummy_value()

        return types.none(), emit

    return leave_remark


vectorize, interleave = last_line(0), last_line(VECTORS)
