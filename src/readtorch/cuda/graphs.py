"""CUDA graphs: work that is captured once and replayed for the price of one launch.

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = model(x)                       nothing is computed yet
    x.copy_(batch)
    graph.replay()                         y is model(batch)

In PyTorch: `torch/cuda/graphs.py`, whose arguments `enable_annotations` and `check_input_liveness` are missing here.
"""

import readtorch
from readtorch.aten.functions import at
from readtorch.autograd.function import Function, once_differentiable
from readtorch.c10.cuda import cuda_graph as c10_graph
from readtorch.c10.cuda.cuda_graphs_c10_utils import current_stream_capture_id
from readtorch.csrc.autograd.autocast_init import is_autocast_cache_enabled, is_autocast_enabled
from readtorch.utils import _pytree as pytree

__all__ = ["is_current_stream_capturing", "graph_pool_handle", "CUDAGraph", "graph", "make_graphed_callables"]


def is_current_stream_capturing():
    """Whether the current device's current stream takes part in the capture of a graph; False without a device."""
    return current_stream_capture_id() is not None


def graph_pool_handle():
    """The id of a memory pool that graphs can share: a pair of numbers."""
    return c10_graph.graph_pool_handle()


class CUDAGraph(c10_graph.CUDAGraph):
    """Work of a stream that was captured: `capture_begin`, `capture_end`, then `replay` as often as wanted. `graph` calls the first two.

    keep_graph: the graph is kept beside what is launched (`raw_cuda_graph`), and is made into that when `instantiate` or `replay`
    is called.
    """


class graph:
    """`with graph(cuda_graph):` the work inside is captured, on a stream of its own, and not done.

    cuda_graph: a CUDAGraph. pool: the id of a memory pool that it shares (`graph_pool_handle()`, another graph's `pool()`). stream:
    the one to capture on, by default always the same one. capture_error_mode: see `CUDAGraph.capture_begin`.
    """

    default_capture_stream = None

    def __init__(self, cuda_graph, pool=None, stream=None, capture_error_mode="global"):
        if stream is None:
            stream = graph.default_capture_stream
            if stream is None or not stream.is_of_current_driver():
                stream = graph.default_capture_stream = readtorch.cuda.Stream()
        self.pool = () if pool is None else (pool,)
        self.capture_stream = stream
        self.stream_ctx = readtorch.cuda.stream(stream)
        self.cuda_graph = cuda_graph
        self.capture_error_mode = capture_error_mode

    def __enter__(self):
        readtorch.cuda.synchronize()
        readtorch.cuda.empty_cache()
        self.stream_ctx.__enter__()
        self.cuda_graph.capture_begin(*self.pool, capture_error_mode=self.capture_error_mode)

    def __exit__(self, *exception):
        self.cuda_graph.capture_end()
        self.stream_ctx.__exit__(*exception)


# ------------------------------------------------------------------------------------------- graphed callables


def make_graphed_callables(callables, sample_args, num_warmup_iters=3, allow_unused_input=False, pool=None):
    """The functions or modules, with their forward and their backward as a graph each, to be called like them.

    callables: one, or a tuple in the order in which they will be called; sample_args: a tuple of tensors for each, with the shapes,
    dtypes and `requires_grad` that later calls will have. num_warmup_iters: how often each runs before it is captured.
    allow_unused_input: whether an input may have no part in the outputs. pool: the id of a memory pool. A module keeps its
    type, and gets another `forward`. Raises RuntimeError, AssertionError for what cannot be graphed.
    """
    if is_autocast_enabled() and is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    if single:
        callables, sample_args = (callables,), (sample_args,)
    graphed = [GraphedCallable(function, arguments) for function, arguments in zip(callables, sample_args)]
    pool = graph_pool_handle() if pool is None else pool
    warm_up(graphed, num_warmup_iters, allow_unused_input)
    # All share the pool, so they are captured in the order in which they will run.
    for one in graphed:
        one.capture_forward(pool)
    for one in reversed(graphed):
        one.capture_backward(pool, allow_unused_input)
    made = tuple([one.finished() for one in graphed])
    return made[0] if single else made


def warm_up(graphed, times, allow_unused):
    """Run everything on a stream of its own: what is made at the first call is no part of a graph."""
    readtorch.cuda.synchronize()
    with readtorch.cuda.stream(readtorch.cuda.Stream()):
        for one in graphed:
            for _ in range(times):
                outputs = pytree.tree_leaves(one.function(*one.arguments))
                one.gradients(outputs, [at.empty_like(o) for o in outputs if o.requires_grad], allow_unused)
    readtorch.cuda.synchronize()


class GraphedCallable:
    """A callable, the tensors that its graphs read and write, and the graphs."""

    def __init__(self, function, arguments):
        self.function, self.arguments = function, arguments
        user = tuple(pytree.arg_tree_leaves(*arguments))
        parameters = tuple(function.parameters()) if isinstance(function, readtorch.nn.Module) else ()
        self._check(user)
        self.count, self.parameters = len(user), parameters
        self.inputs = user + parameters
        self.forward_graph, self.backward_graph = CUDAGraph(), CUDAGraph()

    def _check(self, user):
        if isinstance(self.function, readtorch.nn.Module):
            hooks = self.function._backward_hooks, self.function._forward_hooks, self.function._forward_pre_hooks
            if any(hooks):
                raise AssertionError(
                    "Modules must not have hooks registered at the time they are passed. However, registering hooks "
                    "on modules after passing them through make_graphed_callables is allowed."
                )
            if any(b.requires_grad for b in self.function.buffers()):
                raise AssertionError(
                    "In any :class:`~torch.nn.Module` passed to :func:`~make_graphed_callables`, only parameters may be "
                    "trainable. All buffers must have ``requires_grad=False``."
                )
        if not all(isinstance(t, readtorch.Tensor) for t in user):
            raise AssertionError(
                "In the beta API, sample_args for each callable must contain only Tensors. Other types are not allowed."
            )

    def gradients(self, outputs, grad_outputs, allow_unused):
        """Of the inputs that require grad; None if no output does."""
        outputs = tuple([o for o in outputs if o.requires_grad])
        if not outputs:
            return None
        inputs = tuple([i for i in self.inputs if i.requires_grad])
        return readtorch.autograd.grad(
            outputs, inputs, tuple(grad_outputs), only_inputs=True, allow_unused=allow_unused
        )

    def capture_forward(self, pool):
        with graph(self.forward_graph, pool=pool):
            outputs = self.function(*self.arguments)
        leaves, self.spec = pytree.tree_flatten(outputs)
        self.outputs = tuple(leaves)

    def capture_backward(self, pool, allow_unused):
        self.grad_outputs = tuple([at.empty_like(o) if o.requires_grad else None for o in self.outputs])
        found = None
        if any(o.requires_grad for o in self.outputs):
            with graph(self.backward_graph, pool=pool):
                grads = [g for g in self.grad_outputs if g is not None]
                found = iter(self.gradients(self.outputs, grads, allow_unused))
        self.grad_inputs = tuple([next(found) if i.requires_grad and found else None for i in self.inputs])

    def finished(self):
        """What is called from now on."""
        call = self._function()
        if not isinstance(self.function, readtorch.nn.Module):
            return call
        module, training, original = self.function, self.function.training, self.function.forward

        def forward(*arguments, **named):
            """The graph's, if the module is in the mode in which it was captured."""
            return (call if module.training == training else original)(*arguments, **named)

        module.forward = forward
        return module

    def _function(self):
        graphed = self

        class Graphed(Function):
            @staticmethod
            def forward(ctx, *inputs):
                for mine, given in zip(graphed.inputs[: graphed.count], inputs):
                    if mine.data_ptr() != given.data_ptr():
                        mine.copy_(given)
                graphed.forward_graph.replay()
                return tuple([o.detach() for o in graphed.outputs])

            @staticmethod
            @once_differentiable
            def backward(ctx, *grads):
                for mine, given in zip(graphed.grad_outputs, grads, strict=True):
                    if mine is not None and mine.data_ptr() != given.data_ptr():
                        mine.copy_(given)
                graphed.backward_graph.replay()
                return tuple([g if g is None else g.detach() for g in graphed.grad_inputs])

        def functionalized(*arguments):
            outputs = Graphed.apply(*pytree.arg_tree_leaves(*arguments), *graphed.parameters)
            return pytree.tree_unflatten(outputs, graphed.spec)

        return functionalized
