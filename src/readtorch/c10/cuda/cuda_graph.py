"""CUDA graphs: a stream's work is captured once and replayed as a whole.

Note [ Graphs and memory ]
A captured kernel uses the addresses that its tensors had, at each replay. So what is allocated while the stream captures comes
from a private pool (Note [ Private pools ] in cuda_caching_allocator/device_caching_allocator.py), which keeps its memory as
long as the graph lives: within the capture blocks are reused, for a replay does things in the same order, and nobody else gets
them. What came from outside must be kept alive, and in its place, by the program.

In PyTorch: `aten/src/ATen/cuda/CUDAGraph.cpp`.
"""

import itertools
import warnings

import numpy as np

from readtorch.c10.device import current_device
from readtorch.c10.storage_impl import address_of

from . import runtime
from .cuda_exception import AcceleratorError
from .cuda_generator_impl import CUDAGeneratorCaptureState
from .cuda_graphs_c10_utils import currently_capturing_graph, underway
from .cuda_stream import DeviceGuard, StreamGuard, current_stream, default_stream
from .device_memory import device_array
from .driver_api import GLOBAL, RELAXED, THREAD_LOCAL

MODES = {"global": GLOBAL, "thread_local": THREAD_LOCAL, "relaxed": RELAXED}
NO_POOL = (0, 0)
_pool_numbers = itertools.count(1)


def graph_pool_handle(is_user_created=True):
    """The id of a pool that several graphs can share; the first number is that of a graph's own pool."""
    number = next(_pool_numbers)
    return (0, number) if is_user_created else (number, 0)


class CUDAGraph:
    """keep_graph: the graph is kept beside what is launched, and made into that when `instantiate` or `replay` is called."""

    is_debugged = False  # whether the graphs are kept for `debug_dump`, for all of them

    def __init__(self, keep_graph=False):
        self._keep_graph = keep_graph
        self._graph = self._exec = self._pool_id = self._capture_id = None
        self._capture_ended = False
        self._capture_stream = current_stream(current_device.index)
        self._states = {}  # generator -> its CUDAGeneratorCaptureState
        self._driver = runtime.driver()
        self._node_count = 0

    # ------------------------------------------------------------------------------------------------- capture

    def capture_begin(self, pool=None, capture_error_mode="global"):
        """What is put on the current stream, not the default one, is captured from now on.

        pool: the id of a pool (`graph_pool_handle`, another graph's `pool()`) for what is allocated. capture_error_mode: which
        calls that may wait for the device are errors meanwhile: "global", those of all threads; "thread_local", this thread's;
        "relaxed", none. RuntimeError.
        """
        mode = MODES.get(capture_error_mode)
        if mode is None:
            raise RuntimeError(
                "Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got " + capture_error_mode
            )
        if self._exec is not None:
            raise RuntimeError(
                "This CUDAGraph instance already owns a captured graph. To capture a new graph, create a new instance."
            )
        stream = self._capture_stream = current_stream(current_device.index)
        if stream == default_stream(stream.device_index):
            raise RuntimeError(
                "CUDA graphs must be captured on a non-default stream. (However, after capture, it's ok to replay them on "
                "the default stream.)"
            )
        self._pool_id = graph_pool_handle(is_user_created=False) if pool in (None, NO_POOL) else tuple(pool)
        memory = self._memory = runtime.allocator().device(stream.device_index)
        memory.begin_allocate_to_pool(self._pool_id, self._is_capturing)
        memory.mark_capture_begin()
        try:
            self._driver.stream_begin_capture(stream.device_index, stream.handle, mode)
        except AcceleratorError:
            self._leave_memory()
            memory.release_pool(self._pool_id)
            raise
        self._capture_id = self._driver.stream_capture_id(stream.device_index, stream.handle)
        underway[self._capture_id] = self

    def _is_capturing(self, stream):
        """Whether a request for memory on that stream belongs to the capture."""
        return self._driver.stream_capture_id(self._capture_stream.device_index, stream) == self._capture_id is not None

    def _leave(self):
        """End the capture here, if one is underway; whether one was."""
        if underway.get(self._capture_id) is not self:
            return False
        del underway[self._capture_id]
        self._leave_memory()
        return True

    def _leave_memory(self):
        self._memory.end_allocate_to_pool(self._pool_id)
        self._memory.mark_capture_end()

    def capture_end(self):
        """The capture is over; `replay` may be called. RuntimeError, AcceleratorError."""
        stream = self._capture_stream
        if current_stream(current_device.index) != stream:
            raise RuntimeError("Capture must end on the same stream it began on.")
        try:
            graph = self._driver.stream_end_capture(stream.device_index, stream.handle)
        except AcceleratorError:
            self._abandon()
            raise
        if not self._leave():
            raise RuntimeError("capture_end() called before capture_begin().")
        self._graph, self._capture_ended = graph, True
        self._node_count = self._driver.graph_node_count(graph)
        if not self._node_count:
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be captured on wrong device or "
                "stream.",
                stacklevel=2,
            )
        if not self._keep_graph:
            self.instantiate()
            if not CUDAGraph.is_debugged:
                self._forget_graph()

    def _abandon(self):
        """The driver has given up the capture."""
        # in PyTorch: requests for memory go on to the pool of a capture that has failed, and "captures underway" are counted
        if self._driver.stream_capture_id(self._capture_stream.device_index, self._capture_stream.handle) is None:
            if self._leave():
                self._memory.release_pool(self._pool_id)

    def capture_state_of(self, generator):
        """The state from which a generator serves this capture."""
        state = self._states.get(generator)
        if state is None:
            index = self._capture_stream.device_index
            with StreamGuard(default_stream(index)):  # this memory is not the pool's
                state = self._states[generator] = CUDAGeneratorCaptureState(device_array(index, 2, np.uint64))
        return state

    def register_generator_state(self, generator):
        """Have replays write this generator's seed and offset. One that is drawn from in the capture is registered by itself."""
        self.capture_state_of(generator._impl)

    # -------------------------------------------------------------------------------------------------- replay

    def instantiate(self):
        """Make of the captured graph what can be launched. RuntimeError before `capture_end`."""
        if not self._capture_ended:
            raise RuntimeError("capture_end() must have been called before calling instantiate")
        if self._exec is not None:
            if not self._keep_graph:
                raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")
            self._driver.graph_exec_destroy(self._exec)
        self._exec = self._driver.graph_instantiate(self._capture_stream.device_index, self._graph)

    def replay(self):
        """Put the captured work on the current stream of the device on which it was captured. RuntimeError without any."""
        if not self._capture_ended:
            raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
        if self._exec is None:
            self.instantiate()
        index = self._capture_stream.device_index
        with DeviceGuard(index):
            stream = current_stream(index).handle
            for generator, state in self._states.items():
                seed_and_offset = np.array(generator.philox_state(state.offset_intragraph), np.uint64)
                self._driver.copy(index, stream, address_of(state.extragraph), address_of(seed_and_offset), 16)
            self._driver.graph_launch(self._exec, index, stream)

    # ------------------------------------------------------------------------------------------- what it holds

    def pool(self):
        """The id of the pool that its memory is from: (number, number). RuntimeError before the capture has ended."""
        if not self._capture_ended:
            raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
        return self._pool_id

    def reset(self):
        """Forget the graph, and give its memory back if no other graph shares it."""
        self._states.clear()
        self._leave()
        self._capture_id = None
        if self._capture_ended:
            self._memory.release_pool(self._pool_id)
            self._capture_ended = False
        self._forget_graph()
        if self._exec is not None:
            with self._driver.stream_capture_mode_guard():
                self._driver.graph_exec_destroy(self._exec)
            self._exec = None

    def _forget_graph(self):
        if self._graph is not None:
            with self._driver.stream_capture_mode_guard():
                self._driver.graph_destroy(self._graph)
            self._graph = None

    def __del__(self):
        try:
            self.reset()
        except Exception as error:  # the interpreter may be on its way out
            warnings.warn(f"CUDAGraph: {error}", stacklevel=2)

    def enable_debug_mode(self):
        """From now on all graphs are kept, for `debug_dump`."""
        CUDAGraph.is_debugged = True

    def debug_dump(self, debug_path):
        """Write the graph to a file in the language of Graphviz."""
        if not (CUDAGraph.is_debugged or self._keep_graph):
            warnings.warn("CUDA Graphs debug not enabled, set with [graph].enable_debug_mode()", stacklevel=2)
            return
        warnings.warn("DEBUG: calling debug_dump()", stacklevel=2)
        if self._graph is not None:
            warnings.warn(f"DEBUG: calling cudaGraphDebugDotPrint() with {debug_path}", stacklevel=2)
            self._driver.graph_debug_dot_print(self._graph, debug_path)
            if not self._keep_graph:
                self._forget_graph()

    def raw_cuda_graph(self):
        """The driver's handle of the graph. RuntimeError unless `keep_graph`."""
        if not self._keep_graph:
            raise RuntimeError(
                "You cannot access the raw cudaGraph_t instance unless CUDAGraph was initialized with keep_graph=true"
            )
        if self._graph is None:
            raise RuntimeError("You cannot access the raw cudaGraph_t instance until capture_end() has been called")
        return self._graph

    def raw_cuda_graph_exec(self):
        """The driver's handle of what is launched. RuntimeError before there is one."""
        if self._exec is None:
            raise RuntimeError("You cannot access the raw cudaGraphExec_t instance until instantiate() has been called")
        return self._exec

    @staticmethod
    def get_currently_capturing_graph():
        """The one that the current stream takes part in capturing. RuntimeError without any."""
        graph = currently_capturing_graph()
        if graph is None:
            raise RuntimeError("The current stream is not currently capturing.")
        return graph
