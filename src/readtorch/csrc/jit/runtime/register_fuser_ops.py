"""What runs a prim::TensorExprGroup.

In PyTorch: `createTensorExprOp` at the end of `torch/csrc/jit/passes/tensorexpr_fuser.cpp`.
"""

from .operator import prim_of_node

# A graph that runs only once is not worth compiling. In PyTorch: the runs in which the profiling executor
# only watches, `getNumProfiledRuns`.
PROFILED_RUNS = 1


@prim_of_node("prim::TensorExprGroup(...) -> ...")
def tensor_expr_group(node):
    """The kernel is kept on the graph of the node, so that all who run the node share it."""
    from readtorch.csrc.jit.tensorexpr.kernel import kernel_of

    return kernel_of(node, unfused_runs=PROFILED_RUNS)
