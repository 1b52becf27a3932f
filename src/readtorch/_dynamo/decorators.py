"""What a program says to the capture about its functions. In PyTorch: `torch/_dynamo/decorators.py`."""

import readtorch
from readtorch._dynamo import trace_rules


def allow_in_graph(fn):
    """A call of `fn` becomes a node of the graph; its code is not interpreted. Also for a list of functions.

    fn must only compute with the tensors that it is given. Raises AssertionError for what cannot be called.
    """
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    assert callable(fn), "allow_in_graph expects a callable"
    trace_rules.allowed_in_graph[id(fn)] = fn
    return fn


def disallow_in_graph(fn):
    """A call of `fn` breaks the graph, though it be an operator."""
    if isinstance(fn, (list, tuple)):
        return [disallow_in_graph(each) for each in fn]
    trace_rules.disallowed_in_graph[id(fn)] = fn
    trace_rules.allowed_in_graph.pop(id(fn), None)
    return fn


def assume_constant_result(fn):
    """`fn` is called when the function around it is compiled; what it returned then counts from then on."""
    fn._dynamo_marked_constant = True
    return fn


def graph_break(msg=""):
    """Breaks the graph of whoever calls it; else without effect."""


def maybe_mark_dynamic(t, index):
    """The size of a tensor in this dimension (or these) is left open at once, not only when it has been another one, where the
    graph allows it.
    """
    _mark(t, "_dynamo_dynamic_indices", index)


def mark_dynamic(t, index):
    """The same where the graph must allow it: a program that works for one size alone raises ConstraintViolationError."""
    maybe_mark_dynamic(t, index)
    t._dynamo_must_be_dynamic = True


def mark_static(t, index=None):
    """The size of a tensor in this dimension (or these, or all) is never left open: each gets a graph of its own."""
    _mark(t, "_dynamo_static_indices", range(t.dim()) if index is None else index)


def mark_static_address(t, guard=False):
    """Promise that `t` stays where it is in memory, for CUDA graphs. guard=True: not in readtorch."""
    if not isinstance(t, readtorch.Tensor):
        raise TypeError(f"mark_static_address expects a tensor but received {type(t)}")
    if guard:
        raise NotImplementedError("readtorch's mark_static_address does not guard a tensor's address")
    t._dynamo_static_input_type = "unguarded"


def _mark(t, name, index):
    indices = [index] if isinstance(index, int) else index
    setattr(t, name, getattr(t, name, frozenset()) | {i % t.dim() for i in indices})
