"""How an operator gets its CUDA kernel.

    @cuda_kernel(mm)
    def mm_cuda(self, mat2): ...        takes the schema's arguments, as a CPU kernel does

Around each kernel: its tensors must be on one device, which becomes the current one, and errors of that
device are reported with the operator's name. Operators without a kernel of their own get one here if it follows
from others: views, in-place and out= forms.

In PyTorch: `aten/src/ATen/templates/RegisterDispatchKey.cpp`.
"""

import contextlib
import os

from readtorch.aten.common_device import common_device, engine_of, launched, resolve
from readtorch.aten.dispatcher import fallbacks, registry
from readtorch.aten.native.tensor_iterator import broadcast_error
from readtorch.aten.native_function import below_autograd, check_no_overlap, check_result_type, write_out
from readtorch.c10.cuda import runtime
from readtorch.c10.cuda.cuda_exception import AcceleratorError
from readtorch.c10.cuda.cuda_stream import DeviceGuard, current_stream
from readtorch.c10.cuda.device_memory import empty_on, tensor_within
from readtorch.c10.device import current_device
from readtorch.c10.device import device as Device
from readtorch.c10.dispatch_key import CPU, CUDA
from readtorch.c10.tensor_impl import TensorImpl, detached


def cuda_kernel(*operators):
    """Decorator: the function is the kernel of these operators for CUDA tensors."""

    def register(function):
        for operator in operators:
            if CUDA in operator.kernels:  # the first would be dead code
                raise RuntimeError(f"'{operator.name}' has a CUDA kernel already")
            operator.kernel(on_device(operator, function), key=CUDA)
        return function

    return register


def on_device(operator, function, below=below_autograd, launches=True):
    """`function` on the device of the operator's tensors, or on the one that its `device` argument names.
    What it calls stays `below` autograd; a view must know whether autograd follows it, and calls nothing.
    launches: whether it launches kernels itself, which take a simulated device time."""
    arguments = operator.schema.arguments
    places = [i for i, a in enumerate(arguments) if a.type.is_tensor]
    device_place = next((i for i, a in enumerate(arguments) if a.name == "device"), None)
    generator_place = next((i for i, a in enumerate(arguments) if a.name == "generator"), None)

    def kernel(*values):
        if device_place is not None and (values[device_place] is not None or not places):
            place = resolve(values[device_place])
        else:
            place = common_device(operator, [values[i] for i in places])
        if generator_place is not None:
            engine = engine_of(values[generator_place], place)
            values = (*values[:generator_place], engine, *values[generator_place + 1 :])
        with DeviceGuard(place.index), below():
            try:
                results = function(*values)
                if launches:
                    launched(operator, values, results, place)
                wait_if_asked()
            except AcceleratorError as error:
                raise AcceleratorError(f"{error}\nThis was the operator '{operator.name}'.") from error
        return results

    kernel.__name__ = f"{operator.schema.name}_cuda"
    return kernel


def wait_if_asked():
    """With CUDA_LAUNCH_BLOCKING=1 the host waits for every operator, so that an error is reported by the operator
    that made it. Without, a real device's errors come to light with some later call."""
    if os.environ.get("CUDA_LAUNCH_BLOCKING") == "1":
        index = current_device.index
        runtime.driver().stream_synchronize(index, current_stream(index).handle)


def here():
    """The current device."""
    return Device("cuda", current_device.index)


def empty(shape, numpy_dtype, strides=None):
    """A new tensor on the current device; strides in elements."""
    return empty_on(here(), shape, numpy_dtype, strides)


def owned(t):
    """The elements of a view as a tensor that is none: for results that were shaped by views."""
    return detached(t)


def broadcast_shape(*shapes):
    """The shape that these broadcast to. RuntimeError if they do not."""
    width = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*[(1,) * (width - len(shape)) + tuple(shape) for shape in shapes]):
        others = {n for n in sizes if n != 1}
        if len(others) > 1:
            raise broadcast_error(*shapes)
        result.append(others.pop() if others else 1)
    return tuple(result)


def is_on_device(t):
    return t._keys & CUDA


# These change no element: the CPU's kernel, which only looks at sizes and strides, serves every device.
ONLY_GEOMETRY = {
    "resize_",
    "resize_as_",
    "is_set_to",
    "transpose_",
    "t_",
    "as_strided_",
    "squeeze_",
    "unsqueeze_",
    "_unsafe_view",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "is_pinned",
    "_fused_sdp_choice",
}
# The CPU's kernels of these call nothing but operators.
MADE_OF_OPERATORS = {f"{name}.{form}" for name in ("rand", "randn", "randint") for form in ("out", "generator_out")} | {
    "randint.low_out",
    "randint.low_generator_out",
    "normal.float_float_out",
    "_unsafe_masked_index",
    "_unsafe_masked_index_put_accumulate",
    "split_copy.Tensor_out",
    "split_with_sizes_copy.out",
    "unbind_copy.int_out",
}
WINDOWS = {f"{name}_window" for name in ("bartlett", "blackman", "hamming", "hann", "kaiser")}


def is_made_of_operators(operator):
    return operator.name.removeprefix("aten::") in MADE_OF_OPERATORS or operator.schema.name in WINDOWS


def follow(operator, keys):
    """The dispatcher's fallback for CUDA: a kernel that follows from others, or None."""
    compute = operator.kernels.get(CPU)
    if compute is not None and (operator.schema.is_view or operator.schema.name in ONLY_GEOMETRY):
        below = contextlib.nullcontext if operator.schema.is_view else below_autograd
        return on_device(operator, lambda *values: still_on_device(compute(*values)), below)
    if compute is not None and is_made_of_operators(operator):
        return on_device(operator, compute)
    functional = operator.variant_of
    if functional is None or not may_run(functional):
        return None
    if functional.inplace is operator:
        return on_device(operator, lambda self, *rest: write_back(self, functional.call(self, *rest)), launches=False)
    if not getattr(compute, "any_device", False):
        count = len(operator.schema.returns)
        compute = lambda *values: write_out(functional.call(*values[:-count]), values[-count:])
    return on_device(operator, with_device_here(functional, compute))


def with_device_here(functional, compute):
    """`compute`, with the current device for the functional form's argument `device`: an out= call has none."""
    places = [i for i, a in enumerate(functional.schema.arguments) if a.name == "device"]
    if not places:
        return compute

    def compute_here(*values):
        return compute(*[here() if i in places else value for i, value in enumerate(values)])

    return compute_here


fallbacks[CUDA] = follow


def may_run(operator):
    return CUDA in operator.kernels or operator.composite is not None or operator.schema.is_view


def still_on_device(results):
    """Results of geometry, with the key of the device whose memory they look at."""
    if isinstance(results, TensorImpl):
        if is_on_device(results):
            return results
        array = results._array
        return tensor_within(array) if array.size else empty(array.shape, array.dtype)
    return type(results)(map(still_on_device, results)) if isinstance(results, (tuple, list)) else results


def write_back(self, result):
    """Finish an in-place call: `result` is copied to `self`, whose shape must already be the result's."""
    if result._array.shape != self._array.shape:
        raise RuntimeError(
            f"output with shape {list(self._array.shape)} doesn't match the broadcast shape {list(result._array.shape)}"
        )
    check_result_type(result, self)
    check_no_overlap(self)
    return registry["aten::copy_"].call(self, result, False)


def operator_named(name):
    return registry[f"aten::{name}"]
