"""The implementation of `readtorch.compile`. Explained in the chapter "The fuser, and from TorchScript to
torch.compile".

    output_graph.py a call becomes a graph
    reads.py        what the function may read
    trace_rules.py  what it may do
    guards.py       when that graph may run again
    eval_frame.py   graphs are kept, looked up and recompiled
    backends.py     a graph becomes something that runs

In PyTorch: `torch/_dynamo/__init__.py`, and for the backend `torch/_functorch/aot_autograd.py` and `torch/_inductor`.
"""

from readtorch._dynamo import config, exc
from readtorch._dynamo.backends import check_mode, list_backends
from readtorch._dynamo.eval_frame import OptimizedModule, explain, optimize, report, reset

__all__ = ["OptimizedModule", "check_mode", "config", "exc", "explain", "list_backends", "optimize", "report", "reset"]
