"""Which device an operator works on: that of its tensors, or that which its `device` argument names.

In PyTorch: `aten/src/ATen/core/op_registration/adaption.cpp` (`common_device_check_failure`).
"""

from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_exception import launches_block
from readtorch.c10.cuda.cuda_generator_impl import CUDAGeneratorImpl, default_engines
from readtorch.c10.cuda.cuda_graphs_c10_utils import current_stream_capture_id
from readtorch.c10.cuda.cuda_stream import current_stream
from readtorch.c10.device import cpu, cuda_device, current_device

from .caching_host_allocator import host_allocator
from .simulated_cost import flat

# Operators whose tensors may be on different devices; the others' must agree, numbers without dimensions apart.
MIXED = {
    "_to_copy",
    "copy_",
    "index",
    "index_put",
    "index_put_",
    "_index_put_impl_",
    "_pack_padded_sequence",
    "_pad_packed_sequence",
    "_pack_padded_sequence_backward",
    "set_",
    "_ctc_loss",
    "_ctc_loss_backward",
}


def resolve(place):
    """The device that a `device` argument means: None is the CPU, "cuda" the current one."""
    place = cpu if place is None else place
    return cuda_device(current_device.index) if place.index is None else place


def engine_of(generator, place):
    """The engine from which an operator draws its random numbers: `generator`'s engine, or the device's own."""
    if generator is None:
        return default_engines[place.index]
    if isinstance(generator, CUDAGeneratorImpl):  # from a kernel that calls operators
        return generator
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
    return RuntimeError(
        f"Expected all tensors to be on the same device, but found at least two devices, {one} and {other}!"
    )


# ------------------------------------------------------------------------------ copies between host and device

COPIES = {"_to_copy", "copy_"}


def wait_for_copy(operator, arguments, place):
    """A copy between the host and a device was put on the current stream: the host waits until it is done. It need not, if the
    call says so and the host's memory is pinned: then the stream's use of that memory is written down."""
    hosts = [t for t in flat(arguments) if t.device.type == "cpu"]
    if not hosts:
        return
    stream = current_stream(place.index).handle
    names = [argument.name for argument in operator.schema.arguments]
    if arguments[names.index("non_blocking")]:
        recorded = [host_allocator().record_event(t._array, place.index, stream) for t in hosts]
        if all(recorded):
            return
    runtime.driver().stream_synchronize(place.index, stream)


# -------------------------------------------------------------------------- virtual time of simulated devices


def launched(operator, arguments, results, place):
    """On a simulated device: what was computed goes on the current stream, for the time that it would take there."""
    driver = runtime.driver()
    if not driver.get_device_properties(place.index).simulated:
        return
    duration = driver.costs.duration(operator, arguments, results, place) if driver.costs else 0.0
    here = place.index, current_stream(place.index).handle
    others = {t.device for t in flat(arguments) if t.device.type == "cuda" and t.device != place}
    there = [(device.index, current_stream(device.index).handle) for device in others]
    for other in there:
        wait_for(driver, here, other)
    driver.spend(*here, duration, operator.schema.name)
    if launches_block() and current_stream_capture_id(place.index) is None:
        driver.stream_synchronize(*here)
    for other in there:
        wait_for(driver, other, here)  # it must not write to memory that is still being copied


def wait_for(driver, waiting, other):
    """Work put on the stream `waiting`, a (device, handle), from now on starts after what is on `other` now."""
    event = driver.event_create(other[0])
    driver.event_record(event, *other)
    driver.stream_wait_event(*waiting, event)
    driver.event_destroy(event)
