"""The engine as Python calls it: tensors and gradient edges in, gradients out, every argument checked.

In PyTorch: `torch/csrc/autograd/python_engine.cpp`; what is asked about a running backward: `torch/csrc/Module.cpp`.
Explained in the chapter "Autograd".
"""

from readtorch.c10.tensor_impl import TensorImpl

from . import engine
from .graph_task import get_current_graph_task
from .graph_task import get_current_graph_task_id as current_graph_task_id  # noqa: F401
from .node import Node, engine_thread
from .variable import gradient_edge, requires_grad


class ImperativeEngine:
    """`Variable._execution_engine`: `torch._C._ImperativeEngine`."""

    queue_callback = staticmethod(engine.queue_callback)

    def run_backward(
        self,
        tensors,
        grad_tensors,
        keep_graph,
        create_graph,
        inputs=None,
        allow_unreachable=False,
        accumulate_grad=False,
    ):
        """Walk the graph behind `tensors` (Tensors or GradientEdges), which receive `grad_tensors`.

        With accumulate_grad leaves get their `.grad`, those of `inputs` if there are any; else the gradients of `inputs` are
        returned, None where nothing arrived. Raises RuntimeError for what has no graph, and for an input that was not
        reached unless allow_unreachable.
        """
        if len(tensors) != len(grad_tensors):
            raise RuntimeError(f"got {len(tensors)} tensors and {len(grad_tensors)} gradients")
        roots = [root_edge(t, grad_tensors[i], i) for i, t in enumerate(tensors)]
        ends = None if inputs is None else [input_edge(t, accumulate_grad) for t in inputs]
        results = engine.execute(roots, grad_tensors, keep_graph, create_graph, ends, accumulate_grad)
        if accumulate_grad or inputs is None:
            return None
        if not allow_unreachable:
            check_reached(results)
        return tuple(results)

    def is_checkpoint_valid(self):
        """Whether all calls of backward that this thread is in run the whole graph: none has `inputs`."""
        return engine_thread().checkpoint_valid


def root_edge(t, grad, i):
    """Where the i-th gradient that the caller gave enters the graph."""
    if isinstance(t, TensorImpl):
        edge = gradient_edge(t)
    elif is_gradient_edge(t):
        edge = parse_gradient_edge(t)
    else:
        raise RuntimeError(f"element {i} of tensors tuple is neither a Tensor nor a GradientEdge")
    if edge[0] is None:
        raise RuntimeError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    if grad is None:
        subject = f"element {i} of gradients tuple is None, but the corresponding"
        if not isinstance(t, TensorImpl):
            raise RuntimeError(f"{subject} output is a GradientEdge.This is not supported.")
        if requires_grad(t):
            raise RuntimeError(f"{subject} Tensor requires grad")
    return edge


def input_edge(t, accumulate_grad):
    """Where the gradient of one of `inputs` is caught; a tensor that is no leaf retains it if it is to be accumulated."""
    if not isinstance(t, TensorImpl):
        if is_gradient_edge(t):
            return parse_gradient_edge(t)
        raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(t).__name__}")
    if accumulate_grad:
        t.retain_grad()
    if not requires_grad(t):
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    edge = gradient_edge(t)
    return (UNREACHABLE, 0) if edge[0] is None else edge


UNREACHABLE = Node()  # the end for an input that no gradient can reach


def is_gradient_edge(value):
    """A `torch.autograd.graph.GradientEdge`: a named tuple that begins with a node and the number of one of its inputs."""
    return isinstance(value, tuple) and hasattr(value, "output_nr")


def parse_gradient_edge(edge):
    node, number = edge[:2]
    if not isinstance(node, Node):
        raise RuntimeError(f"GradientEdge's first object must be an autograd.graph.Node but got {type(node).__name__}")
    return node, number


def check_reached(results):
    for i, result in enumerate(results):
        if result is None:
            raise RuntimeError(
                f"The differentiated Tensor at index {i} appears to not have been used "
                "in the graph. Set allow_unused=True if this is the desired behavior."
            )


# -------------------------------------------------------------------------- what is asked about the backward that runs


def current_node():
    """The node that this thread's engine runs now, or None."""
    return engine_thread().node


def will_engine_execute_node(node):
    """Whether the backward that runs now will come to `node`, or has. RuntimeError outside, and for a captured leaf."""
    if not isinstance(node, Node):
        raise RuntimeError(f"_will_engine_execute_node expects an grad_fn, but got {type(node).__name__}")
    task = get_current_graph_task()
    if task is None:
        raise RuntimeError("_get_should_execute_nodes should only be called during the backward pass")
    if node not in task.dependencies or task.exec_info is None:
        return node in task.dependencies
    info = task.exec_info.get(node)
    if info is not None and info.captures and not node._next_edges:
        raise RuntimeError(
            "A leaf node was passed to _will_engine_execute_node but we are "
            "currently running autograd.grad(). This is currently not supported."
        )
    return info is not None
