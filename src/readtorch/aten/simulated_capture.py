"""An operator on a simulated device whose stream captures a graph.

Note [ Operators in a graph ]
A simulated device that computes with the CPU's kernels has no kernels that a graph could hold; a node is a call of an operator.
While it is captured the call is made once, to see what its results are like, and what it changed is put back: nothing has been
computed then, as on a GPU. A replay makes the call again, on the memory that the tensors had, and copies the results to where
the captured ones are. Tensors of the host that a call reads are as they were at the capture, like a kernel's arguments. What the
host would have to wait for (`item`, sizes that depend on values) cannot be captured.

PyTorch has no such file: it has no simulated devices.
"""

import numpy as np

from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_generator_impl import CUDAGeneratorImpl, ReplayedState, default_engines
from readtorch.c10.cuda.cuda_graphs_c10_utils import currently_capturing_graph
from readtorch.c10.cuda.cuda_stream import DeviceGuard, current_stream
from readtorch.c10.cuda.device_memory import SimulatedCUDAStorageImpl, check_copy_in_capture, empty_on, tensor_within
from readtorch.c10.cuda.simulated_driver import without_owner
from readtorch.c10.dispatch_key import SIMULATED_CUDA
from readtorch.c10.local_dispatch_key_set import KeyGuard
from readtorch.c10.storage_impl import StorageImpl, owner_of
from readtorch.c10.tensor_impl import TensorImpl, wrap

from .common_device import COPIES
from .simulated_cost import flat
from .tags import Tag, tags_of

WAITS = {Tag.data_dependent_output, Tag.dynamic_output_shape}


def captured(operator, compute, arguments, place):
    """What `compute(*arguments)` returns, on the device `place`; a node of the graph will compute it."""
    stream = current_stream(place.index).handle
    tensors = list(flat(arguments))
    if WAITS & set(tags_of(operator.schema)):
        runtime.driver().stream_synchronize(place.index, stream)  # says that it cannot be
    if operator.schema.name in COPIES:
        for t in tensors:
            if not t._keys & SIMULATED_CUDA:
                check_copy_in_capture(place.index, t._array)
    engines = {id(each): each for each in (default_engines[place.index], *engines_in(arguments))}.values()
    before = [t._array.copy() for t in tensors]
    states = [ReplayedState(0, 0) for _ in engines]
    results = drawing(engines, states, lambda: compute(*arguments))
    for t, old in zip(tensors, before):
        if old.size:
            np.copyto(t._array, old)
    graph = currently_capturing_graph(place.index)
    drawn = [(engine, graph.capture_state_of(engine), s.offset) for engine, s in zip(engines, states) if s.offset]
    made, places = on_device(results, tensors, place)
    kept = changed(arguments, from_pinned if operator.schema.name in COPIES else frozen)
    work = replay_of(compute, place, kept, drawn, places)
    runtime.driver().capture(place.index, stream, work, operator.schema.name)
    return made


def replay_of(compute, place, arguments, drawn, places):
    starts = [(engine, state, state.increase(used)[1]) for engine, state, used in drawn]

    def replay():
        states = [ReplayedState(int(s.extragraph[0]), int(s.extragraph[1]) + start) for _, s, start in starts]
        with KeyGuard(exclude=SIMULATED_CUDA), DeviceGuard(place.index):
            results = drawing([engine for engine, _, _ in starts], states, lambda: compute(*arguments))
        for result, there in zip(flat((results,)), places):
            if there is not None and there.size:
                np.copyto(there, result._array)

    return replay


def drawing(engines, states, compute):
    """The result of `compute()`, while these engines draw from these states."""
    for engine, state in zip(engines, states):
        engine.replayed = state
    try:
        return compute()
    finally:
        for engine in engines:
            engine.replayed = None


def engines_in(arguments):
    return [value for value in arguments if isinstance(value, CUDAGeneratorImpl)]


def on_device(results, tensors, place):
    """(the results, where those that were made are: their arrays, or None for one that is an argument, or a view of one)."""
    places = []

    def moved(t):
        if t._keys & SIMULATED_CUDA or any(t is given for given in tensors):
            places.append(None)
            return t
        if tensor_within(t._array) is not None:
            places.append(None)
            return tensor_within(t._array)
        strides = [s // t._array.itemsize for s in t._array.strides]
        made = empty_on(place, t._array.shape, t._array.dtype, strides)
        places.append(without_owner(made._array))
        return made

    return changed(results, moved), places


def frozen(t):
    """A tensor that looks at the same memory and does not keep it in use; of the host's memory, at a copy."""
    array = without_owner(t._array)
    same = wrap(array)
    if t._keys & SIMULATED_CUDA:
        storage = SimulatedCUDAStorageImpl.__new__(SimulatedCUDAStorageImpl)
        StorageImpl.__init__(storage, owner_of(array), t.device)
        storage.memory = None
        same._storage_impl, same._keys = storage, storage.keys
    return same


def from_pinned(t):
    """The same for a copy, which reads and writes the host's pinned memory when it is replayed."""
    return frozen(t) if t._keys & SIMULATED_CUDA else wrap(t._array)


def changed(values, change):
    """Nested lists and tuples with each tensor changed."""
    if isinstance(values, TensorImpl):
        return change(values)
    if isinstance(values, (tuple, list)):
        parts = [changed(value, change) for value in values]
        return type(values)(*parts) if hasattr(values, "_fields") else type(values)(parts)
    return values
