"""Makes a graph of one call of a function, while the function runs as usual.

The tracer of the chapter "JIT: tracing" records it. Three things are different from `jit.trace`:

    sizes are plain ints, and that they were read is noted: the shapes are guarded then; a tensor that the
    function did not get as an argument (a parameter, a global) becomes an input of the graph; what a trace
    cannot follow does not warn: it is noted in `reason`, and the graph is discarded.

The call is an ordinary eager one in all cases, so its result is right whatever becomes of the graph. Whether the
graph may stand for a later call is not seen in a trace: Note [ What a graph may stand for ] in reads.py.

In PyTorch: `torch/_dynamo/output_graph.py` is filled by an interpreter of the function's bytecode
(`torch/_dynamo/symbolic_convert.py`), so it sees the branches that a trace misses. What it cannot put into a graph it leaves
to Python and continues after it (a *graph break*).
"""

import numpy as np

from readtorch.c10.dispatch_key import WRAPPED_NUMBER
from readtorch.c10.size import Size
from readtorch.c10.tensor_impl import TensorImpl
from readtorch.csrc.jit.frontend import trace_type, tracer  # noqa: F401  the first makes the kernels
from readtorch.utils._pytree import tree_flatten

# What an output may hold besides tensors.
PLAIN = (int, float, bool, str, complex, type(None), Size)


class CompileTrace(tracer.TracingState):
    """A trace for `compile`. reason: why the graph cannot be trusted; None if it can."""

    def __init__(self, origins):
        super().__init__(strict=False)
        self.origins = origins  # id of a tensor -> where the function has it from
        self.lifted = []  # (origin, tensor), the graph's inputs after the arguments
        self.reason = None
        self.sizes_read = False
        self.made = []  # (tensor made from Python's values, its version then)

    def give_up(self, reason):
        self.reason = self.reason or reason

    # --------------------------------------------------------------------------------------------- what leaks

    def warn(self, message):
        if "to get tensor shape" in message or message.startswith("Iterating"):
            self.sizes_read = True
        else:
            self.give_up(message)

    def warn_of_conversion(self, kind):
        self.give_up(f"data-dependent: a tensor became a Python {kind}")

    def warn_of_constructor(self, name):
        """Made from Python's values, which are guarded."""

    def not_recorded(self, name):
        if name == "_fused_sdp_choice":  # decided by shapes
            self.sizes_read = True
        else:
            self.give_up(f"it calls {name}, of which a graph keeps nothing")

    def size(self, tensor, dim):
        self.sizes_read = True
        return tensor._array.shape[dim]

    def shape(self, tensor):
        self.sizes_read = True
        return Size(tensor._array.shape)

    def numel(self, tensor):
        self.sizes_read = True
        return tensor._array.size

    # -------------------------------------------------------------------------------------------- new tensors

    def _tensor_constant(self, tensor):
        """A tensor that no operator of the trace has made."""
        origin = self.origins.get(id(tensor))
        if origin is None:
            return self._made_on_the_way(tensor)
        value = self.graph.addInput(origin.name)
        self.lifted.append((origin, tensor))
        self.set_value(tensor, self.paused(lambda: value.inferTypeFrom(tensor)))
        return value

    def _made_on_the_way(self, tensor):
        """A constant, if autograd has no part in it: `tensor(3.)` inside the function."""
        if self.paused(lambda: tensor.requires_grad):
            self.give_up("a tensor that requires grad and is neither an argument nor a parameter, closure or global")
            tensor = self.paused(tensor.detach)
        self.made.append((tensor, tensor._counter[0]))
        return super()._tensor_constant(tensor)

    def has_constants(self):
        """Whether there are tensors made from Python's values; not the numbers beside operands."""
        return any(not tensor._keys & WRAPPED_NUMBER for tensor, _ in self.made)

    def check_constants(self, results):
        """A constant is the same tensor in each run of the graph: nobody may write to it, or get hold of it."""
        for tensor, version in self.made:
            if tensor._counter[0] != version:
                self.give_up("it writes to a tensor that it made from Python's values")
            if any(np.may_share_memory(tensor._array, each._array) for each in results):
                self.give_up("it returns a tensor that it made from Python's values")


class Capture:
    """graph, its inputs and what the call returned.

    tensors: the argument leaves that are tensors, by number. outputs: for each leaf of the result
    ("tensor", number of the graph's output) or ("plain", value); spec: how the result is put together.
    """

    def __init__(self, function, args, kwargs, origins):
        leaves, _ = tree_flatten((args, kwargs))
        state = self.state = CompileTrace(origins)
        self.graph = state.graph
        self.tensors, self.repeated = ([], [])  # the second: (number of a leaf, the leaf that is the same tensor)
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, TensorImpl):
                self.add_input(i, leaves)
        with tracer._Tracing(state):
            self.result = function(*args, **kwargs)
        self.outputs, self.spec = [], None
        if state.reason is None:
            with tracer._Tracing(state):
                self.add_outputs()

    def add_input(self, i, leaves):
        first = next((k for k in self.tensors if leaves[k] is leaves[i]), None)
        if first is not None:
            self.repeated.append((i, first))
            return
        self.tensors.append(i)
        value = self.graph.addInput()
        self.state.set_value(leaves[i], value.inferTypeFrom(leaves[i]))

    def add_outputs(self):
        leaves, self.spec = tree_flatten(self.result)
        for leaf in leaves:
            if isinstance(leaf, TensorImpl):
                self.outputs.append(("tensor", len(self.graph.outputs())))
                self.graph.registerOutput(self.state.get_value(leaf))
            elif isinstance(leaf, PLAIN):
                self.outputs.append(("plain", leaf))
            else:
                self.state.give_up(f"the result holds a {type(leaf).__name__}")
        self.state.check_constants([leaf for leaf in leaves if isinstance(leaf, TensorImpl)])
