"""What an operator does with tensors on a simulated device.

Note [ Simulated devices ]
A tensor on a simulated GPU carries two backend bits: SIMULATED_CUDA, and CPU below it. A call therefore arrives here;
this kernel masks its own bit off, so that the operator's CPU kernel, and every operator that it calls, sees tensors of
its own. Memory is the device's: what the kernel made is moved into a block of the caching allocator, on the current
stream of that device. So shapes, results, allocations, streams and errors are those of a GPU; the arithmetic is the CPU's.

In PyTorch: nothing. Nearest is `aten/src/ATen/native/CPUFallback.cpp`. Explained in the chapter "The caching allocator".
"""
from ..c10.cuda import runtime
from ..c10.cuda.cuda_generator import default_engines
from ..c10.cuda.device_memory import tensor_on, tensor_within
from ..c10.cuda.stream import DeviceGuard, current_stream
from ..c10.device import cpu, current_device, default_device
from ..c10.device import device as Device
from ..c10.dispatch_key import CPU, SIMULATED_CUDA, MaskGuard
from ..c10.tensor_impl import TensorImpl
from . import dispatcher
from .simulated_cost import flat

# Operators whose tensors may be on different devices; the others' must agree, numbers without dimensions apart.
MIXED = {"_to_copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_", "_pack_padded_sequence",
         "_pad_packed_sequence", "_pack_padded_sequence_backward", "set_", "_ctc_loss", "_ctc_loss_backward"}
# Results that stay in the host's memory: which of an operator's results they are.
ON_HOST = {"_pack_padded_sequence": (1,), "_pad_packed_sequence": (1,)}


def make_kernel(operator, keys):
    """The kernel of `operator` for simulated devices (the dispatcher's fallback for SIMULATED_CUDA)."""
    compute = operator.kernels.get(CPU)
    if compute is None:
        return None
    name = operator.schema.name
    places = [i for i, a in enumerate(operator.schema.arguments) if a.type.is_tensor]
    device_place = next((i for i, a in enumerate(operator.schema.arguments) if a.name == "device"), None)
    generator_place = next((i for i, a in enumerate(operator.schema.arguments) if a.name == "generator"), None)
    stay = ON_HOST.get(name, ())
    launches = not operator.schema.is_view  # a view is the host's work alone

    def kernel(*arguments):
        asked = device_place is not None and (arguments[device_place] is not None or not places)
        if asked:
            place = resolve(arguments[device_place])
            arguments = (*arguments[:device_place], cpu, *arguments[device_place + 1:])
        else:
            place = common_device(operator, [arguments[i] for i in places])
        if generator_place is not None:
            engine = engine_of(arguments[generator_place], place)
            arguments = (*arguments[:generator_place], engine, *arguments[generator_place + 1:])
        with MaskGuard(exclude=SIMULATED_CUDA), DeviceGuard(place.index):
            results = compute(*arguments)
            if launches:
                launch(operator, arguments, results, place)
            if results is arguments[0]:  # an in-place call: its target stays where it is, even on the host
                return results
            return moved(results, place, stay)
    kernel.__name__ = f"{name}_simulated"
    return kernel


dispatcher.fallbacks[SIMULATED_CUDA] = make_kernel


def launch(operator, arguments, results, place):
    """Put what was computed on the current stream, for the time that it would take there."""
    driver = runtime.driver()
    duration = driver.costs.duration(operator, arguments, results, place) if driver.costs else 0.0
    here = place.index, current_stream(place.index).handle
    others = {t.device for t in flat(arguments) if t.device.type == "cuda" and t.device != place}
    there = [(device.index, current_stream(device.index).handle) for device in others]
    for other in there:
        wait_for(driver, here, other)
    driver.enqueue(*here, done, duration, operator.schema.name)
    for other in there:
        wait_for(driver, other, here)  # it must not write to what is still being copied


def wait_for(driver, waiting, other):
    """Work put on the stream `waiting`, a (device, handle), from now on starts after what is on `other` now."""
    event = driver.event_create(other[0])
    driver.event_record(event, *other)
    driver.stream_wait_event(*waiting, event)
    driver.event_destroy(event)


def done():
    """The work of a kernel whose results are there already."""


def resolve(place):
    """The device that a `device` argument means: None is the default one, "cuda" the current one."""
    place = default_device.get() if place is None else place
    return Device("cuda", current_device.index) if place.index is None else place


def engine_of(generator, place):
    """What an operator draws its random numbers from: `generator`'s engine, or the device's own."""
    if generator is None:
        return default_engines[place.index]
    if generator.device.type != "cuda":
        raise RuntimeError(f"Expected a 'cuda' device type for generator but found '{generator.device.type}'")
    return generator._impl


def common_device(operator, values):
    """The device of the operator's tensors. RuntimeError if they are on several."""
    found = None
    for t in flat(values):
        device = t.device
        if device.type == "cuda":
            found = found or device
            if device != found and operator.schema.name not in MIXED:
                raise different_devices(found, device)
        elif t._array.ndim and operator.schema.name not in MIXED:
            raise different_devices(next(u.device for u in flat(values) if u.device.type == "cuda"), device)
    return found


def different_devices(one, other):
    return RuntimeError(f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!")


def moved(results, place, stay=()):
    """A kernel's results, with those that it made in host memory moved to the device."""
    if isinstance(results, TensorImpl):
        return results if results._keys & SIMULATED_CUDA else moved_tensor(results, place)
    if not isinstance(results, (tuple, list)):
        return results
    parts = [r if i in stay else moved(r, place) for i, r in enumerate(results)]
    return type(results)(*parts) if hasattr(results, "_fields") else type(results)(parts)


def moved_tensor(t, place):
    within = tensor_within(t._array)
    return tensor_on(place, t._array) if within is None else within
