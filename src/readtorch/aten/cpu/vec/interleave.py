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


def last_line(*wishes):
    """An intrinsic for the end of a loop, which leaves a remark on the branch that closes it. wishes: (name, bits, integer) in LLVM."""

    @intrinsic
    def leave_remark(typing_context):
        def emit(context, builder, signature, arguments):
            write_branch = builder.branch

            def branch(target):
                builder.branch = write_branch
                closing = write_branch(target)
                closing.set_metadata("llvm.loop", remark(builder.module, wishes))
                return closing

            builder.branch = branch
            return context.get_dummy_value()

        return types.none(), emit

    return leave_remark


def remark(module, wishes):
    """!1 = !{!1, !0}, !0 = !{!"llvm.loop.interleave.count", i32 8}: a loop's remarks begin with themselves."""
    entries = [
        module.add_metadata([ir.MetaDataString(module, f"llvm.loop.{name}"), ir.Constant(ir.IntType(bits), value)])
        for name, bits, value in wishes
    ]
    whole = MDValue(module, entries, str(len(module.metadata)))
    whole.operands = (whole, *entries)
    return whole


SEVERAL_VECTORS = ("interleave.count", 32, VECTORS)
interleave = last_line(SEVERAL_VECTORS)  # as `#pragma clang loop interleave_count(8)`
