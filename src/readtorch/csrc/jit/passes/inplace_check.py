"""Refuses graphs that call an autograd Function which writes to its input.

`forward` was recorded beside the call, and what writes is not removed: the graph would write twice. In PyTorch:
`torch/csrc/jit/passes/inplace_check.cpp`.
"""


def CheckInplace(graph):
    for node in graph.findAllNodes("prim::PythonOp"):
        if node.hasAttribute("inplace") and node.i("inplace"):
            raise RuntimeError(f"inplace {node.pyname()} not supported in the JIT")
