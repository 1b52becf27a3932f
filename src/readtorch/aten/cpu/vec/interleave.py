"""`interleave()`: the last line of a loop that is to work on several vectors at a time.

Note [ Several vectors at a time ]
The instructions of a polynomial wait for one another, four cycles each, while the core could start two in
every cycle. It finds others to start among the next few hundred instructions; in a loop over one vector that is
the next iteration, and hardly more. So LLVM is asked to write the body of each iteration for eight vectors (with
four, a loop of three such functions takes an eighth longer). It knows how, but does so on its own for short loops
and sums only.

PyTorch has no such file: C++ has a pragma for it, numba nothing. What the pragma leaves in LLVM's text is a remark on
the branch that closes the loop, and that is the next one that numba writes after the loop's last line.
"""

from llvmlite import ir
from llvmlite.ir.values import MDValue
from numba import types
from numba.extending import intrinsic

VECTORS = 8


@intrinsic
def interleave(typing_context):
    """As `#pragma clang loop interleave_count(8)`. See Note [ Several vectors at a time ]."""

    def emit(context, builder, signature, arguments):
        write_branch = builder.branch

        def branch(target):
            builder.branch = write_branch
            closing = write_branch(target)
            closing.set_metadata("llvm.loop", remark(builder.module))
            return closing

        builder.branch = branch
        return context.get_dummy_value()

    return types.none(), emit


def remark(module):
    """!1 = !{!1, !0}, !0 = !{!"llvm.loop.interleave.count", i32 8}: a loop's remarks begin with themselves."""
    name = ir.MetaDataString(module, "llvm.loop.interleave.count")
    count = module.add_metadata([name, ir.Constant(ir.IntType(32), VECTORS)])
    whole = MDValue(module, [count], str(len(module.metadata)))
    whole.operands = (whole, count)
    return whole
