"""What an operator does with tensors on a simulated device.

Note [ Simulated devices ]
A tensor on a simulated GPU carries two backend bits: SIMULATED_CUDA, and CPU below it. A call therefore arrives here;
this kernel masks its own bit off, so that the operator's CPU kernel, and every operator that it calls, sees tensors of
its own. Memory is the device's: what the kernel made is moved into a block of the caching allocator, on the current
stream of that device. So shapes, results, allocations, streams and errors are those of a GPU; the arithmetic is the CPU's.

In PyTorch: nothing. Nearest is `aten/src/ATen/native/CPUFallback.cpp`. Explained in the chapter "The caching
allocator".
"""

from readtorch.c10.cuda.cuda_graphs_c10_utils import current_stream_capture_id
from readtorch.c10.cuda.cuda_stream import DeviceGuard
from readtorch.c10.cuda.device_memory import tensor_on, tensor_within
from readtorch.c10.device import cpu
from readtorch.c10.dispatch_key import CPU, MATH_BITS, SIMULATED_CUDA
from readtorch.c10.local_dispatch_key_set import KeyGuard
from readtorch.c10.tensor_impl import TensorImpl

from . import dispatcher
from .common_device import COPIES, common_device, engine_of, launched, resolve, wait_for_copy
from .simulated_capture import captured
from .sparse_tensor_impl import refuse_sparse

# Results that stay in the host's memory: which of an operator's results they are.
ON_HOST = {"_pack_padded_sequence": (1,), "_pad_packed_sequence": (1,)}


def make_kernel(operator, keys):
    """The kernel of `operator` for simulated devices."""
    compute = operator.kernels.get(CPU)
    if compute is None:
        return None
    name = operator.schema.name
    places = [i for i, a in enumerate(operator.schema.arguments) if a.type.is_tensor]
    device_place = next((i for i, a in enumerate(operator.schema.arguments) if a.name == "device"), None)
    generator_place = next((i for i, a in enumerate(operator.schema.arguments) if a.name == "generator"), None)
    if device_place is not None and getattr(compute, "any_device", False):
        return compute  # it calls operators that are given the device, and come here themselves
    stay = ON_HOST.get(name, ())
    launches = not operator.schema.is_view  # a view is the host's work alone

    def kernel(*arguments):
        asked = device_place is not None and (arguments[device_place] is not None or not places)
        if asked:
            for i in places:
                refuse_sparse(arguments[i])
            place = resolve(arguments[device_place])
            arguments = (*arguments[:device_place], cpu, *arguments[device_place + 1 :])
        else:
            place = common_device(operator, [arguments[i] for i in places])
        if generator_place is not None:
            engine = engine_of(arguments[generator_place], place)
            arguments = (*arguments[:generator_place], engine, *arguments[generator_place + 1 :])
        with KeyGuard(exclude=SIMULATED_CUDA), DeviceGuard(place.index):
            captures = launches and current_stream_capture_id(place.index) is not None
            results = captured(operator, compute, arguments, place) if captures else compute(*arguments)
            if launches:
                launched(operator, arguments, results, place)
            if name in COPIES:
                wait_for_copy(operator, arguments, place)
            if results is arguments[0]:  # an in-place call: its target stays where it is, even on the host
                return results
            return moved(results, place, stay)

    kernel.__name__ = f"{name}_simulated"
    return kernel


dispatcher.writers[SIMULATED_CUDA] = make_kernel


def moved(results, place, stay=()):
    """A kernel's results, with those that it made in host memory moved to the device."""
    if isinstance(results, TensorImpl):
        return results if results._keys & SIMULATED_CUDA else moved_tensor(results, place)
    if not isinstance(results, (tuple, list)):
        return results
    parts = [r if i in stay else moved(r, place) for i, r in enumerate(results)]
    return type(results)(*parts) if hasattr(results, "_fields") else type(results)(parts)


def moved_tensor(t, place):
    refuse_sparse(t)
    within = tensor_within(t._array)
    result = tensor_on(place, t._array) if within is None else within
    result._keys |= t._keys & MATH_BITS
    return result
